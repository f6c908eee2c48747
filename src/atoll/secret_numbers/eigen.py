"""Eigenvectors of a small symmetric matrix of secret numbers.

Jacobi's method: plane rotations, as many side by side as have no row in common, for a fixed number of sweeps,
so that nobody learns when the matrix was diagonal. It takes a fraction of the rounds of the shifted QR
iterations that the SF-PCA paper has under encryption (Alg 4), and needs no gaps in the spectrum.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from atoll.secret_numbers.bits import sign
from atoll.secret_numbers.field import PRIME, Elements, elements
from atoll.secret_numbers.functions import inverse_square_root, reciprocal, square_root
from atoll.secret_numbers.machine import Parties

__all__ = ["eigenvectors", "pairings"]

SWEEPS: Final = 6
"""Matrices of up to 20 rows are diagonal to 2^-30 after six, whatever they are."""
_HALF: Final = pow(2, -1, PRIME)
_LEVEL: Final = 2.0**-18
"""Entries of the diagonal closer than this are turned as if they were so far apart: no angle is undefined."""


def pairings(size: int) -> list[list[tuple[int, int]]]:
    """Every pair once, in as few sets of disjoint pairs as there are (a round-robin tournament)."""
    seats = list(range(size + size % 2))
    rounds = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        pairs = [(min(a, b), max(a, b)) for a, b in zip(seats[:half], reversed(seats[half:]), strict=True)]
        rounds.append([pair for pair in pairs if pair[1] < size])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


async def eigenvectors(parties: Parties, matrix: Elements, sweeps: int = SWEEPS) -> tuple[Elements, Elements]:
    """Eigenvalues from the largest on, and eigenvectors as rows; entries below 2^10."""
    size = matrix.shape[1]
    vectors = parties.constant(np.eye(size))
    for _ in range(sweeps):
        for pairs in pairings(size):
            turn = await _turn(parties, matrix, pairs)
            vectors = await parties.matrix_product(turn, vectors)
            half = await parties.matrix_product(turn, matrix)
            matrix = await parties.matrix_product(half, turn.transpose(0, 2, 1))
    values = np.stack([matrix[:, i, i] for i in range(size)], axis=1)
    return await _ordered(parties, values, vectors)


async def _turn(parties: Parties, matrix: Elements, pairs: list[tuple[int, int]]) -> Elements:
    """The rotation that makes the entries at these pairs zero, each by the smaller of its two angles.

    With d = (a_qq - a_pp) / 2 and b = a_pq, its tangent is sign(d) b / (|d| + sqrt(d^2 + b^2)). Sine
    and cosine are made of the tangent, so that a rounded angle is still a rotation.
    """
    p, q = [a for a, _ in pairs], [b for _, b in pairs]
    b, difference = matrix[:, p, q], elements(matrix[:, q, q] - matrix[:, p, p])
    side = await sign(parties, difference)
    doubled = await parties.product(np.stack([side, side], axis=1), np.stack([difference, 2 * b], axis=1))
    d, turned = doubled[:, 0], doubled[:, 1]
    d = elements(d + parties.constant(np.full(len(pairs), _LEVEL)))
    squares = await parties.times(np.stack([d, turned], axis=1), np.stack([d, turned], axis=1))
    distance = await square_root(parties, elements(squares.sum(axis=1)))
    tangent = await parties.times(turned, await reciprocal(parties, elements(d + distance)))
    one = parties.constant(np.ones(len(pairs)))
    cosine = await inverse_square_root(parties, elements(await parties.times(tangent, tangent) + one))
    sine = await parties.times(tangent, cosine)
    turn = parties.constant(np.eye(matrix.shape[1]))
    turn[:, p, p], turn[:, q, q] = cosine, cosine
    turn[:, p, q], turn[:, q, p] = elements(-sine), sine
    return turn


async def _ordered(parties: Parties, values: Elements, vectors: Elements) -> tuple[Elements, Elements]:
    """Largest first: neighbours are compared and exchanged in secret (odd-even transposition sort)."""
    size = values.shape[1]
    rows = np.concatenate([values[:, :, None], vectors], axis=2)
    for turn in range(size):
        upper = list(range(turn % 2, size - 1, 2))
        if not upper:
            continue
        lower = [i + 1 for i in upper]
        above, below = rows[:, upper], rows[:, lower]
        ordered = await sign(parties, elements(above[:, :, 0] - below[:, :, 0]))
        # (1 - sign) / 2 times the difference: nothing, or all of it.
        change = await parties.product(
            elements((parties.public(np.ones(len(upper), dtype=object)) - ordered) * _HALF)[:, :, None],
            elements(below - above),
        )
        rows = rows.copy()
        rows[:, upper], rows[:, lower] = elements(above + change), elements(below - change)
    return rows[:, :, 0], rows[:, :, 1:]
