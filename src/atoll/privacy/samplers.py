"""Exact samplers on the integers, vectorised, as functions of a 32-byte seed.

Discrete Laplace and discrete Gaussian follow Canonne, Kamath and Steinke (2020), Algorithms 1-3; the
Polya (negative binomial) share of a discrete Laplace is drawn as a Poisson number of logarithmic
variables.

*Exact* means: no floating-point rounding reaches the distribution. Every choice compares a uniform
number with a real threshold. The threshold is first evaluated in float64; where the two are farther
apart than ``MARGIN``, which is far above any rounding error, the comparison is already decided.
Otherwise (once in 2^31 choices) it is repeated with decimals of growing precision, and the uniform
number gets as many further bits as it takes. A wider margin therefore never changes a draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from atoll.errors import ParameterError
from atoll.randomness import derive, expand, expand_words

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
# A real number to a wished number of decimal digits (a few of the last may be wrong).
Exact = Callable[[int], Decimal]

DOMAIN = "atoll/privacy/sampler/v1"
MARGIN = 2.0**-32
# Above this width a draw of 60 widths would leave int64.
MAX_WIDTH = 2.0**56

# Tries per draw, about; a wrong guess costs a second round, nothing else.
_GAUSSIAN_TRIES = 1.35
_LOGARITHMIC_TRIES = 1.7

_GUARD_DIGITS = 10
_WORD = 1 << 64


class Stream:
    """Uniform words from a seed; every request has its own counter, so no word serves twice."""

    def __init__(self, seed: bytes, domain: tuple[str | bytes | int, ...], margin: float = MARGIN) -> None:
        self._key = derive(seed, DOMAIN, *domain)
        self.margin = margin
        self.requests = 0

    def __repr__(self) -> str:
        return f"Stream({self.requests} requests)"

    def words(self, count: int) -> Words:
        self.requests += 1
        return expand_words(self._key, count, "words", self.requests)

    def further_bits(self, request: int, index: int, n_bytes: int) -> int:
        """More bits of one uniform number, from a stream of their own."""
        return int.from_bytes(expand(self._key, n_bytes, "further", request, index), "big")


def _collect(count: int, tries_per_draw: float, accepted: Callable[[int], Integers]) -> Integers:
    """The first ``count`` results of a rejection sampler that is asked for some more tries than it needs."""
    parts, have = [np.empty(0, dtype=np.int64)], 0
    while have < count:
        parts.append(accepted(int((count - have) * tries_per_draw * 1.02) + 16))
        have += parts[-1].size
    return np.concatenate(parts)[:count]


def below(stream: Stream, bound: int, count: int) -> Integers:
    """Uniform integers in [0, bound), by rejection: no modulo bias."""
    span = 1 << (bound - 1).bit_length()

    def accepted(tries: int) -> Integers:
        words = stream.words(tries) & np.uint64(span - 1)
        return words[words < np.uint64(bound)].astype(np.int64)

    return _collect(count, span / bound, accepted)


def bernoulli(stream: Stream, approximate: Floats, exact: Callable[[int, int], Decimal]) -> Flags:
    """True with probability ``exact(index, digits)``, of which ``approximate`` is a float64 image."""
    words = stream.words(approximate.size)
    distance = words.astype(np.float64) * 2.0**-64 - approximate
    result: Flags = distance < 0.0
    for index in np.flatnonzero(np.abs(distance) <= stream.margin):
        result[index] = _uniform_is_below(stream, int(words[index]), int(index), partial(exact, int(index)))
    return result


def _uniform_is_below(stream: Stream, word: int, index: int, threshold: Exact) -> bool:
    """Whether the uniform number that starts with ``word`` lies below a real threshold."""
    request, n_bits = stream.requests, 64
    while True:
        numerator = word
        if n_bits > 64:
            extra = n_bits - 64
            numerator = (word << extra) | stream.further_bits(request, index, extra // 8)
        digits = int(n_bits * 0.302) + _GUARD_DIGITS
        with localcontext() as context:
            context.prec = digits + _GUARD_DIGITS
            value, slack = threshold(digits + _GUARD_DIGITS), Decimal(10) ** (-digits)
            low = Decimal(numerator) / Decimal(1 << n_bits)
            high = Decimal(numerator + 1) / Decimal(1 << n_bits)
            if high <= value - slack:
                return True
            if low >= value + slack:
                return False
        n_bits += 64


def _exp_negative(exponent: Fraction, digits: int) -> Decimal:
    """exp(-exponent) with an absolute error far below 10^-digits, for exponent >= 0."""
    with localcontext() as context:
        context.prec = digits + _GUARD_DIGITS
        return (-(Decimal(exponent.numerator) / Decimal(exponent.denominator))).exp()


@dataclass(frozen=True)
class _CountTable:
    """Inverse distribution function of a small non-negative integer, in 64-bit words."""

    words: Words
    cdf: Callable[[int, int], Decimal]


def _count_table(cdf: Callable[[int, int], Decimal]) -> _CountTable:
    steps: list[int] = []
    while not steps or steps[-1] < _WORD - 1:
        steps.append(int(cdf(len(steps), 60) * _WORD))
    return _CountTable(np.array(steps, dtype=np.uint64), cdf)


def _draw_counts(stream: Stream, table: _CountTable, count: int) -> Integers:
    """How many steps of the distribution function lie at or below a uniform number."""
    words = stream.words(count)
    result = np.searchsorted(table.words, words, side="left").astype(np.int64)
    at_step = table.words[np.minimum(result, table.words.size - 1)] == words
    for index in np.flatnonzero(at_step | (stream.margin >= 1.0)):
        result[index] = 0
        while not _uniform_is_below(
            stream, int(words[index]), int(index), partial(table.cdf, int(result[index]))
        ):
            result[index] += 1
    return result


@lru_cache(maxsize=1)
def _unit_geometric() -> _CountTable:
    """P[V = k] = (1 - 1/e) e^-k."""
    return _count_table(lambda k, digits: 1 - _exp_negative(Fraction(k + 1), digits))


def geometric(stream: Stream, scale: int, count: int) -> Integers:
    """P[X = k] = (1 - e^(-1/scale)) e^(-k/scale), k >= 0 (CKS Algorithm 2, lines 2-10)."""

    def accepted(tries: int) -> Integers:
        trial = below(stream, scale, tries)
        return trial[bernoulli(stream, np.exp(-trial / scale), partial(_exact_geometric, trial, scale))]

    remainder = _collect(count, 1.0 / (1.0 - math.exp(-1.0)), accepted)
    return remainder + np.int64(scale) * _draw_counts(stream, _unit_geometric(), count)


def _exact_geometric(trial: Integers, scale: int, index: int, digits: int) -> Decimal:
    return _exp_negative(Fraction(int(trial[index]), scale), digits)


def _laplace(stream: Stream, scale: int, count: int) -> Integers:
    def accepted(tries: int) -> Integers:
        size = geometric(stream, scale, tries)
        negative = (stream.words(tries) & np.uint64(1)).astype(bool)
        once: Flags = ~(negative & (size == 0))  # zero must not count twice
        return np.where(negative, -size, size)[once]

    return _collect(count, 1.0 + 1.0 / (2.0 * scale), accepted)


def discrete_laplace(
    seed: bytes, scale: int, count: int, *domain: str | bytes | int, margin: float = MARGIN
) -> Integers:
    """P[X = k] proportional to exp(-|k|/scale)."""
    check_width(scale)
    return _laplace(Stream(seed, ("laplace", *domain), margin), scale, count)


def discrete_gaussian(
    seed: bytes, sigma: float, count: int, *domain: str | bytes | int, margin: float = MARGIN
) -> Integers:
    """P[X = k] proportional to exp(-k^2 / (2 sigma^2)) (CKS Algorithm 3)."""
    check_width(sigma)
    stream = Stream(seed, ("gaussian", *domain), margin)
    scale = int(sigma) + 1

    def accepted(tries: int) -> Integers:
        trial = _laplace(stream, scale, tries)
        off = np.abs(trial) / sigma - sigma / scale
        return trial[
            bernoulli(stream, np.exp(-0.5 * off * off), partial(_exact_gaussian, trial, sigma, scale))
        ]

    return _collect(count, _GAUSSIAN_TRIES, accepted)


def _exact_gaussian(trial: Integers, sigma: float, scale: int, index: int, digits: int) -> Decimal:
    variance = Fraction(sigma) ** 2
    off = abs(int(trial[index])) - variance / scale
    return _exp_negative(off * off / (2 * variance), digits)


def polya_share(
    seed: bytes, scale: int, holders: int, count: int, *domain: str | bytes | int, margin: float = MARGIN
) -> Integers:
    """The sum of ``holders`` independent shares is distributed exactly as ``discrete_laplace(scale)``.

    A share is the difference of two negative binomials with shape 1/holders and ratio e^(-1/scale).
    """
    check_width(scale)
    if holders < 1:
        raise ParameterError(f"a noise share needs at least one holder, got {holders}")
    up = _negative_binomial(Stream(seed, ("polya+", *domain), margin), scale, holders, count)
    down = _negative_binomial(Stream(seed, ("polya-", *domain), margin), scale, holders, count)
    return up - down


def _negative_binomial(stream: Stream, scale: int, holders: int, count: int) -> Integers:
    """Compound Poisson form: a Poisson number of logarithmic variables."""
    terms = _draw_counts(stream, _poisson_of_holder(scale, holders), count)
    owner = np.repeat(np.arange(count), terms)
    out = np.zeros(count, dtype=np.int64)
    np.add.at(out, owner, _logarithmic(stream, scale, owner.size))
    return out


def _log_rate(scale: int, digits: int) -> Decimal:
    """-ln(1 - e^(-1/scale))."""
    with localcontext() as context:
        context.prec = digits + 3 * _GUARD_DIGITS + len(str(scale))
        return -(1 - (Decimal(-1) / Decimal(scale)).exp()).ln()


@lru_cache(maxsize=64)
def _poisson_of_holder(scale: int, holders: int) -> _CountTable:
    def cdf(k: int, digits: int) -> Decimal:
        with localcontext() as context:
            context.prec = digits + 3 * _GUARD_DIGITS
            rate = _log_rate(scale, digits) / holders
            term = total = (-rate).exp()
            for step in range(1, k + 1):
                term = term * rate / step
                total += term
            return total

    return _count_table(cdf)


def _logarithmic(stream: Stream, scale: int, count: int) -> Integers:
    """P[K = k] proportional to e^(-k/scale)/k, k >= 1.

    A block [2^j, 2^(j+1)) is chosen uniformly and k uniformly in it; beyond ``2^last > scale`` k is
    2^last plus a geometric variable. The acceptance makes up for the difference: about 0.7.
    """
    last = scale.bit_length()

    def accepted(tries: int) -> Integers:
        block = below(stream, last + 1, tries)
        start = np.int64(1) << block
        offset = (stream.words(tries) & (start - 1).astype(np.uint64)).astype(np.int64)
        tail = block == last
        offset[tail] = geometric(stream, scale, int(tail.sum()))
        trial = start + offset
        chance = _logarithmic_acceptance(trial, start, ~tail, scale)
        exact = partial(_exact_logarithmic_acceptance, trial, block, last, scale)
        return trial[bernoulli(stream, chance, exact)]

    return _collect(count, _LOGARITHMIC_TRIES, accepted)


def _logarithmic_acceptance(trial: Integers, start: Integers, inside: Flags, scale: int) -> Floats:
    in_block = start / trial * np.exp(-trial / scale)
    in_tail = np.exp(-start / scale) / (-np.expm1(-1.0 / scale) * trial)
    # The tail's formula stands for the last block only; elsewhere it may exceed one and is not used.
    return np.asarray(np.where(inside, in_block, in_tail), dtype=np.float64)


def _exact_logarithmic_acceptance(
    trials: Integers, blocks: Integers, last: int, scale: int, index: int, digits: int
) -> Decimal:
    trial, block = int(trials[index]), int(blocks[index])
    start = 1 << block
    with localcontext() as context:
        context.prec = digits + 3 * _GUARD_DIGITS + len(str(scale))
        if block < last:
            return Decimal(start) / trial * (Decimal(-trial) / scale).exp()
        step = 1 - (Decimal(-1) / Decimal(scale)).exp()
        return (Decimal(-start) / scale).exp() / (step * trial)


def check_width(width: float) -> None:
    """Refuse a width that cannot be drawn on the grid."""
    if not 1.0 <= width <= MAX_WIDTH:
        raise ParameterError(
            f"noise of width {width:g} grid units cannot be drawn",
            hint="a width lies between 1 and 2^56 grid units; choose another grid, or a larger epsilon",
        )
