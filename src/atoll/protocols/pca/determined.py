"""From how many components on the outputs of a PCA say all second moments of the joint table.

The first way is linear (:func:`free_moments`). k components with their variances give C on the space that
they span. Unknown is the rest, a positive semidefinite S on the other r = m - k directions, of rank
rho <= min(r, n - 1 - k): r rho - rho (rho - 1) / 2 numbers. The receiver has equations for it:

    total variance         the trace of S: so r = 1 leaves nothing, and neither does rho = 0 (k is the rank)
    every variance         of standardised columns (1), or scales that are released: m equations in place of
                           one. r (r + 1) / 2 <= m leaves nothing: 6 components of 10 columns say the rest
    own columns            a receiver that holds a of the columns knows their block of C, and has all of S
                           from r = a on: as many components as the others have columns

Each is tight: one component fewer leaves S a direction to move in, along which all outputs stay the same.
Two more cases show in the spectrum only, when it is known (:func:`check_spectrum`): components that leave
no variance (k is the rank), and a rest so large that all of its variances are as large as the last one (S
is then that number times the identity).

The second way is a knapsack. The sums and second moments of columns that hold whole numbers are whole numbers
themselves, and components, offset and variances are linear relations between them: C w = lambda w with
C = G/n - (u/n)(u/n)^T and u w = n offset. Once the relations have more digits than the unknowns, one
vector of whole numbers fits, and lattice reduction finds it. Both are counted in bits:

    unknown   log2(sqrt(n) R^2 / 2) for a second moment, log2(sqrt(n) R) for a column's sum: what chance makes
              of n rows, for somebody who knows the population that they come from (a standard deviation of
              sqrt(n) R^2 / 8, and log2 sqrt(2 pi e) bits for its shape)
    known     b for each of the m k - k (k + 1) / 2 free numbers in k orthonormal rows of m, and for each
              of the k offsets; 52 for each of the k variances and for the total

Counted row by row, without that knowledge, m log2(n R^2) / b components would be needed: G is symmetric,
which halves their number, and rows that are drawn from something known are worth half their bits.
tests/attacks/test_determined.py carries the attack out on both sides of the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from atoll.errors import PrivacyError

DOUBLE_BITS = 52
WIDEST = 2.0**16
"""Columns are taken for whole numbers within this range where nobody knows a smaller one."""
ASSUMED_ROWS = 1000
"""Rows of each island in a review of tables that nobody has at hand; the line moves with their logarithm."""
EXAMPLE_RANGES = (1.0, 9.0, 255.0, WIDEST)
"""Yes or no, one digit, one byte, two bytes: what a review names where nobody knows the range."""
_RANK_REST = 2.0**-40
"""A part of the total variance that is no more than the rounding of an opened spectrum."""


class Table(NamedTuple):
    """What is unknown: the moments of so many columns and rows, within a range of so many whole numbers."""

    columns: int
    rows: int
    range: float = WIDEST
    own_columns: int = 0
    own_rows: int = 0
    """What the receiver holds itself, and so knows."""


class Given(NamedTuple):
    """What is released: bits of components (and offset), and what goes along."""

    bits: int = DOUBLE_BITS
    mean: bool = False
    """The mean itself: nothing is left to find of the sums."""
    variances: bool = True
    scales: bool = False
    """Every column's own variance."""
    whole_numbers: bool = True
    """Whether the moments could be whole numbers; those of standardised columns are not."""

    @property
    def diagonal(self) -> bool:
        """Whether the diagonal of the decomposed matrix is known: ones, where columns are standardised."""
        return self.scales or not self.whole_numbers


def unknown_bits(table: Table, given: Given) -> float:
    """The bits of all moments that the receiver does not have."""
    m, own, R = table.columns, table.own_columns, _within(table)
    chance = max(2, table.rows - table.own_rows) ** 0.5
    moments = m * (m - 1) // 2 - own * (own - 1) // 2 + (0 if given.scales else m - own)
    bits = moments * log2(max(2.0, chance * R**2 / 2))
    return bits if given.mean else bits + (m - own) * log2(max(2.0, chance * R))


def known_bits(m: int, k: int, given: Given) -> float:
    """The bits of linear relations between the moments that k components bring."""
    free = m * k - k * (k + 1) // 2 + (0 if given.mean else k)
    return given.bits * free + (DOUBLE_BITS * (k + 1) if given.variances else 0)


def free_moments(table: Table, k: int, given: Given) -> int:
    """How many numbers of the covariance k components with their variances leave free, in general."""
    r = max(0, table.columns - k)
    rank = min(r, max(0, table.rows - 1 - k))
    own = min(table.own_columns, r)
    equations = table.columns - table.own_columns if given.diagonal else 1
    return max(0, _numbers(r, rank) - _numbers(own, min(rank, own)) - equations)


def _numbers(size: int, rank: int) -> int:
    """In a symmetric matrix of this rank."""
    return size * rank - rank * (rank - 1) // 2


def is_whole(table: Table, k: int, given: Given) -> bool:
    """Whether k components with their variances are the covariance, whatever its columns hold."""
    return given.variances and free_moments(table, k, given) == 0


