"""What is easy to miss in a study's numbers: promises that promise little, islands of one row.

A review shows these with ``!``, and ``atoll run`` says them before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atoll.privacy.accountant import LITTLE_LEFT, guess_accuracy
from atoll.protocols import protocol_of
from atoll.protocols.base import PrivacyTerms
from atoll.runtime.studies import data_holders
from atoll.study.model import Study

LARGEST_DELTA = 1e-3
"""Of a study whose number of rows is not known: one row in a thousand may be left without any promise."""
ROWS_PER_DELTA = 10
"""A delta should be smaller than one over so many times the rows."""


def cautions(study: Study, rows: Sequence[int] = ()) -> tuple[str, ...]:
    """``rows``: of every island, in the study's order; empty where nobody knows."""
    terms = protocol_of(study.protocol).privacy(study)
    return (*(_of_terms(terms, sum(rows)) if terms is not None else ()), *_of_rows(study, rows))


def _of_terms(terms: PrivacyTerms, rows: int) -> Iterator[str]:
    accuracy = guess_accuracy(terms.epsilon, terms.delta or 0.0)
    if guess_accuracy(terms.epsilon) > LITTLE_LEFT:
        yield (
            f"epsilon {terms.epsilon:g} promises next to nothing: an attacker who knows all other rows may "
            f"be right about one row in {accuracy:.4%} of cases; with epsilon 1 it is 73%"
        )
    if terms.delta is None:
        return
    most = 1 / (ROWS_PER_DELTA * rows) if rows else LARGEST_DELTA
    if terms.delta > most:
        over = f"1/{ROWS_PER_DELTA} of one divided by the {rows:,} rows" if rows else "what is usual"
        yield (
            f"delta {terms.delta:g} is larger than {over} ({most:.1g}): with this probability the promise of "
            "epsilon does not hold for a row at all"
        )


def _of_rows(study: Study, rows: Sequence[int]) -> Iterator[str]:
    if study.partition != "horizontal":
        return
    for island, n in zip(data_holders(study), rows, strict=False):
        if n == 1:
            yield (
                f"{island} has a single row: every number that it contributes is about that one record, and "
                "stays hidden only among the other islands' rows"
            )
