"""Runs of the paper's Algorithm 1: on the clear twin, with the intervals of its own simulation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.protocols.pca.sfpca.paper import parameters
from atoll.protocols.pca.sfpca.paper.algorithm1 import Own, Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.certificate import examined
from atoll.protocols.pca.sfpca.paper.intervals import Intervals, simulated, taken
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course, Method
from atoll.protocols.pca.sfpca.paper.sketch import sketch_of, spreading
from atoll.secret_matrices.slots.approximations import agreed
from atoll.secret_matrices.slots.clear import Clear, together
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
    parts: Sequence[np.ndarray[Any, Any]], psi: int, paper: Algorithm, method: Method = "precomp"
) -> Intervals:
    """What the first provider's simulation says."""
    shape = shape_of(parts, psi, paper)
    told = simulated(in_units(parts)[0], shape, Course(method, "qr"), paper, SEED)
    return taken(told, shape.rho, Address("p0", "provider"))


def run_clear(
    parts: Sequence[np.ndarray[Any, Any]],
    psi: int,
    paper: Algorithm,
    intervals: Intervals,
    *,
    method: Method = "precomp",
    seed: bytes = SEED,
    noise: float = NOISE,
) -> Ran:
    """Steps 2 to 7 and the certificate, on plain numbers with the noise of ciphertexts."""
    shape = shape_of(parts, psi, paper)
    use = agreed(intervals.of, paper.degree)
    plan = Plan(shape, Course(method, "qr"), paper, use, intervals.variances, intervals.stretches)
    sketch, inputs, start = sketch_of(seed, shape.rho, shape.n), [None], 0
    owned: list[Any] = []
    for part in in_units(parts):
        X = part * 2.0**intervals.scale
        owned.append(Own(X, sketch.centred(X, start)))
        start += len(part)
    slots = max(512, 1 << (shape.longest - 1).bit_length())
    machines = Clear.machines(len(parts), slots=slots, noise=noise)

    async def program(m: Clear, own: Own | None) -> Any:
        found = await principal(m, plan, own)
        checked = await examined(m, plan, found)
        receivers = frozenset(["coordinator"])
        tau = await m.opened([checked.tau], [1], receivers)
        return tau, await m.opened(checked.W, [shape.columns] * psi, receivers)

    with np.errstate(all="ignore"):  # what lies outside its interval may end anywhere
        tau, W = asyncio.run(together(program, machines, [*inputs, *owned]))[0]
    turn = spreading(SEED, shape.columns)
    assert turn is not None
    return Ran(np.array(W) @ turn, float(tau[0][0]), machines[0].outside, machines[0].tally)


def cosines(found: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray(np.abs((found * right).sum(axis=1)) / lengths)
