"""What a study means before it runs: :mod:`budget` (the accounts of islands) and :mod:`study` (the rest)."""
