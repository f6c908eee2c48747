"""What summed scores give away, and the options by which a study says that it is known.

A summed score is the sum of all islands' columns times their coefficients, row by row. Each sum is one
combination of the others' columns; the sums of T rounds span T of them. With as many rounds as there are
columns that is the whole span, and columns of few values (binary ones) follow from the span exactly.
``tests/attacks/test_learning_columns.py`` does both.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.errors import ParameterError, StudyError
from atoll.study.address import Address
from atoll.study.model import Parameters

SPAN = (
    "every step opens another mixture of the other islands' columns, row by row; after as many steps as they "
    "have columns, whoever sees the steps can work out any mixture of them for every row, and columns of "
    "only two values (yes or no) exactly"
)
PAIR = "with two islands, a summed score less one's own is the other's score, row by row"


class JointParameters(Parameters, frozen=True):
    """``target``: the column to be explained, which every island has, or, with ``y_holder``, that one alone;
    ``columns``: the columns that explain it, or all others."""

    target: str | None = None
    y_holder: str | None = None
    columns: tuple[str, ...] | None = None


class ColumnsParameters(JointParameters, frozen=True):
    """``accept_scores``: this study may open summed scores; ``accept_two_party``: also between two islands;
    ``max_iter``: the most sums."""

    accept_scores: bool = False
    accept_two_party: bool = False
    max_iter: int = 500


def check_consent(p: ColumnsParameters, islands: Sequence[Address], opened: str, instead: str) -> None:
    """Refuse a study that does not say what it opens. ``opened``: in words; ``instead``: for the hint."""
    if not p.accept_scores:
        raise ParameterError(
            f"with columns split, every step opens {opened}: {SPAN}",
            hint=f"accept_scores = true, if everybody may have that; {instead}",
            option="accept_scores",
        )
    if len(islands) == 2 and not p.accept_two_party:
        raise ParameterError(
            f"{PAIR}",
            hint=f"accept_two_party = true, if both may have that; more islands; {instead}",
            option="accept_two_party",
        )


def check_columns(p: JointParameters, islands: Sequence[Address], *, needs_target: bool) -> None:
    """What the study's types cannot say of its columns."""
    if needs_target and p.target is None:
        raise StudyError(
            "a target is needed: the column that is to be explained",
            hint='target = "..." in a study file; fit(tables, y)',
            path=("parameters", "target"),
        )
    if not needs_target and (p.target is not None or p.y_holder is not None):
        raise StudyError("clusters have no target", path=("parameters", "target"))
    if p.y_holder is not None and p.y_holder not in {address.party for address in islands}:
        raise StudyError(
            f"y_holder names {p.y_holder!r}, which is no island of this study",
            hint=f"one of {', '.join(address.party for address in islands)}",
            path=("parameters", "y_holder"),
        )
    if p.columns is not None and (not p.columns or len(set(p.columns)) < len(p.columns)):
        raise StudyError("columns must name each column once", path=("parameters", "columns"))
    if p.target is not None and p.target in (p.columns or ()):
        raise StudyError("columns names the target", path=("parameters", "columns"))
