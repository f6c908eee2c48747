"""The intervals of the Chebyshev approximations, from simulations in the clear at one provider.

As the paper has it: the provider with most rows runs the algorithm on its own rows, repeated until they are
as many as the joint table's, and tells everybody between what values each square root lay. It does so for
several sketches and drawings of its rows, because how fast the first iterations settle rests on the sketch, and
other rows are not quite like its own. What it tells are powers of two, widened by the study's margin: the
interval of a place says its value to a factor of four or so, and nothing finer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import ceil, floor, log2
from typing import NamedTuple

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix as Table
from atoll.protocols.checked import refuse
from atoll.protocols.pca.sfpca.paper.algorithm1 import Own, Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.messages import Estimates
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.protocols.pca.sfpca.paper.sketch import sketch_of
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.study.address import Address

SIMULATIONS = 8
"""Sketches that the simulation tries."""
WIDEST = 10
"""Powers of two between the ends of an interval, at most: what lies below is taken for small."""
_EXPONENTS = range(-120, 61)
_SCALES = range(-60, 61)

Seen = Mapping[str, tuple[float, float]]
"""Between what values the argument at a place lay."""


def simulating(rows: Sequence[int]) -> int:
    """Which provider simulates: the first of those with most rows."""
    return int(np.argmax(rows))


def simulated(rows: Table, shape: Shape, course: Course, paper: Algorithm, seed: bytes) -> Estimates:
    """What the simulating provider tells, from its rows in units of the range."""
    values = np.linalg.eigvalsh(_covariance(rows))[::-1]
    scale = _scale_of(float(values[0]))
    leading = values[: shape.rho] * 4.0**scale
    variances = tuple(floor(log2(max(v, 2.0**-50))) for v in leading)
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for index in range(SIMULATIONS):
        drawn = _drawn(rows, shape.n, randomness.derive(seed, "rows", index), whole=index == 0)
        for place, (least, most) in _one(
            drawn * 2.0**scale, shape, course, paper, variances, randomness.derive(seed, "sketch", index)
        ).items():
            low[place] = min(least, low.get(place, least))
            high[place] = max(most, high.get(place, most))
    places = tuple(sorted(high))
    ends = [_ends(low[place], high[place], paper.margin) for place in places]
    return Estimates(scale, variances, places, tuple(a for a, _ in ends), tuple(b for _, b in ends))


def _covariance(rows: Table) -> Table:
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred.T @ centred / len(rows))


def _scale_of(largest: float) -> int:
    """The power of two by which data are multiplied so that their largest variance is 1/4 to 1."""
    return 0 if largest <= 0 else min(_SCALES[-1], max(_SCALES[0], floor(-log2(largest) / 2)))


def _drawn(rows: Table, n: int, seed: bytes, *, whole: bool) -> Table:
    """As many rows as the joint table has: the provider's own again and again, or drawn from them."""
    if whole:
        return np.resize(rows, (n, rows.shape[1]))
    words = randomness.expand_words(seed, n, "atoll/sfpca-paper/simulation")
    return rows[(words % np.uint64(len(rows))).astype(np.int64)]


def _one(
    table: Table, shape: Shape, course: Course, paper: Algorithm, variances: tuple[int, ...], seed: bytes
) -> Seen:
    """One run of the algorithm in the clear, on one table, without approximations."""
    alone = Shape((shape.n,), shape.columns, shape.psi, shape.rho)
    slots = 1 << max(4, (max(shape.n, shape.columns) - 1).bit_length())
    if course.method == "precomp":
        slots = 1 << max(4, (shape.columns - 1).bit_length())
    recording = Recording()
    plan = Plan(alone, course, paper, sketch_of(seed, shape.rho, shape.n), recording, variances)
    machines = Clear.machines(1, slots=slots)
    asyncio.run(_together(machines, plan, table))
    return recording.seen


async def _together(machines: Sequence[Clear], plan: Plan, table: Table) -> None:
    await together(lambda m, own: principal(m, plan, own), machines, [None, Own(table, 0)])


def _ends(low: float, high: float, margin: float) -> tuple[int, int]:
    top = min(_EXPONENTS[-1], ceil(log2(max(high, 2.0**-100) * margin)))
    bottom = floor(log2(max(low, 2.0**-110) / margin))
    return max(min(bottom, top - 1), top - WIDEST, _EXPONENTS[0]), top


# ---- what everybody takes ----


class Intervals(NamedTuple):
    """The scale, the components' variances, and an interval for each place."""

    scale: int
    variances: tuple[int, ...]
    of: Mapping[str, tuple[float, float]]


def taken(e: Estimates, rho: int, sender: Address) -> Intervals:
    """What was told, checked."""
    if not len(e.places) == len(e.lows) == len(e.highs) or len(set(e.places)) < len(e.places):
        raise refuse(sender, "intervals that do not belong to places")
    ends = list(zip(e.lows, e.highs, strict=True))
    if any(a not in _EXPONENTS or b not in _EXPONENTS or a >= b for a, b in ends):
        raise refuse(sender, "intervals that are none")
    if e.scale not in _SCALES or len(e.variances) != rho or any(v not in _SCALES for v in e.variances):
        raise refuse(sender, f"a scale and {rho} variances that are no powers of two within 2^60")
    of = {place: (2.0**a, 2.0**b) for place, (a, b) in zip(e.places, ends, strict=True)}
    return Intervals(e.scale, e.variances, of)
