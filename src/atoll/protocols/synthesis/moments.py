"""The one release: number of rows, first and second moments of coded rows, with noise in shares.

A row is a cell in every column. A column of k cells is coded by a centred vector of whole numbers: +-1 for
two cells, k e_i - 1 for more. The second moments of two coded columns are what their two-way table says
beyond its margins, so margins are released once, agree in all tables, and nobody spends noise on what is
known: sums of a table, a column beside itself (a row has one cell: these are zeros by structure).

In units of the code's own length a coded column has squared norm 1 - 1/k, so with weights w the sensitivity
of everything together, one row more or less, is
    Delta^2 = w_count^2 + w_margin^2 sum_a (1 - 1/k_a) + sum_(a<b) w_ab^2 (1 - 1/k_a) (1 - 1/k_b)
(in the 1-norm the same with 2 (1 - 1/k) for k > 2). Rows are whole numbers and sums exact, so no rounding
widens it. The weights are fixed here, for all tables: they use no private data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.errors import RangeOverflow
from atoll.privacy import grid
from atoll.privacy.calibration import check_epsilon, gdp_mu
from atoll.privacy.dp_moments import Stage
from atoll.privacy.mechanisms import (
    CURATOR,
    Crowd,
    GaussianCost,
    Part,
    PureCost,
    calibrate_gaussian,
    calibrate_laplace,
)

Codes = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNITS = 1 << 20
"""One row counts as so many grid units, so that a noise share is many units wide."""
COUNT_WEIGHT = 1.0
MARGIN_WEIGHT = 1.0
_BLOCK_ROWS = 1 << 13
MAX_SUM = 1 << 24
"""The most numbers in one release: about 5,800 cells."""


def helmert(size: int) -> Floats:
    """Orthonormal columns that span the vectors of sum zero: size x (size - 1)."""
    if size == 2:
        return np.array([[-1.0], [1.0]]) / math.sqrt(2.0)
    basis = np.zeros((size, max(size - 1, 0)))
    for j in range(size - 1):
        basis[: j + 1, j] = -1.0
        basis[j + 1, j] = j + 1.0
        basis[:, j] /= math.sqrt((j + 1.0) * (j + 2.0))
    return basis


def joint_basis(sizes: Sequence[int]) -> Floats:
    """The bases of all columns on the diagonal: cells x coordinates."""
    basis = np.zeros((sum(sizes), sum(k - 1 for k in sizes)))
    row = column = 0
    for k in sizes:
        basis[row : row + k, column : column + k - 1] = helmert(k)
        row, column = row + k, column + k - 1
    return basis


@dataclass(frozen=True)
class Moments:
    """What everybody may know: the noisy number of rows, and noisy moments per row in orthonormal
    coordinates, with the width of their noise. Blocks of one column beside itself are zero."""

    sizes: tuple[int, ...]
    count: float
    mean: Floats
    second: Floats
    mean_noise: Floats
    """By column."""
    second_noise: Floats
    """By pair of columns."""

    @cached_property
    def owner(self) -> npt.NDArray[np.int64]:
        """Which column each coordinate belongs to."""
        return np.repeat(np.arange(len(self.sizes)), [k - 1 for k in self.sizes])

    @cached_property
    def margins(self) -> list[Floats]:
        """The share of every cell of every column: noisy shares, brought back to shares that can be."""
        found, start = [], 0
        for a, k in enumerate(self.sizes):
            raw = 1.0 / k + helmert(k) @ self.mean[start : start + k - 1]
            found.append(_simplex(raw, least=min(0.1 * self.mean_noise[a], 0.1 / k)))
            start += k - 1
        return found

    def plain(self) -> dict[str, Any]:
        """As messages and results hold it."""
        return {
            "count": self.count,
            "mean": self.mean,
            "second": self.second,
            "mean_noise": self.mean_noise,
            "second_noise": self.second_noise,
        }


def _simplex(raw: Floats, least: float) -> Floats:
    """The nearest shares, none below ``least``: noise must not make a public level impossible."""
    room = 1.0 - least * len(raw)
    shifted = np.sort(raw - least)[::-1]
    excess = (np.cumsum(shifted) - room) / np.arange(1, len(raw) + 1)
    last = int(np.flatnonzero(shifted > excess)[-1])
    return np.asarray(np.maximum(raw - least - excess[last], 0.0) + least)


@dataclass(frozen=True)
class Plan:
    """Everything public about the release. ``share``: of the budget, where it is one of several."""

    sizes: tuple[int, ...]
    epsilon: float
    delta: float | None
    crowd: Crowd = CURATOR
    share: float = 1.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.length > MAX_SUM:
            raise RangeOverflow(
                f"{sum(self.sizes):,} cells would need a sum of {self.length:,} numbers; {MAX_SUM:,} are "
                "the most",
                hint="use fewer columns, join levels, or set fewer bins",
            )

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """Coordinates of every coded column."""
        return tuple(dim(k) for k in self.sizes)

    @cached_property
    def _units(self) -> Floats:
        """The length of a code over that of its orthonormal coordinates."""
        return np.array([unit(k) for k in self.sizes])

    @cached_property
    def _pairs(self) -> tuple[Codes, Codes]:
        """Pairs of columns in the order of the sum: those with equal widths beside each other."""
        one, other = np.triu_indices(len(self.sizes), 1)
        widths = self._units[one] * self._units[other]
        order = np.lexsort((other, one, widths))
        return one[order], other[order]

    @cached_property
    def _places(self) -> tuple[Codes, Codes]:
        """Where in the matrix of second moments each number of the sum stands."""
        owner = np.repeat(np.arange(len(self.sizes)), self.dims)
        rank = np.zeros((len(self.sizes),) * 2, dtype=np.int64)
        rank[self._pairs] = np.arange(len(self._pairs[0]))
        rows, columns = np.nonzero(owner[:, None] < owner[None, :])
        order = np.lexsort((columns, rows, rank[owner[rows], owner[columns]]))
        return rows[order], columns[order]

    @property
    def length(self) -> int:
        """Numbers in the sum."""
        total = sum(dim(k) for k in self.sizes)
        return 1 + total + (total * total - sum(dim(k) ** 2 for k in self.sizes)) // 2

    @cached_property
    def stage(self) -> Stage:
        """Noise and cost of the release."""
        squared = np.array([1.0 - 1.0 / k for k in self.sizes])
        longest = np.array([one_norm(k) for k in self.sizes])
        one, other = self._pairs
        l2 = COUNT_WEIGHT**2 + MARGIN_WEIGHT**2 * squared.sum() + (squared[one] * squared[other]).sum()
        l1 = COUNT_WEIGHT + MARGIN_WEIGHT * longest.sum() + (longest[one] * longest[other]).sum()
        return staged("moments", self, math.sqrt(l2) * UNITS, float(l1) * UNITS, self._parts())

    def _parts(self) -> tuple[Part, ...]:
        parts = [Part(1, 1.0 / COUNT_WEIGHT)]
        parts += [Part(d, u / MARGIN_WEIGHT) for d, u in zip(self.dims, self._units, strict=True) if d]
        sizes: dict[float, int] = {}
        for a, b in zip(*self._pairs, strict=True):
            width = float(self._units[a] * self._units[b])
            sizes[width] = sizes.get(width, 0) + self.dims[a] * self.dims[b]
        return (*parts, *(Part(size, width) for width, size in sizes.items() if size))


def dim(cells: int) -> int:
    """Coordinates of a code: none where there is no choice, one sign for two cells."""
    return cells if cells > 2 else cells - 1


def unit(cells: int) -> float:
    """The length of a code over that of its orthonormal coordinates."""
    return math.sqrt(2.0) if cells == 2 else float(cells)


def one_norm(cells: int) -> float:
    """Of a coded column, in units of its own length."""
    return math.sqrt(0.5) if cells == 2 else 2.0 * (1.0 - 1.0 / cells)


def staged(name: str, plan: Any, l2: float, l1: float, parts: tuple[Part, ...]) -> Stage:
    """A release of these sensitivities that costs the plan's share of its budget."""
    if plan.delta is None:
        pure = PureCost(plan.epsilon * plan.share)
        return Stage(name, calibrate_laplace(pure.epsilon, l1, parts, plan.crowd), pure)
    cost = GaussianCost(gdp_mu(plan.epsilon, plan.delta) * math.sqrt(plan.share))
    return Stage(name, calibrate_gaussian(cost.mu, l2, parts, plan.crowd), cost)