def whole_line(table: Table, given: Given) -> int:
    """The least number of components with variances that are the covariance."""
    return next(k for k in range(1, table.columns + 1) if is_whole(table, k, given._replace(variances=True)))


def is_determined(table: Table, k: int, given: Given) -> bool:
    """Whether k components say all second moments, of whole numbers or of any."""
    if is_whole(table, k, given):
        return True
    return given.whole_numbers and known_bits(table.columns, k, given) >= unknown_bits(table, given)


def line(table: Table, given: Given) -> int:
    """The least number of components that say all second moments; more than columns where none does."""
    found = (k for k in range(1, table.columns + 1) if is_determined(table, k, given))
    return next(found, table.columns + 1)


def spans(explained: float, total: float) -> bool:
    """Whether the components explain all variance: there are as many as the table's rank."""
    return total > 0 and total - explained <= _RANK_REST * total


def words(table: Table, k: int, given: Given) -> str:
    """What k components say that are at the line or beyond it."""
    said = f"n_components={k} of {table.columns} columns and {table.rows:,} rows"
    if is_whole(table, k, given):
        return f"{said} say the whole joint {'covariance' if given.whole_numbers else 'correlation matrix'}"
    within = f"{_within(table):,.0f}"
    return f"{said} say all second moments, if the columns hold whole numbers in a range of {within}"


def check(table: Table, k: int, given: Given, *, fewer_digits: bool = False) -> None:
    """Refuse what determines the moments; called before anything of it leaves a role."""
    if not is_determined(table, k, given):
        return
    most, whole = line(table, given) - 1, is_whole(table, k, given)
    raise PrivacyError(
        words(table, k, given), hint=hint(most, fewer_digits=fewer_digits and not whole, whole=whole)
    )


def is_level(variances: Sequence[float], total: float, columns: int) -> bool:
    """Whether the rest of the variance is as much as it can be: as large in every direction as the last."""
    most = (columns - len(variances)) * variances[-1]
    return most > 0 and total - sum(variances) >= (1 - _RANK_REST) * most


def check_spectrum(variances: Sequence[float], total: float, columns: int) -> None:
    """Refuse components whose variances say the rest: there is none, or it is the same in all directions."""
    k = len(variances)
    if spans(sum(variances), total):
        raise PrivacyError(
            f"n_components={k} explain all of the variance, so they reveal the whole joint covariance",
            hint=hint(k - 1, whole=True),
        )
    if is_level(variances, total, columns):
        raise PrivacyError(
            f"n_components={k} leave a rest that varies in all directions as component {k} does, so they "
            "reveal the whole joint covariance",
            hint=hint(level_from(variances) - 1, whole=True),
        )


def level_from(variances: Sequence[float]) -> int:
    """The first component whose variance is the last one's."""
    return next(i for i, value in enumerate(variances, 1) if value <= (1 + _RANK_REST) * variances[-1])


def review_words(
    tables: Sequence[Table],
    k: int | None,
    given: Given,
    *,
    accepted: bool,
    refused_within: float = 0.0,
    asked: bool = True,
) -> tuple[str, ...]:
    """Where the line is for tables that differ in range alone (narrow ones first), and where the study is.

    ``refused_within``: the range that a run assumes; ``asked``: whether the number of components is known.
    """
    first = tables[0]
    said = f"of {first.columns} columns and {first.rows:,} rows"
    if given.variances:
        what = "covariance" if given.whole_numbers else "correlation matrix"
        said += f", {whole_line(first, given)} components or more say the whole joint {what}"
    if given.whole_numbers:
        lines = ", ".join(f"{line(table, given)} within a range of {_within(table):,.0f}" for table in tables)
        fewer = " that hold whole numbers, so many components say all second moments"
        if given.variances:
            fewer = "; fewer are enough where all columns hold whole numbers"
        said += f"{fewer}: {lines} (components have {given.bits} binary digits after the point)"
    return (said, _side(tables, k, given, accepted, refused_within)) if asked else (said,)


def _side(tables: Sequence[Table], k: int | None, given: Given, accepted: bool, refused_within: float) -> str:
    most = min(tables[0].columns, tables[0].rows) if k is None else k
    side = f"the study has {most} component{'s' if most > 1 else ''}: "
    beyond = [table for table in tables if is_determined(table, most, given)]
    if not beyond:
        return f"{side}fewer than that"
    side += "that is enough"
    if not is_whole(beyond[-1], most, given):
        side += f" if all columns hold whole numbers within a range of {_within(beyond[-1]):,.0f}"
    if accepted:
        return f"{side}, which the study accepts"
    refused = beyond[-1].range >= refused_within
    return (
        f"{side}; then a run is refused" if refused else f"{side}; a run does not check it, and releases them"
    )


def _within(table: Table) -> float:
    return min(max(table.range, 1.0), WIDEST)


def hint(most: int, *, fewer_digits: bool = False, whole: bool = False) -> str:
    """What to do about it; ``whole``: the outputs are the covariance, whatever the columns hold."""
    ways = [f"n_components={most} or fewer"] if most > 0 else []
    if fewer_digits:
        ways.append("fewer digits")
    accept = "accept_determined=True where all may know "
    accept += "it" if whole else "them, or where no column holds whole numbers"
    return ", ".join([*ways, f"or {accept}" if ways else accept])
