"""The bits of a secret number, its sign and its highest bit.

A number is opened under a mask whose bits are shared, and the mask is taken away again bit by bit: the
borrows of a subtraction are a prefix sum, made in log2(k) rounds of products (Catrina, de Hoogh 2010).
"""

from __future__ import annotations

import numpy as np

from atoll.secret_numbers.field import MAGNITUDE, Elements, elements
from atoll.secret_numbers.machine import HIDING, Parties

__all__ = ["bits_of", "highest_bit", "sign"]


async def bits_of(parties: Parties, x: Elements, k: int = MAGNITUDE) -> Elements:
    """The k bits of numbers in [0, 2^k), lowest first, as a last axis."""
    shape, count = x.shape, int(np.prod(x.shape[1:]))
    x = x.reshape(parties.held, count)
    r = (await parties.random_bits(count * k)).reshape(parties.held, count, k)
    powers = np.array([1 << i for i in range(k)], dtype=object)
    high = parties.own_integers(count, 1 << HIDING)
    seen = await parties.opened(elements(x + (r * powers).sum(axis=2) + (high << k)))
    c = np.array([[(int(v) >> i) & 1 for i in range(k)] for v in seen], dtype=object).reshape(count, k)
    # x = c - r modulo 2^k. A bit of c below that of r makes a borrow, and equal ones pass one on.
    makes = elements((1 - c) * r)
    passes = elements(parties.public(1 - c) + (2 * c - 1) * r)
    borrows = await _prefix(parties, makes, passes)
    into = np.concatenate([np.zeros((parties.held, count, 1), dtype=object), borrows[:, :, :-1]], axis=2)
    differ = elements(parties.public(c) + (1 - 2 * c) * r)
    both = await parties.product(differ, into)
    return elements(differ + into - 2 * both).reshape(*shape, k)


async def _prefix(parties: Parties, makes: Elements, passes: Elements) -> Elements:
    """Whether a borrow leaves each place: made there, or made below and passed on."""
    k, step = makes.shape[2], 1
    while step < k:
        upper, lower = passes[:, :, step:], slice(None, k - step)
        moved = await parties.product(
            np.concatenate([upper, upper], axis=2),
            np.concatenate([makes[:, :, lower], passes[:, :, lower]], axis=2),
        )
        makes, passes = makes.copy(), passes.copy()
        makes[:, :, step:] = makes[:, :, step:] + moved[:, :, : k - step]
        passes[:, :, step:] = moved[:, :, k - step :]
        makes, step = elements(makes), 2 * step
    return makes


async def highest_bit(parties: Parties, x: Elements, k: int = MAGNITUDE) -> Elements:
    """One at the place of the highest bit of numbers in [0, 2^k), zeros elsewhere; all zeros for zero."""
    bits = await bits_of(parties, x, k)
    shape = bits.shape
    above = bits.reshape(parties.held, -1, k)
    step = 1
    while step < k:  # above[i]: whether a bit at i or higher is set
        low, high = above[:, :, : k - step], above[:, :, step:]
        both = await parties.product(low, high)
        above = np.concatenate([elements(low + high - both), above[:, :, k - step :]], axis=2)
        step *= 2
    higher = np.concatenate(
        [above[:, :, 1:], np.zeros((parties.held, above.shape[1], 1), dtype=object)], axis=2
    )
    return elements(above - higher).reshape(shape)


async def sign(parties: Parties, x: Elements, k: int = MAGNITUDE) -> Elements:
    """1 for numbers from 0 on, -1 below, as integers; |x| < 2^k."""
    lifted = elements(x + parties.public(np.full(x.shape[1:], 1 << k, dtype=object)))
    top = (await bits_of(parties, lifted, k + 1))[..., k]
    return elements(2 * top - parties.public(np.ones(x.shape[1:], dtype=object)))
