"""Segments: the parts into which a contributor cuts its values before they are mixed.

Mehnaz, Bellala, Bertino: A Secure Sum Protocol and Its Application to Privacy-preserving Multi-party
Analytics (2017), section 4.2, phase (I), and section 8 (3).

``uniform``: all segments but the last are uniform modulo 2^192. This is the only cut that hides anything
by itself; with blinded values (:mod:`atoll.secure_sums.mix`) nothing but the sum can be read.
``fractions``: the paper's own, alpha_j times the value with positive alpha_j that add up to one. A segment
has the sign of the value and is never larger; the segments of one vector are parallel.
``random``: the paper's alternative, integers from [-R, R]; whoever sees all segments finds those that belong
together by their small sum.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from atoll import fixedpoint, randomness
from atoll.fixedpoint import Accumulator, Limbs

Cut = Literal["uniform", "fractions", "random"]

_DOMAIN = "atoll/mix/segments/v1"
_FRACTION_BITS = 32


def cut(values: Limbs, count: int, how: Cut, spread_bits: int, seed: bytes) -> list[Limbs]:
    """``count`` segments that add up to the values modulo 2^192."""  # section 4.2, (I), segmentation
    if how == "fractions":
        parts = _fractions(values, count, seed)
    else:
        bits = fixedpoint.WIDTH_BITS if how == "uniform" else spread_bits
        parts = [_signed(values.shape[1], bits, seed, number) for number in range(count - 1)]
    last = Accumulator(values.shape[1])
    last.add(values)
    for part in parts:
        last.subtract(part)
    return [*parts, last.total()]


def _signed(n: int, bits: int, seed: bytes, number: int) -> Limbs:
    """Uniform two's complement integers of so many bits."""
    words = randomness.expand_words(seed, fixedpoint.LIMBS * n, _DOMAIN, number)
    limbs = words.reshape(fixedpoint.LIMBS, n).copy()
    for index in range(fixedpoint.LIMBS):
        drop = 64 * (index + 1) - bits
        if drop <= 0:
            continue
        if drop >= 64:
            limbs[index] = (limbs[index - 1].view(np.int64) >> 63).view(np.uint64)
        else:
            limbs[index] = (limbs[index].view(np.int64) >> drop).view(np.uint64)
    return limbs


def _fractions(values: Limbs, count: int, seed: bytes) -> list[Limbs]:
    """alpha_j x for j < count, rounded down; one alpha_j for the whole vector."""
    words = randomness.expand_words(seed, count, _DOMAIN, "alpha") >> np.uint64(64 - _FRACTION_BITS)
    weights = [int(word) + 1 for word in words]
    integers, whole = fixedpoint.to_integers(values), sum(weights)
    return [fixedpoint.from_integers([x * weight // whole for x in integers]) for weight in weights[:-1]]
