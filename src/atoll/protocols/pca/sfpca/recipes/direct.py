"""The direct recipe: rotate the encrypted covariance by everybody's secret rotation and open it.

For few columns. Opened: all eigenvalues, total variance; components and offset to whom the study names.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, frexp, log2
from typing import Any, NamedTuple

import numpy as np

from atoll.errors import MessageError, ParameterError
from atoll.protocols.pca.sfpca.recipes import columns
from atoll.protocols.pca.sfpca.recipes.certificate import Certificate, of_spectrum
from atoll.protocols.pca.sfpca.recipes.correlation import (
    Standardised,
    correlations,
    halvings,
    standardised,
)
from atoll.protocols.pca.sfpca.recipes.moments import Moments, check_moments
from atoll.randomness import derive
from atoll.secret_matrices.coefficients import COEFFICIENT_BITS
from atoll.secret_matrices.entrywise import LONG_ROOTS
from atoll.secret_matrices.machine import Beside, Floats, Job, Machine, Rounds, Shared
from atoll.secret_matrices.rotations import rotation

DATA_FRACTION = 60
ROTATION_FRACTION = 120
_TRACE_FRACTION = 96
_RESULT_FRACTION = 60
_LEAST_VARIANCE = 2.0**-80
# Uniform noise over everything that rounding may have left since the first rotation.
SMUDGE_MARGIN = 52


class Found(NamedTuple):
    """What a recipe finds, in units of the data's range (2^exponent); components and offset as shares."""

    components: Shared
    offset: Shared | None
    """Components times the mean, over ``offset_factor``; none of standardised columns."""
    offset_factor: float
    values: Floats | None
    """All eigenvalues, or the Ritz values: opened. Divisor n. None where they stay encrypted."""
    total_variance: float | None
    certificate: Certificate
    standardised: Standardised | None = None


class Inputs(NamedTuple):
    """One role's inputs; the coordinator has only the public ones."""

    n: int
    columns: int
    providers: tuple[str, ...]
    me: str
    moments: Moments | None
    rotation_seed: bytes | None
    sizes: tuple[int, ...] = ()
    """Everybody's rows, in the providers' order: public."""
    split: columns.Split | None = None
    """Where parties own columns: whose stand where, and this role's own."""
    standardize: bool = False
    plays: tuple[str, ...] = ()
    """The providers whose inputs these are, where they are not this role's alone: a simulation has all."""

    most_variance: float = 0.0
    """What the total variance cannot exceed, given the study's bounds; 0 where it is opened."""
    roots: str = LONG_ROOTS
    """The schedule that turns variances into inverse deviations."""

    @property
    def mine(self) -> tuple[str, ...]:
        """The providers whose inputs these are."""
        return self.plays or (self.me,)

    def __repr__(self) -> str:
        return f"Inputs({self.n} x {self.columns}, {self.me})"  # the seed is that of a secret rotation

    @property
    def padding(self) -> float:
        """The next power of two over the number of rows: sums are divided by the former."""
        return 2.0 ** ceil(log2(self.n)) / self.n


async def direct(machine: Machine, inputs: Inputs, k: int) -> Found:
    """Components by one rotation of the covariance that nobody knows."""
    if inputs.split is None:
        check_moments(inputs.moments, DATA_FRACTION)
    rotations = machine.beside(joint_rotation(machine, inputs, inputs.columns))
    S, unit = await scatter(machine, inputs, shown=inputs.standardize)
    table = None
    if not inputs.standardize:
        total = await _opened_trace(machine, S)
        u = column_sums(machine, inputs, ROTATION_FRACTION - COEFFICIENT_BITS)
        mean: Shared | None = at_fraction(machine, u, ROTATION_FRACTION, bits=1)
    else:
        table = await standardised(machine, machine.diagonal(S), column_sums(machine, inputs), inputs.roots)
        S, unit, mean = await correlations(machine, S, table.D), 2.0 ** halvings(inputs.columns), None
        total = table.varying / unit
    check_variance(total)
    exponent = -frexp(total)[1]
    if S.fraction + COEFFICIENT_BITS - exponent < ROTATION_FRACTION:
        check_variance(0.0)
    C = with_norm(at_fraction(machine, S.times_power_of_two(exponent), ROTATION_FRACTION, bits=1), 0)
    values, W, offset = await rotated_and_opened(machine, rotations, C, mean, k)
    return Found(
        W,
        offset,
        inputs.padding,
        np.maximum(values, 0.0) * 2.0**-exponent * unit,
        total * unit,
        of_spectrum(values, k),
        table,
    )


async def rotated_and_opened(
    machine: Machine, rotations: Beside[Shared], C: Shared, mean: Shared | None, k: int
) -> tuple[Floats, Shared, Shared | None]:
    """Eigenvalues of a symmetric C of Frobenius norm at most one; components, and components times mean.

    C may be indefinite; the entries of ``mean`` are below one.
    """
    H, m = await machine.finished(rotations), C.shape[0]
    wide = C if mean is None else machine.hstack([C, mean])
    HC = await machine.product((H, wide), fraction=ROTATION_FRACTION, bits=_mean_bits(m), name="H C")
    left = machine.part(HC, slice(None), slice(0, m))
    Z0 = await machine.product((left, machine.transpose(H)), fraction=ROTATION_FRACTION, bits=1, name="Z")
    Z = await machine.opened_symmetric(Z0, smudge_bits=smudge_bits(machine, m))
    values, U = await decomposed(machine, Z)
    top, offset = U.T[:k], None
    W = machine.times_public(top, H, fraction=_RESULT_FRACTION, bits=1)
    if mean is not None:
        Hu = machine.part(HC, slice(None), slice(-1, None))
        offset = machine.times_public(top, Hu, fraction=_RESULT_FRACTION, bits=_mean_bits(m))
    return values, W, offset


