"""The distribution over all cells with the largest entropy whose moments agree with the released ones.

p(x) is proportional to exp(sum of a number for every coordinate and for every product of coordinates of two
columns), and these numbers minimise
    log Z(t) - t . y + tau/2 sum (sd t)^2
whose gradient is E_p - y + tau sd^2 t: moments are matched up to their noise, not beyond. tau is the largest
at which the misfit sum ((E_p - y)/sd)^2 has come down to the number of moments, which is what noise alone
leaves (discrepancy principle). All cells of the joint table are held, so it is for small tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll import randomness
from atoll.lazy import lazy
from atoll.protocols.synthesis.latent_classes import drawn
from atoll.protocols.synthesis.moments import Codes, Floats, Moments, helmert

optimize: Any = lazy("scipy.optimize")

MAX_TABLE = 1 << 17
"""Cells of the joint table that are held at once."""
_GROUP = 64
_STEPS = 60
_TAUS = 30
_FIRST_TAU = 1e5
_FINER = 1.5
_MARGINS = 0.1


def fits(sizes: Sequence[int]) -> bool:
    """Whether the joint table is small enough."""
    return math.prod(sizes) <= MAX_TABLE


class _Table:
    """Moments of a joint table, and tables of exponents, by a few products along groups of axes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.bases = _grouped(sizes)
        strides = np.cumprod([1, *sizes[::-1]])[::-1][1:]
        single = [stride * np.arange(1, k) for k, stride in zip(sizes, strides, strict=True)]
        first = np.concatenate(single).astype(np.int64)
        owner = np.repeat(np.arange(len(sizes)), [k - 1 for k in sizes])
        self.pairs = np.nonzero(owner[:, None] < owner[None, :])
        self.at = np.concatenate([first, first[self.pairs[0]] + first[self.pairs[1]]])

    def moments(self, shares: Floats) -> Floats:
        """Of every coordinate, and of every two of two columns."""
        for basis in self.bases:  # the first axis is used up and comes back as the last
            shares = (shares.reshape(len(basis), -1).T @ basis).ravel()
        return np.asarray(shares[self.at])

    def exponents(self, numbers: Floats) -> Floats:
        """Of every cell."""
        values = np.zeros(math.prod(self.sizes))
        values[self.at] = numbers
        for basis in self.bases:
            values = (values.reshape(len(basis), -1).T @ basis.T).ravel()
        return values


def _grouped(sizes: Sequence[int]) -> list[Floats]:
    """Bases of a count and the orthonormal coordinates, for several axes at once while that is small."""
    groups: list[Floats] = [np.ones((1, 1))]
    for k in sizes:
        basis = np.hstack([np.ones((k, 1)), helmert(k)])
        if len(groups[-1]) * k > _GROUP:
            groups.append(np.ones((1, 1)))
        groups[-1] = np.asarray(np.kron(groups[-1], basis), dtype=np.float64)
    return groups


def _shares(exponents: Floats) -> tuple[Floats, float]:
    top = float(exponents.max())
    raised = np.exp(exponents - top)
    total = float(raised.sum())
    return raised / total, top + math.log(total)


def fit(moments: Moments) -> dict[str, Any]:
    """The model of a release."""
    table = _Table(moments.sizes)
    owner = moments.owner
    y = np.concatenate([moments.mean, moments.second[table.pairs]])
    pair_noise = moments.second_noise[owner[table.pairs[0]], owner[table.pairs[1]]]
    deviation = np.concatenate([_MARGINS * moments.mean_noise[owner], pair_noise])
    numbers, tau = np.zeros(len(y)), _FIRST_TAU
    for _ in range(_TAUS):
        numbers = _solved(table, y, deviation, tau, numbers)
        misfit = tau * deviation * numbers  # what the gradient's zero says of E_p - y, over its deviation
        if misfit @ misfit <= len(y):
            break
        tau /= _FINER
    return {"numbers": numbers}


def _solved(table: _Table, y: Floats, deviation: Floats, tau: float, start: Floats) -> Floats:
    """In units in which the penalty is round, so that few steps are enough."""
    unit = 1.0 / (math.sqrt(tau) * deviation)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        numbers = scaled * unit
        shares, log_total = _shares(table.exponents(numbers))
        gradient = (table.moments(shares) - y) * unit + scaled
        return log_total - float(numbers @ y) + 0.5 * float(scaled @ scaled), gradient

    options = {"maxiter": _STEPS, "maxcor": 20}
    found = optimize.minimize(objective, start / unit, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x * unit)


def sample(
    values: dict[str, Any], sizes: Sequence[int], weights: Sequence[Floats], n: int, rng: randomness.Public
) -> Codes:
    """Rows of cells, under the conditions, each drawn from the whole table."""
    table = _Table(sizes)
    shares, _ = _shares(table.exponents(values["numbers"]))
    cube = shares.reshape(sizes)
    for axis, weight in enumerate(weights):
        cube = cube * weight.reshape([-1 if i == axis else 1 for i in range(len(sizes))])
    place = drawn(cube.reshape(1, -1), np.zeros(n, dtype=np.int64), rng)
    return np.column_stack(np.unravel_index(place, sizes)).astype(np.int64)
