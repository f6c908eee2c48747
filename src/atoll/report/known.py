"""Who knows an output, in words: those to whom it is released, and those who see it anyway."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.units import listing
from atoll.review.study import OutputReview, Review

_WORDS = {
    "n_samples": "the number of rows",
    "rows": "each island's number of rows",
    "islands": "which islands take part",
    "columns": "the column names",
    "scale": "the divisors",
    "mean": "the mean of each column",
}


def also_known(review: Review, output: OutputReview) -> list[str]:
    """A line for each role whose parties know the same: "every provider: the number of rows"."""
    alike: dict[tuple[str, bool, tuple[str, ...]], list[str]] = {}
    for knower in output.known_to:
        party, _, role = knower.address.rpartition("/")
        alike.setdefault((role, knower.whole, knower.values), []).append(party)
    return [
        f"{_those(review, role, parties)}: {_what(whole, values)}"
        for (role, whole, values), parties in alike.items()
    ]


def released_to(review: Review, output: OutputReview) -> list[str]:
    """A line for each role: "every provider", "university (consumer)"."""
    by_role: dict[str, list[str]] = {}
    for address in output.released_to:
        party, _, role = address.rpartition("/")
        by_role.setdefault(role, []).append(party)
    return [_those(review, role, parties) for role, parties in by_role.items()]


def _those(review: Review, role: str, parties: Sequence[str]) -> str:
    playing = next(one.parties for one in review.roles if one.role == role)
    if len(parties) == len(playing) > 1:
        return f"every {role}"
    if list(parties) == [role]:
        return role
    return f"{listing(list(parties))} ({role})"


def _what(whole: bool, values: Sequence[str]) -> str:
    said = [_WORDS.get(value, value.replace("_", " ")) for value in values]
    return "all of it" if whole else ", ".join(said)
