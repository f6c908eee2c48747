"""The programs on plain integers: the rounding of a real run, without its cryptography.

A refresh rounds the sum of the parties' shares and each share by itself, so its result is off by up to
half a unit for each of them; the simulation adds as much. Bounds are checked where a real run relies on
them, so that a program that breaks one fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atoll.errors import RangeOverflow
from atoll.secret_matrices.coefficients import (
    COEFFICIENT_BITS,
    Coefficient,
    Floats,
    as_objects,
    at_grid,
    coefficient_units,
    public_integers,
    scaled_units,
)
from atoll.secret_matrices.machine import Job, Machine, Shared

_ALL = frozenset({"simulated"})


class Simulated(Machine):
    """All parties in one, in the clear; ``uniform`` gives numbers in [0, 1) for the simulated rounding."""

    def __init__(self, n_providers: int, uniform: Callable[[tuple[int, ...]], Floats]) -> None:
        self.n_providers = n_providers
        self._uniform = uniform
        self.rounds = 0
        self.largest: dict[str, float] = {}

    def private(
        self,
        owner: str | None,  # noqa: ARG002  all owners are one here
        values: Any,
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        return Shared(shape, fraction, bits, as_objects(values).reshape(shape), _ALL, norm_bits)

    async def _one_round(self, jobs: Sequence[Job]) -> list[Shared]:
        self.rounds += 1
        return [self._one(job) for job in jobs]

    def _one(self, job: Job) -> Shared:
        scale = max(x.fraction + y.fraction for x, y in job.terms)
        total = sum(
            (x.share * y.share if job.entrywise else x.share @ y.share) << (scale - x.fraction - y.fraction)
            for x, y in job.terms
        )
        if job.plain is not None:
            total = total + (job.plain.share << (scale - job.plain.fraction))
        values = self._rounded(total, scale - job.fraction)
        self._check(job.name, values, job.fraction, job.bits)
        return Shared(values.shape, job.fraction, job.bits, values, _ALL)

    def combine(
        self,
        terms: Sequence[tuple[Coefficient, Shared]],
        *,
        identity: Coefficient = 0.0,
        bits: int,
        fraction: int | None = None,
    ) -> Shared:
        scale = terms[0][1].fraction
        out = scale if fraction is None else fraction
        total = sum(coefficient_units(c) * x.share for c, x in terms)
        values = self._rounded(total, COEFFICIENT_BITS + scale - out)
        if identity:
            values = values + scaled_units(identity, out) * as_objects(np.eye(len(values)))
        self._check("combination", values, out, bits)
        return Shared(values.shape, out, bits, values, _ALL)

    def transpose(self, x: Shared) -> Shared:
        return Shared(x.shape[::-1], x.fraction, x.bits, x.share.T, _ALL)

    def hstack(self, matrices: Sequence[Shared]) -> Shared:
        values = np.concatenate([x.share for x in matrices], axis=1)
        return Shared(values.shape, matrices[0].fraction, max(x.bits for x in matrices), values, _ALL)

    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        values = x.share[rows, cols]
        return Shared(values.shape, x.fraction, x.bits, values, _ALL)

    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        total = public_integers(weights) @ x.share
        values = self._rounded(total, COEFFICIENT_BITS + x.fraction - fraction)
        self._check("public product", values, fraction, bits)
        return Shared(values.shape, fraction, bits, values, _ALL)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:
        values = self._rounded(public_integers(weights) * x.share, COEFFICIENT_BITS + x.fraction - fraction)
        self._check("weights", values, fraction, bits)
        return Shared(x.shape, fraction, bits, values, _ALL)

    def plus_public(self, x: Shared, values: Floats) -> Shared:
        return Shared(x.shape, x.fraction, x.bits + 1, x.share + at_grid(values, x.fraction), _ALL)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        return Shared(shape, x.fraction, x.bits, x.share.reshape(shape), _ALL)

    def trace(self, x: Shared, *, bits: int) -> Shared:
        return Shared((1, 1), x.fraction, bits, as_objects([[int(np.trace(x.share))]]), _ALL)

    def diagonal(self, x: Shared) -> Shared:
        return Shared((x.shape[0], 1), x.fraction, x.bits, np.diagonal(x.share).reshape(-1, 1), _ALL)

    def diag(self, x: Shared) -> Shared:
        size = x.shape[0]
        values = as_objects(np.eye(size)) * x.share
        return Shared((size, size), x.fraction, x.bits, values, _ALL)

    def triangle(self, x: Shared) -> Shared:
        values = x.share[np.triu_indices(x.shape[0])].reshape(-1, 1)
        return Shared(values.shape, x.fraction, x.bits, values, _ALL)

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:
        return self._floats(x, smudge_bits)

    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:
        noise = (self._uniform((self.n_providers, *x.shape)) - 0.5).sum(axis=0) * 2.0**smudge_bits
        return Shared(x.shape, x.fraction, x.bits, x.share + as_objects(np.rint(noise)), _ALL)

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:  # noqa: ARG002
        return self._floats(x, 0)

    async def same(self, values: Floats, *, recomputed: bool = True) -> Floats:  # noqa: ARG002
        return values

    def _floats(self, x: Shared, smudge_bits: int) -> Floats:
        noise = self._uniform(x.shape) - 0.5
        exact = np.array([[float(v / 2**x.fraction) for v in row] for row in x.share])
        return exact + noise * 2.0 ** (smudge_bits - x.fraction) * self.n_providers

    def _rounded(self, total: Any, drop: int) -> Any:
        if drop < 0:
            return total << -drop
        if drop == 0:
            return total
        error = np.round((self._uniform((self.n_providers, *total.shape)) - 0.5).sum(axis=0))
        return ((total + (1 << (drop - 1))) >> drop) + as_objects(error)

    def _check(self, name: str, values: Any, fraction: int, bits: int) -> None:
        largest = float(np.abs(values).max() / 2**fraction)
        self.largest[name] = max(self.largest.get(name, 0.0), largest)
        if largest >= 2.0**bits:
            raise RangeOverflow(f"{name}: {largest:.3g} is beyond its bound of 2^{bits}")
