"""Runs of the paper's Algorithm 1: on the clear twin, with the intervals of its own simulation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.protocols.pca.sfpca.paper import parameters
from atoll.protocols.pca.sfpca.paper.algorithm1 import Own, Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.certificate import examined
from atoll.protocols.pca.sfpca.paper.intervals import FLOOR, Intervals, simulated, simulating, taken
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course, Factorisation, Method
from atoll.protocols.pca.sfpca.paper.sketch import sketch_of, spreading
from atoll.secret_matrices.slots.approximations import agreed
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.secret_matrices.slots.machine import Slots
from atoll.study.address import Address

SEED = b"s" * 32
NOISE = 1e-7
"""Of a ciphertext's numbers at the paper's parameters."""
SMALL = "test-slots-10"
parameters.SETS[SMALL] = (1 << 10, 7)
parameters.INSECURE.add(SMALL)


class Ran(NamedTuple):
    components: np.ndarray[Any, Any]
    tau: float
    outside: dict[str, float]
    tally: Any


def table(rows: int = 120, seed: int = 1) -> np.ndarray[Any, Any]:
    deviations = np.array([4.0, 2.0, 1.0, 0.7, 0.5])
    return np.random.default_rng(seed).normal(size=(rows, 5)) * deviations + 3.0


def exact(X: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    return np.linalg.svd(X - X.mean(axis=0))[2][:k]


def shape_of(parts: Sequence[np.ndarray[Any, Any]], psi: int, paper: Algorithm) -> Shape:
    return Shape(tuple(map(len, parts)), parts[0].shape[1], psi, psi + paper.alpha)


def in_units(parts: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """In units of their range, on spread columns."""
    exponent = int(np.ceil(np.log2(max(np.abs(part).max() for part in parts))))
    turn = spreading(SEED, parts[0].shape[1])
    assert turn is not None
    return [np.ldexp(part, -exponent) @ turn.T for part in parts]


def agreed_intervals(
    parts: Sequence[np.ndarray[Any, Any]],
    psi: int,
    paper: Algorithm,
    method: Method = "precomp",
    qr: Factorisation = "qr",
) -> Intervals:
    """What the simulation of the provider with most rows says."""
    shape = shape_of(parts, psi, paper)
    rows = in_units(parts)[simulating(shape.rows)]
    told = simulated(rows, shape, Course(method, qr), paper, SEED)
    return taken(told, shape.rho, Address("p0", "provider"))


def stated(X: np.ndarray[Any, Any], p: int) -> dict[str, Any]:
    """Intervals of the pooled table for one component, as a study states them."""
    told = agreed_intervals([X], 1, Algorithm(p=p, alpha=1, w=1), "seq")
    return {
        "scale": told.scale,
        "variances": list(told.variances),
        "places": {place: list(ends) for place, ends in told.of.items()},
        "stretches": {place: list(powers) for place, powers in told.stretches.powers.items()},
    }


def planned(
    parts: Sequence[np.ndarray[Any, Any]],
    psi: int,
    paper: Algorithm,
    intervals: Intervals,
    course: Course,
    seed: bytes = SEED,
) -> tuple[Plan, list[Any]]:
    """What all roles know, and the inputs of all: the coordinator's first, which is none."""
    shape = shape_of(parts, psi, paper)
    use = agreed(intervals.of, paper.degree, FLOOR)
    plan = Plan(shape, course, paper, use, intervals.variances, intervals.stretches)
    sketch, start = sketch_of(seed, shape.rho, shape.n), 0
    given: list[Any] = [None]
    for i, part in enumerate(in_units(parts)):
        X = part * 2.0**intervals.scale
        given.append(Own(X, sketch.centred(X, start), place=i))
        start += len(part)
    return plan, given


def whole(plan: Plan, receivers: frozenset[str] = frozenset(["p0/provider"])) -> Any:
    """Steps 2 to 7 and the certificate: tau, then the components."""

    async def program(m: Slots, own: Own | None) -> Any:
        with m.tally.part("routine"):
            found = await principal(m, plan, own)
        checked = await examined(m, plan, found)
        tau = await m.opened([checked.tau], [1], receivers)
        W = await m.opened(checked.W, [plan.shape.columns] * plan.shape.psi, receivers)
        return None if tau is None or W is None else [*tau, *W]

    return program


def run_clear(
    parts: Sequence[np.ndarray[Any, Any]],
    psi: int,
    paper: Algorithm,
    intervals: Intervals,
    *,
    method: Method = "precomp",
    qr: Factorisation = "qr",
    seed: bytes = SEED,
    noise: float = NOISE,
) -> Ran:
    """Steps 2 to 7 and the certificate, on plain numbers with the noise of ciphertexts."""
    plan, given = planned(parts, psi, paper, intervals, Course(method, qr), seed)
    slots = max(512, 1 << (plan.shape.longest - 1).bit_length())
    machines = Clear.machines(len(parts), slots=slots, noise=noise)
    with np.errstate(all="ignore"):  # what lies outside its interval may end anywhere
        tau, *W = asyncio.run(together(whole(plan, frozenset(["coordinator"])), machines, given))[0]
    turn = spreading(SEED, plan.shape.columns)
    assert turn is not None
    return Ran(np.array(W) @ turn, float(tau[0]), machines[0].outside, machines[0].tally)


def cosines(found: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.abs((found * right).sum(axis=1)) / lengths)
