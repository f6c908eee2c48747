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
from atoll.secret_matrices.slots.approximations import ALWAYS, MOST_RAISED, TOP, WIDEST, Approximations, agreed
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.secret_matrices.slots.machine import Approximation, Matrix, Values, Vector
from atoll.secret_matrices.slots.products import period
from atoll.study.address import Address

SKETCHES = 32
"""Sketches that the simulation runs with, side by side."""
NOISE = 2.0**-22
"""Of a ciphertext's numbers after a step, as the simulation has it: some times what it is, so that a row of
which only noise is left is expected to be longer than it turns out."""
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
    lengths = _Lengths(shape.columns)
    plan = Plan(shape._replace(rows=(shape.n,)), course, paper, deciding, variances, lengths)
    seeds = (randomness.derive(seed, "sketch", i) for i in range(SKETCHES))
    sketches = [sketch_of(one, shape.rho, shape.n).centred(table, 0) for one in seeds]
    own = Own(table, np.stack(sketches, axis=1))
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


    def _polynomial(self, x: Values, approximation: Approximation) -> Values:
        low, high = approximation.low, approximation.high
        u = np.clip((2 * x - (low + high)) / (high - low), -_ASTRAY, _ASTRAY)
        y = np.polynomial.chebyshev.chebval(u, approximation.coefficients)
        return self._noisy(np.clip(np.asarray(y, np.float64), -_LARGEST, _LARGEST))


_ASTRAY, _LARGEST = 1.5, 2.0**10
"""How far outside its interval a world's argument may be, and what comes of it: a run would end there."""


@dataclass(frozen=True)
class Deciding(Approximations):
    """Chooses the interval and the side of each place as the program first comes to it."""

    table: dict[str, Approximation] = field(default_factory=dict)
    raises: dict[str, int] = field(default_factory=dict)
    margin: float = 4.0
    ends: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By place: the side of zero, and the exponents of both ends."""

    def __getitem__(self, function: str) -> Approximation:
        """Before a row is there, and where it never is: as many terms as there will be."""
        name = self.path + function
        if function in ALWAYS or name in self.table:
            return super().__getitem__(function)
        return Approximation(name, 0.0, 1.0, (0.0,) * (self.degree + 1))

    def raised(self, v: Vector, length: int, at: int) -> int:
        """Where a world has the row: its interval, from every world's, and what follows from that."""
        if v.held is not None:
            rows = v.held[..., at:length]
            norms = np.linalg.norm(rows, axis=-1)
            there = np.isfinite(norms) & (norms < _LARGEST)
            if not there.any():
                raise ParameterError(
                    f"the simulation, on the rows of the island with most of them, leaves no number at {self.path}",
                    hint="fewer components, a smaller alpha, or a larger margin",
                )
            unsettled = next((f for first, f in _UNSETTLED.items() if self.path.startswith(first)), 1.0)
            longest = float(norms[there].max()) * self.margin * unsettled
            shortest = next(value for first, value in _SHORTEST.items() if self.path.startswith(first))
            high = ceil(2 * log2(max(longest, shortest)))
            told = {
                "length": (1, high - WIDEST, high),
                "sign": (_side(rows[there, 0] / np.maximum(norms[there], 1e-30)), -1, 0),
            }
            for name, ends in told.items():
                self.ends[self.path + name] = ends
            found = agreed({self.path + name: interval(*ends) for name, ends in told.items()}, self.degree)
            self.table.update(found.table)
            self.raises.update(found.raises)
        return super().raised(v, length, at)


_SHORTEST = {"eigen/tridiagonal/": 2.0 ** (TOP // 2), "": 2.0 ** (TOP // 2 - MOST_RAISED)}
"""How short the longest row is taken to be at least, by the beginning of a path.

What is left beside a diagonal is nothing but noise once power iterations have settled. A reflection that took
it for a row would turn all eigenvectors that are still to come; one of a short row leaves them."""
_LENGTH = 8.0
"""Of the longest row in any world, after stretching."""


class _Lengths(Stretches):
    """Stretches rows so that they are about as long as the largest variance, in the worst of all worlds."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.powers: dict[str, tuple[int, ...]] = {}

    def of(self, place: str, rows: Matrix) -> Sequence[int]:
        """At the coordinator, whose rows they are."""
        if rows[0].held is None:
            return [0] * len(rows)
        norms = [np.linalg.norm(x.held[..., : self.columns], axis=-1) for x in rows]
        longest = [float(np.nanquantile(np.where(np.isfinite(norm), norm, np.nan), 0.9)) for norm in norms]
        powers = (floor(log2(_LENGTH / max(length, 2.0**-40))) for length in longest)
        self.powers[place] = tuple(max(0, min(MOST_STRETCHED, e)) for e in powers)
        return self.powers[place]


_TOO_CLOSE = 0.99
"""A reflection with a constant sign is good if no row lies closer to the axis on the other side."""


def _side(along: Values) -> int:
    """A constant sign where that makes good reflections in every world; else both sides of zero."""
    best = 1 if float(along.min()) >= -float(along.max()) else -1
    return best if float((best * along).min()) > -_TOO_CLOSE else 0


_UNSETTLED = {"power/0/": 2.0}
"""How much larger than in any world a number may be in the first iterations, which rest on the sketch."""


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

    def of(self, place: str, rows: Matrix) -> Sequence[int]:
        """As was told for this place; rows stay as they are where nothing was."""
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
