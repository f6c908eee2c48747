"""What a study means before it runs.

- :mod:`budget`: the accounts of islands
- :mod:`cautions`: what is easy to miss in its numbers
- :mod:`study`: the rest
"""
