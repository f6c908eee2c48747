"""M^(-1/2) of a secret matrix by the coupled iteration A = p(M), W <- A W, M <- A (M A).

p is given by Chebyshev coefficients on [0, 1] (X = 2M - I). It is evaluated with products that share
their left side: with h the half degree, T_(h+i) = 2 T_h T_i - T_(h-i) turns every polynomial of degree
below 2h into low + T_h high, where low and high have degree below h. Degrees 3, 7 and 15 in M take 2, 3
and 4 rounds for p(M) and M p(M) together, and one more for the new W and M.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import NamedTuple

from atoll.secret_matrices.machine import Coefficient, Job, Machine, Shared

Coefficients = Sequence[Fraction]
"""Exact: were M p(M) evaluated with other digits than p(M), the two would part where M is tiny."""

# Magnitudes below which everything stays while the singular values of P are at most 1 + 2^-9.
CHEBYSHEV_BITS = 2
COMBINATION_BITS = 7
STEP_BITS = 5
"""A = p(M) is below 2^5, so W grows by at most so many bits in a step."""


class Schedule(NamedTuple):
    """The steps that bring singular values in [2^range_log2, 1] to 1."""

    range_log2: float
    steps: tuple[tuple[Fraction, ...], ...]


@cache
def schedule(name: str) -> Schedule:
    """A schedule of the package's table."""
    text = resources.files("atoll.secret_matrices").joinpath("schedules.json").read_text()
    row = json.loads(text)["coupled"][name]
    return Schedule(row["range_log2"], tuple(tuple(map(_exact, step)) for step in row["steps"]))


def _exact(coefficient: float) -> Fraction:
    return Fraction(round(coefficient * 2**50), 2**50)


class Basis:
    """T_0 .. T_(h) of X = 2M - I as far as they are known."""

    def __init__(self, machine: Machine, M: Shared, fraction: int) -> None:
        self.machine = machine
        self.fraction = fraction
        self.T: dict[int, Shared] = {1: self.sum([(2.0, M)], -1.0, bits=CHEBYSHEV_BITS)}

    def sum(self, terms: Sequence[tuple[Coefficient, Shared]], constant: Coefficient, *, bits: int) -> Shared:
        """sum of coefficient times matrix, plus a multiple of the identity."""
        return self.machine.combine(terms, identity=constant, bits=bits, fraction=self.fraction)

    def combination(self, coefficients: Coefficients) -> Shared:
        """c_0 I + sum of c_j T_j."""
        terms = [(c, self.T[j]) for j, c in enumerate(coefficients) if j and c] or [(Fraction(0), self.T[1])]
        return self.sum(terms, coefficients[0], bits=COMBINATION_BITS)

    async def multiply(self, left: Shared, rights: Sequence[Shared], *, bits: int) -> list[Shared]:
        """left times each of rights, in one round."""
        size = rights[0].shape[1]
        together = self.machine.hstack(rights)
        out = await self.machine.products(
            [Job(((left, together),), fraction=self.fraction, bits=bits, name="polynomial", ahead=True)]
        )
        return [
            self.machine.part(out[0], slice(None), slice(i * size, (i + 1) * size))
            for i in range(len(rights))
        ]

    def doubled(self, product: Shared, minus: int) -> Shared:
        """2 T_i T_j - T_|i-j| from the product of the two."""
        if minus == 0:
            return self.sum([(2.0, product)], -1.0, bits=CHEBYSHEV_BITS)
        return self.sum([(2.0, product), (-1.0, self.T[minus])], 0.0, bits=CHEBYSHEV_BITS)


def split(coefficients: Coefficients, h: int) -> tuple[list[Fraction], list[Fraction]]:
    """(low, high) with p = low + T_h high; p has degree at most 2h, high has degree at most h."""
    c = [*coefficients, *[Fraction(0)] * (2 * h + 1 - len(coefficients))]
    low, high = c[:h], [c[h]] + [Fraction(0)] * h
    for i in range(1, h + 1):
        high[i] += 2 * c[h + i]
        low[h - i] -= c[h + i]
    return low, high


def times_m(coefficients: Coefficients) -> list[Fraction]:
    """The coefficients of M p(M), M = (X + 1) / 2."""
    out = [c / 2 for c in coefficients] + [Fraction(0)]
    out[1] += coefficients[0] / 2
    for j in range(1, len(coefficients)):
        out[j + 1] += coefficients[j] / 4
        out[j - 1] += coefficients[j] / 4
    return out


async def evaluate(basis: Basis, polynomials: Sequence[Coefficients]) -> list[Shared]:
    """Each polynomial (degree below 2h or equal to it), h a power of two; log2(2h) rounds."""
    degree = max(len(c) for c in polynomials) - 1
    h = 1
    while 2 * h < degree:
        h *= 2
    return await _evaluate(basis, list(polynomials), h)


async def _evaluate(basis: Basis, polynomials: list[Coefficients], h: int) -> list[Shared]:
    """Polynomials of degree at most 2h, from T_1 .. T_(h/2) (h > 1)."""
    T = basis.T
    if h // 2 <= 2 * len(polynomials) + 1:  # fewer products than the halves of all polynomials
        await _grow(basis, h)
        return await _finish(basis, polynomials, h)
    await _grow(basis, h // 2)
    parts = [split(c, h) for c in polynomials]
    # Everything of degree below h that the last round needs, and T_h, from T_(h/2).
    wanted = [low for low, _ in parts] + [high[:h] for _, high in parts]
    halves = [split(c, h // 2) for c in wanted]
    rights = [basis.combination(high) for _, high in halves] + [T[h // 2]]
    out = await basis.multiply(T[h // 2], rights, bits=COMBINATION_BITS)
    T[h] = basis.doubled(out[-1], 0)
    made = [
        basis.machine.combine([(1.0, basis.combination(low)), (1.0, product)], bits=COMBINATION_BITS)
        for (low, _), product in zip(halves, out, strict=False)
    ]
    lows, highs = made[: len(parts)], made[len(parts) :]
    rights = [
        basis.machine.combine([(1.0, high), (coefficients[h], T[h])], bits=COMBINATION_BITS)
        for high, (_, coefficients) in zip(highs, parts, strict=True)
    ]
    products = await basis.multiply(T[h], rights, bits=COMBINATION_BITS)
    return [
        basis.machine.combine([(1.0, low), (1.0, product)], bits=STEP_BITS)
        for low, product in zip(lows, products, strict=True)
    ]


async def _finish(basis: Basis, polynomials: list[Coefficients], h: int) -> list[Shared]:
    """The last round, from T_1 .. T_h."""
    parts = [split(c, h) for c in polynomials]
    products = await basis.multiply(
        basis.T[h], [basis.combination(high) for _, high in parts], bits=COMBINATION_BITS
    )
    return [
        basis.machine.combine([(1.0, basis.combination(low)), (1.0, product)], bits=STEP_BITS)
        for (low, _), product in zip(parts, products, strict=True)
    ]


async def _grow(basis: Basis, h: int) -> None:
    """T_2 .. T_h, doubling in every round."""
    T = basis.T
    known = 1
    while known < h:
        rights = list(range(1, known + 1))
        products = await basis.multiply(T[known], [T[i] for i in rights], bits=CHEBYSHEV_BITS)
        for i, product in zip(rights, products, strict=True):
            T[known + i] = basis.doubled(product, known - i)
        known *= 2
