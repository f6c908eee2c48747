"""The steps that are no polynomials, on shares: the paper's appendix D.1.

Froelicher et al. 2023, appendix D.1, protocol 1: an encrypted number becomes shares of the providers modulo a
prime, they compute on these (:mod:`atoll.secret_numbers`), and encrypt what they have of the result. No
interval is needed. ``lss-op``: inverse roots and signs of algorithm 2; ``lss``: step 6 as well.

Deviations: the eigenvectors of step 6 are found by Jacobi's method, which needs no w and no gaps; and triples
come from a dealer, as the paper has it, only where the study names one: otherwise the providers make them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atoll.network import Network, Record
from atoll.protocols.pca.sfpca.paper.parameters import DEALER
from atoll.secret_matrices.slots.approximations import Approximations, Divided
from atoll.secret_matrices.slots.machine import Approximation, Matrix, Slots, Vector
from atoll.secret_matrices.slots.products import period
from atoll.secret_numbers import eigen, functions
from atoll.secret_numbers.field import FRACTION, MAGNITUDE, PRIME, Elements, elements
from atoll.secret_numbers.machine import Parties
from atoll.secret_numbers.party import Party
from atoll.secret_numbers.supplies import Dealt, Joint
from atoll.study.model import Study

FLOOR = 2.0**-18
"""Squares of lengths are lifted by this before their root: well above a ciphertext's noise, so that none is
below zero; one over the root is no larger than 2^9."""

Function = Callable[[Parties, list[Elements]], Awaitable[list[Elements]]]


def parties_of(net: Network, record: Record, study: Study) -> Party:
    """A provider's machine for shares, with the study's dealer or without one."""
    dealers = study.who(DEALER)
    supply = Dealt(dealers[0]) if dealers else Joint()
    return Party(net, record, study.digest, study.who("provider"), supply)


@dataclass(frozen=True)
class OnShares(Approximations):
    """Inverse roots and signs by the providers' shares; the coordinator has no parties."""

    table: dict[str, Approximation] = field(default_factory=dict)
    parties: Parties | None = None

    @property
    def levels_of_length(self) -> int:
        return 0

    async def divided(self, m: Slots, norm_2: Vector, v_0: Vector) -> Divided:
        # A ciphertext that became shares is not refreshed any more: what went in comes back as well.
        rows = await on_shares(m, self.parties, [norm_2, v_0], [1, 1], _inverse_and_sign, 4)
        inverse, side, norm_2, v_0 = rows
        n = m.times(norm_2, m.times(inverse, inverse))
        return Divided(inverse, n, m.times(v_0, inverse), side)

    async def inverse_root(self, m: Slots, k: Vector) -> Vector:
        [scale] = await on_shares(m, self.parties, [k], [1], _inverse_root, 1)
        return scale


async def eigenvectors(m: Slots, parties: Parties | None, Z: Matrix) -> Matrix:
    """Step 6: rows of eigenvectors of Z, the largest eigenvalue first."""
    size = len(Z)
    return await on_shares(m, parties, Z, [size] * size, _eigenvectors, size)


async def on_shares(
    m: Slots, parties: Parties | None, rows: Matrix, lengths: Sequence[int], function: Function, count: int
) -> Matrix:
    """A function of rows of the coordinator: as many rows, as they lie in slots, as ``count`` says."""
    held = await m.to_shares(rows, lengths, FRACTION)
    made: list[Any] | None = None
    if parties is not None and held is not None:
        found = await function(parties, [elements(values)[None] for values in held])
        made = [_laid_out(row[0], m.slots) for row in found]
    return await m.from_shares(made, [m.slots] * count, PRIME, FRACTION)


async def _inverse_and_sign(parties: Parties, given: list[Elements]) -> list[Elements]:
    norm_2, v_0 = given
    lifted = elements(norm_2 + parties.constant(np.full(norm_2.shape[1:], FLOOR)))
    inverse = await functions.inverse_square_root(parties, lifted)
    return [inverse, await functions.signed_one(parties, v_0), norm_2, v_0]


async def _inverse_root(parties: Parties, given: list[Elements]) -> list[Elements]:
    return [await functions.inverse_square_root(parties, given[0])]


async def _eigenvectors(parties: Parties, given: list[Elements]) -> list[Elements]:
    Z = np.stack(given, axis=1)
    # The two halves of Z were rounded apart.
    symmetric = await parties.rounded(elements(Z + Z.transpose(0, 2, 1)), 1, MAGNITUDE)
    _, vectors = await eigen.eigenvectors(parties, symmetric)
    return [vectors[:, i] for i in range(Z.shape[1])]


def _laid_out(row: Elements, slots: int) -> Elements:
    """A row as it lies in the slots: repeated, with its period."""
    size = period(len(row))
    padded = np.zeros(size, dtype=object)
    padded[: len(row)] = row
    return np.tile(padded, slots // size)