# ---- steps: owners ----


def coded(codes: Codes, sizes: Sequence[int]) -> Floats:
    """Rows of cells as rows of whole numbers."""
    columns = []
    for a, k in enumerate(sizes):
        if k == 2:
            columns.append(2.0 * codes[:, a : a + 1] - 1.0)
        elif k > 2:
            columns.append(k * (codes[:, a : a + 1] == np.arange(k)) - 1.0)
    return np.hstack(columns) if columns else np.zeros((len(codes), 0))


def check_rows(rows: int, sizes: Sequence[int], whose: str = "a table") -> None:
    """Refuse a table whose sums might not fit; to be asked before a release is paid for."""
    grid.check_size(rows, whose)
    if rows * max(sizes, default=1) ** 2 * UNITS >= 1 << 62:
        raise RangeOverflow(
            f"{whose} has {rows:,} rows, and a column has {max(sizes):,} cells: together too many",
            hint="join levels, or set fewer bins",
        )


def contribution(plan: Plan, codes: Codes) -> Integers:
    """An owner's exact sums. Every partial sum is a whole number below 2^53, so doubles are exact."""
    check_rows(len(codes), plan.sizes)
    width = sum(plan.dims)
    mean, second = np.zeros(width), np.zeros((width, width))
    for start in range(0, len(codes), _BLOCK_ROWS):
        block = coded(codes[start : start + _BLOCK_ROWS], plan.sizes)
        mean += block.sum(axis=0)
        second += block.T @ block
    exact = np.concatenate([[float(len(codes))], mean, second[plan._places]])
    return np.asarray(exact.astype(np.int64) * UNITS)


