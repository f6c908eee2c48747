"""The intervals of the Chebyshev approximations, from a simulation in the clear at one provider.

As the paper has it: the provider with most rows runs the algorithm on its own rows, repeated until they are
as many as the joint table's, and tells everybody between what values each square root lies. Here the
simulation runs with many sketches side by side, because how fast the first iterations settle rests on
the sketch, and each step goes on with the very approximations that were chosen for the steps before,
and with the noise of ciphertexts: what these do to later values is seen too. What it tells are powers
of two, widened by the study's margin: the interval of a place says its value to a factor of four or
so, and nothing finer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil, floor, log2
from typing import NamedTuple

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix as Table
from atoll.errors import ParameterError
from atoll.protocols.checked import refuse
from atoll.protocols.pca.sfpca.paper.algorithm1 import (
    MOST_STRETCHED,
    Own,
    Plan,
    Shape,
    Stretches,
    principal,
)
from atoll.protocols.pca.sfpca.paper.messages import Estimates
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.protocols.pca.sfpca.paper.sketch import sketch_of
from atoll.secret_matrices.slots.approximations import (
    HIGHEST,
    MOST_RAISED,
    Approximations,
    Exact,
    power_of,
    series,
)
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.secret_matrices.slots.machine import Approximation, Matrix, Values, Vector
from atoll.secret_matrices.slots.products import period
from atoll.study.address import Address

SKETCHES = 32
"""Sketches that the simulation runs with, side by side."""
NOISE = 2.0**-24
"""Of a ciphertext's numbers after a step, as the simulation has it."""
WIDEST = 12
"""Powers of two between the ends of an interval, at most: what lies below is hardly turned."""
NARROWEST = 5
"""At least: zero is far outside of a narrower one, where a series is nothing but the noise of its terms."""
SHORTEST = {"eigen/tridiagonal/": -4, "": -10 - 2 * MOST_RAISED}
"""The lowest end of an interval of squares of lengths, by the beginning of a place.

Beside a diagonal there is nothing but noise once power iterations have settled. A tridiagonalisation that
took it for rows would turn eigenvectors that were found already, and QR steps do without one."""
_EXPONENTS = range(-120, 61)
_SCALES = range(-60, 61)


def simulating(rows: Sequence[int]) -> int:
    """Which provider simulates: the first of those with most rows."""
    return int(np.argmax(rows))


# ---- the simulation ----


def simulated(rows: Table, shape: Shape, course: Course, paper: Algorithm, seed: bytes) -> Estimates:
    """What the simulating provider tells, from its rows in units of the range."""
    centred = rows - rows.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred / len(rows))[::-1]
    scale = _scale_of(float(values[0]))
    variances = tuple(_power_below(v * 4.0**scale) for v in values[: shape.rho])
    table = np.resize(rows, (shape.n, shape.columns)) * 2.0**scale
    deciding = Deciding(degree=paper.degree, margin=paper.margin)
    lengths = _Lengths()
    plan = Plan(shape._replace(rows=(shape.n,)), course, paper, deciding, variances, lengths)
    seeds = (randomness.derive(seed, "sketch", i) for i in range(SKETCHES))
    sketches = [sketch_of(one, shape.rho, shape.n).centred(table, 0) for one in seeds]
    own = Own(table, np.stack(sketches, axis=1), place=0)
    with ThreadPoolExecutor(1) as beside:  # the caller may have a loop of its own
        beside.submit(lambda: asyncio.run(_alone(plan, own))).result()
    if paper.nonlinear != "chebyshev":  # shares need no intervals
        return Estimates(scale, variances, lengths.powers, (), (), (), ())
    places = tuple(sorted(deciding.ends))
    sides, lows, highs = zip(*(deciding.ends[place] for place in places), strict=True)
    return Estimates(scale, variances, lengths.powers, places, sides, lows, highs)


async def _alone(plan: Plan, own: Own) -> None:
    """The algorithm in the clear, with one provider that has all rows."""
    longest = plan.shape.columns if plan.course.method == "precomp" else max(plan.shape.n, plan.shape.columns)
    slots = max(16, period(longest), period(plan.shape.rho) ** 2)
    machines = Worlds.machines(1, slots=slots, noise=NOISE)
    with np.errstate(all="ignore"):  # a world may go astray
        await together(lambda m, own: principal(m, plan, own), machines, [None, own])


def _scale_of(largest: float) -> int:
    """The power of two by which data are multiplied so that their largest variance is 2 to 8.

    That is far above the noise, and |u|^2, up to four times its square, is what ciphertexts can hold.
    """
    return 0 if largest <= 0 else min(_SCALES[-1], max(_SCALES[0], floor((3 - log2(largest)) / 2)))


def _power_below(value: float) -> int:
    return max(_SCALES[0], floor(log2(max(value, 2.0**-60))))


