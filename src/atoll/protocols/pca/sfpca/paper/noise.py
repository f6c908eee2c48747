"""The paper's D.3 as it is written: noise drawn from a shuffled list, when outputs are decrypted.

Froelicher et al. 2023, appendix D.3: no more than that providers shuffle a list of encrypted noise one
after the other, and add from it to what is decrypted.

The list is public: the quantiles of a discrete Laplace distribution on a grid of 2^-16, each once.
Everybody shuffles it in turn (:mod:`atoll.secret_matrices.slots.shuffles`), and outputs take numbers from
its beginning, each once.

**It is no differential privacy, and is booked as none.** How far one row can change a component has no
bound: it rests on the gaps of the spectrum, and the paper leaves the choice of parameters to later work. No
noise is larger than the list's ends, so that outputs beyond these tell tables apart for certain. What has
been drawn does not come again, so that numbers of one run tell of each other. The certificate, and the
intervals, are told without noise. And a provider that fills the list with zeros is not noticed, because no
shuffle is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, exp, log

import numpy as np

from atoll.errors import ParameterError
from atoll.protocols.pca.sfpca.paper.parameters import Noise
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector

GRID_BITS = 16
"""Noise is a whole number of 2^-16."""
TWICE = 2
"""Numbers on the list for each that is drawn, unless the study says how many."""


def list_of(noise: Noise, drawn: int) -> list[float]:
    """The public list, in rising order: with as many numbers above zero as below, of the same sizes."""
    count = TWICE * drawn if noise.values is None else noise.values
    if count < drawn:
        raise ParameterError(
            f"the outputs take {drawn} numbers of noise, the list has {count}",
            hint=f"values = {TWICE * drawn}, or leave it out",
        )
    above = [_quantile((count - i - 0.5) / count, noise.scale * 2**GRID_BITS) for i in range(count // 2)]
    middle = [0] if count % 2 else []
    return [z / 2**GRID_BITS for z in (*(-z for z in above), *middle, *reversed(above))]


def _quantile(u: float, width: float) -> int:
    """Of the distribution that gives z with a probability as exp(-|z| / width); u is above a half."""
    ratio = exp(-1 / width)
    return max(0, ceil(log((1 - u) * (1 + ratio)) / log(ratio)) - 1)


def added(m: Slots, rows: Sequence[Vector], lengths: Sequence[int], left: Iterator[Vector]) -> Matrix:
    """Rows with a number of the list in each slot that is opened; no number is taken twice."""
    return [
        m.add(row, _laid(m, [next(left) for _ in range(n)])) for row, n in zip(rows, lengths, strict=True)
    ]


def _laid(m: Slots, numbers: Sequence[Vector]) -> Vector:
    """Numbers that stand in all slots, each in its own."""
    masks = np.eye(len(numbers))
    return m.inner([(x, mask) for x, mask in zip(numbers, masks, strict=True)])