# ---- steps: whoever opens the sum ----


def finish(plan: Plan, total: Sequence[int] | npt.NDArray[Any], present: int | None = None) -> Moments:
    """The noisy sum as moments per row, in orthonormal coordinates."""
    values = np.asarray(total).astype(np.float64) / UNITS
    noise, width = plan.stage.noise, sum(plan.dims)
    spread = noise.deviation_of_sum(0, present) * COUNT_WEIGHT / UNITS
    count = max(float(values[0]), spread / COUNT_WEIGHT, 1.0)
    second = np.zeros((width, width))
    second[plan._places] = values[1 + width :]
    codes = _turn(plan)
    mean = codes.T @ values[1 : 1 + width] / count
    second = codes.T @ (second + second.T) @ codes / count
    pairs = np.full((len(plan.sizes),) * 2, spread / count)
    np.fill_diagonal(pairs, 0.0)
    margin = np.full(len(plan.sizes), spread / MARGIN_WEIGHT / count)
    return Moments(plan.sizes, count, mean, second, margin, pairs)


def turn(cells: int) -> Floats:
    """A code to orthonormal coordinates: what lies outside of them is noise, and drops out."""
    return np.asarray((np.ones((1, 1)) if cells == 2 else helmert(cells)[: dim(cells)]) / unit(cells))


def _turn(plan: Plan) -> Floats:
    """The same for all columns, on the diagonal."""
    whole = np.zeros((sum(plan.dims), sum(k - 1 for k in plan.sizes)))
    row = column = 0
    for k, d in zip(plan.sizes, plan.dims, strict=True):
        whole[row : row + d, column : column + k - 1] = turn(k)
        row, column = row + d, column + k - 1
    return whole