class Worlds(Clear):
    """The clear twin of many runs side by side: a vector holds one row of slots for each."""

    def _filled(self, values: Values) -> Values:
        if values.shape[-1] == self.slots:
            return values
        rest = [(0, 0)] * (values.ndim - 1) + [(0, self.slots - values.shape[-1])]
        return np.pad(values, rest)

    def _noisy(self, values: Values) -> Values:
        return np.asarray(values + self._noise * self._random.standard_normal(values.shape), np.float64)

    def _inner(self, pairs: Sequence[tuple[Values, Values]]) -> Values:
        return self._noisy(np.asarray(sum(x * self._filled(y) for x, y in pairs), np.float64))

    def _rotate(self, x: Values, steps: int) -> Values:
        return self._noisy(np.roll(x, -steps, axis=-1))


_ASTRAY, _LARGEST = 1.5, 2.0**10
"""How far outside its interval a world's argument may be, and what comes of it: a run would end there."""


@dataclass(frozen=True, eq=False)
class _Undecided(Exact):
    """A function whose interval is decided when all worlds have come to it."""

    by: Deciding | None = None

    def at(self, x: Values) -> Values:
        """What the approximation gives that is taken for these arguments."""
        assert self.by is not None, "made by Deciding alone"
        low, high = self.by.decide(self.name, x)
        decided = series(self.name, (low, high), self.degree)
        u = (2 * x - (decided.low + decided.high)) / (decided.high - decided.low)
        y = np.polynomial.chebyshev.chebval(np.clip(u, -_ASTRAY, _ASTRAY), decided.coefficients)
        return np.clip(np.asarray(y, np.float64), -_LARGEST, _LARGEST)


@dataclass(frozen=True)
class Deciding(Approximations):
    """Chooses the interval of each place as the program first comes to it."""

    table: Mapping[str, Approximation] = field(default_factory=dict)
    powers: dict[str, int] = field(default_factory=dict)
    degree: int = 31
    margin: float = 2.0
    ends: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By place: the side of zero, and the exponents of both ends."""
    heads: dict[str, Values] = field(default_factory=dict)
    """The coordinates that are left after each reflection, of rows of length one."""

    def __getitem__(self, function: str) -> Approximation:
        return _Undecided(self.path + function, -1.0, 1.0, (0.0,) * (self.degree + 1), {}, by=self)

    def raised(self, v: Vector, length: int) -> int:
        """Where a world has the row: its interval, from every world's, and what follows from that."""
        if v.held is None:
            return 0
        rows = np.concatenate(v.held, axis=-1) if v.wide > 1 else v.held
        norm_2 = np.square(rows[..., :length]).sum(axis=-1)
        norm_2 = norm_2[norm_2 < _LARGEST**2]
        if not norm_2.size:
            raise ParameterError(
                f"the simulation, on the rows of the island with most of them, leaves no row at {self.path}",
                hint="fewer components, a smaller alpha, or a larger margin",
            )
        shortest = next(least for first, least in SHORTEST.items() if self.path.startswith(first))
        ends = (1, *_ends(norm_2, self.margin, shortest))
        self.ends[f"{self.path}length"] = ends
        self.powers[self.path] = power_of(interval(*ends))
        return self.powers[self.path]

    def decide(self, place: str, x: Values) -> tuple[float, float]:
        """The interval of a place, from every world's argument there."""
        where, _, function = place.rpartition("/")
        there = np.isfinite(x).all(axis=-1) & (np.abs(x).max(axis=-1) < _LARGEST**3)
        if not there.any():
            raise ParameterError(
                f"the simulation, on the rows of the island with most of them, leaves no number at {place}",
                hint="fewer components, a smaller alpha, or a larger margin",
            )
        x = np.where(there[..., None], x, np.nan)
        if function == "length":
            unit = 4.0 ** self.powers[f"{where}/"]
            low, high = interval(*self.ends[place])
            return low * unit, high * unit
        if function == "sign":
            self.ends[place] = (_side(x), -1, 0)
            self.heads[where] = x
        else:
            constant = self.ends[f"{where}/sign"][0] != 0
            self.ends[place] = (1, *_of_reflections(x, self.heads[where] if constant else None, self.margin))
        return interval(*self.ends[place])


_LENGTH, _MOST = 8.0, 32.0
"""Of the longest row in most worlds, and of one that is further off than any, after stretching."""