async def _opened_trace(machine: Machine, S: Shared) -> float:
    opened = await machine.opened(machine.trace(S, bits=1), smudge_bits=S.fraction - _TRACE_FRACTION)
    return float(opened[0, 0])


def check_variance(total: float) -> None:
    """Rows that are all alike have no components."""
    if not total > _LEAST_VARIANCE:
        raise ParameterError(
            "the joint table has no variance, or too little for its declared range",
            hint="all rows are alike, or the study's bounds are far too wide",
        )


async def decomposed(machine: Machine, Z: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (falling) and vectors of an opened matrix, the same bits for every role."""
    values, U = np.linalg.eigh(Z)
    same = await machine.same(np.vstack([values[::-1], U[:, ::-1]]), recomputed=False)
    values, U = same[0], same[1:]
    # What LAPACK leaves; an eigenvector's sign, or a basis where values coincide, is anybody's choice.
    rounding = 2.0**-46 * len(Z)
    rotated = U.T @ Z @ U - np.diag(values)
    if (
        np.any(np.diff(values) > 0)
        or np.abs(U.T @ U - np.eye(len(Z))).max() > rounding
        or np.abs(rotated).max() > rounding * np.abs(Z).max(initial=2.0**-1000) * len(Z)
    ):
        raise MessageError("the eigenvectors are not those of the opened matrix")
    return values, U


async def scatter(machine: Machine, inputs: Inputs, *, shown: bool) -> tuple[Shared, float]:
    """A multiple of the covariance, exactly, with a trace of at most m; and what it is to be multiplied by.

    Where products that go ahead are made of it, all are sent (``shown``) its masked total.
    (n G - u u^T) / 2^2e where parties own rows, 2^e being the next power of two above n.
    """
    m, e, own = inputs.columns, ceil(log2(inputs.n)), inputs.moments
    if inputs.split is not None:
        return await columns.scatter(machine, inputs.split, shown), 2.0**e / inputs.n
    f = DATA_FRACTION + e
    row = None if own is None else -own.u.reshape(1, m)
    gram = None if own is None else inputs.n * own.G
    u = column_sums(machine, inputs)
    minus_u = machine.private(None, row, (1, m), f, 1)
    G = machine.private(None, gram, (m, m), 2 * f, 1)
    S = await machine.product((u, minus_u), plain=G, fraction=2 * f, bits=1, name="covariance", ahead=shown)
    return S, (2.0**e / inputs.n) ** 2


def column_sums(machine: Machine, inputs: Inputs, least_fraction: int = 0) -> Shared:
    """u / 2^e, with no fewer fractional bits than asked for."""
    m, own = inputs.columns, inputs.moments
    fraction = DATA_FRACTION + ceil(log2(inputs.n))
    more = max(0, least_fraction - fraction)
    column = None if own is None else own.u.reshape(m, 1) << more
    return machine.private(None, column, (m, 1), fraction + more, 1)


def joint_rotation(
    machine: Machine, inputs: Inputs, size: int, use: str = "", *, ahead: bool = False
) -> Rounds[Shared]:
    """The product of everybody's secret rotation: uniform if one of them is. One for each ``use``."""
    norm = ceil(log2(size) / 2)
    level = []
    for owner in inputs.providers:
        own: Any = None
        if inputs.rotation_seed is not None and owner in inputs.mine:
            seed = derive(inputs.rotation_seed, "rotation", use) if use else inputs.rotation_seed
            own = rotation(seed, size, ROTATION_FRACTION)
        level.append(machine.private(owner, own, (size, size), ROTATION_FRACTION, 1, norm))
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=False))
        made = yield [Job((pair,), ROTATION_FRACTION, 1, "rotation", ahead=ahead) for pair in pairs]
        level = [with_norm(x, norm) for x in made] + level[2 * len(pairs) :]
    return level[0]


def with_norm(x: Shared, norm_bits: int) -> Shared:
    """The same matrix, its Frobenius norm known to be below 2^norm_bits."""
    return replace(x, norm_bits=norm_bits + 1)


def at_fraction(machine: Machine, x: Shared, fraction: int, *, bits: int) -> Shared:
    """The matrix with so many fractional bits, rounded where it had more."""
    return machine.combine([(1.0, x)], fraction=fraction, bits=bits)


def smudge_bits(machine: Machine, size: int) -> int:
    """The noise that hides every rounding since the first rotation, in units of the last place.

    Each product leaves half a unit per party and entry; a rotation then adds up ``size`` of them.
    """
    roundings = (machine.n_providers + 1) * (3 + ceil(log2(machine.n_providers))) * size
    return SMUDGE_MARGIN + ceil(log2(roundings))


def _mean_bits(m: int) -> int:
    """A rotated mean is at most the length of a vector of entries below one."""
    return 1 + ceil(log2(m) / 2)