class _Lengths(Stretches):
    """Stretches rows so that they are about as long as the largest variance, in most worlds."""

    def __init__(self) -> None:
        self.powers: dict[str, tuple[int, ...]] = {}

    def of(self, place: str, rows: Matrix, length: int) -> Sequence[int]:
        """At whoever has the rows: the coordinator, or the one provider of the simulation."""
        if rows[0].held is None:
            return [0] * len(rows)
        norms = [np.linalg.norm(x.held[..., :length], axis=-1) for x in rows]
        lengths = [norm[np.isfinite(norm)] for norm in norms]
        powers = (
            floor(log2(min(_LENGTH / _least(np.quantile(x, 0.9)), _MOST / _least(_longest(x)))))
            for x in lengths
        )
        self.powers[place] = tuple(max(0, min(MOST_STRETCHED, e)) for e in powers)
        return self.powers[place]


def _least(x: float) -> float:
    return max(float(x), 2.0**-40)


def _longest(x: Values, short: float = 2.0**-60) -> float:
    """Beyond what any world has: half as far, in digits, as the largest is beyond the usual.

    In the first iterations lengths are quotients of what the sketch happens to have of two components, and a
    run may be far from all worlds. Once rows have settled, nothing is added.
    """
    usual, most = float(np.nanmedian(x)), float(np.nanmax(x))
    return most * min(float(np.sqrt(most / max(usual, short))), 2.0**WIDEST)


_TOO_CLOSE = 0.94
"""A reflection with a constant sign is good if no row lies closer to the axis on the other side."""


def _side(along: Values) -> int:
    """A constant sign where that makes good reflections in every world; else both sides of zero."""
    best = 1 if float(np.nanmin(along)) >= -float(np.nanmax(along)) else -1
    return best if float(np.nanmin(best * along)) > -_TOO_CLOSE else 0


def _of_reflections(k: Values, along: Values | None, margin: float) -> tuple[int, int]:
    """Of |u|^2, which cannot be larger; where worlds differ, for rows on either side of zero.

    ``along``: v_0 / |v| where the sign is constant.
    """
    least = float(np.nanmin(k))
    if along is not None and float(np.nanmin(along)) < 0 < float(np.nanmax(along)):
        least = min(least, 2 * (1 - min(float(np.nanmax(np.abs(along))), _TOO_CLOSE)))
    top = int(log2(HIGHEST))
    bottom = floor(log2(max(least, 2.0**-20) / margin))
    return min(max(bottom, _LEAST_REFLECTION), top - NARROWEST), top


_LEAST_REFLECTION = floor(log2(2 * (1 - _TOO_CLOSE)))


def _ends(norm_2: Values, margin: float, shortest: int) -> tuple[int, int]:
    """Powers of two around what all worlds have, and a run may have.

    Beyond the upper end a series grows without bounds, so that this end is further off where worlds differ
    most; below the lower one it falls gently.
    """
    least, most = (
        max(float(np.nanmin(norm_2)), 2.0**shortest),
        max(_longest(norm_2, 2.0**shortest), 2.0**shortest),
    )
    top = max(ceil(log2(most * margin**2)), shortest + NARROWEST)
    bottom = max(floor(log2(least / margin)), shortest, top - WIDEST)
    return min(bottom, top - NARROWEST), top


def interval(side: int, low: int, high: int) -> tuple[float, float]:
    """From powers of two."""
    if side == 0:
        return -(2.0**high), 2.0**high
    return (2.0**low, 2.0**high) if side > 0 else (-(2.0**high), -(2.0**low))


# ---- what everybody takes ----


class Agreed(Stretches):
    """What the simulation said."""

    def __init__(self, powers: Mapping[str, tuple[int, ...]]) -> None:
        self.powers = powers

    def of(self, place: str, rows: Matrix, length: int) -> Sequence[int]:
        """As was told for this place; rows stay as they are where nothing was."""
        del length
        return self.powers.get(place, (0,) * len(rows))


class Intervals(NamedTuple):
    """The scale, the components' variances, and an interval for each place."""

    scale: int
    variances: tuple[int, ...]
    stretches: Agreed
    of: Mapping[str, tuple[float, float]]


def taken(e: Estimates, rho: int, sender: Address) -> Intervals:
    """What was told, checked."""
    told = list(zip(e.sides, e.lows, e.highs, strict=False))
    if not len(e.places) == len(e.sides) == len(e.lows) == len(e.highs) or len(set(e.places)) < len(told):
        raise refuse(sender, "intervals that do not belong to places")
    if any(s not in (-1, 0, 1) or a not in _EXPONENTS or b not in _EXPONENTS or a >= b for s, a, b in told):
        raise refuse(sender, "intervals that are none")
    if e.scale not in _SCALES or len(e.variances) != rho or any(v not in _SCALES for v in e.variances):
        raise refuse(sender, f"a scale and {rho} variances that are no powers of two within 2^60")
    if any(not 0 <= power <= MOST_STRETCHED for row in e.stretches.values() for power in row):
        raise refuse(sender, "factors of rows that are none")
    of = {place: interval(*ends) for place, ends in zip(e.places, told, strict=True)}
    return Intervals(e.scale, e.variances, Agreed(e.stretches), of)
