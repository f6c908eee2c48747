"""The joint Gram matrix and its inverse, as programs for the secret-matrix machine.

Columns: every owner divides each of its columns x by sqrt(|x|^2 + alpha), so that G = Z^T Z + diag(alpha /
(|x|^2 + alpha)) has ones on its diagonal. Its d eigenvalues add up to d, so those of A = G / 2^h, with 2^h
the next power of two above d, lie in (0, 1].

Inverse: V <- V (2 - A V) from V = 2 - A. After k steps V = (1 - (1 - A)^(2^k)) / A, whatever A is: its
eigenvalues are below 2^(k+1), which is all that the bounds need, and those of A V are between 0 and 1. An
eigenvalue of A above 2^-limit is inverted to 2^-90 after limit + 8 steps. Before the last of them it is
seen whether the trace of A V is d: it is, but for eigenvalues that are too small. If one is, nothing more is
opened.

What the trace lacks, where it is not d, is a number that says something exact of the joint columns: the
variance of one of them, if a server tells units in which the others vanish. So it is opened times a secret
factor: a sum to which every island adds one that it draws, with a logarithm uniform over 20 bits.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

from atoll import randomness
from atoll.errors import RunError
from atoll.secret_matrices.machine import Job, Machine, Rounds, Shared
from atoll.secret_matrices.widths import with_one_left

FRACTION = 80
TABLE_FRACTION = 56
_PIECE_ROWS = 1 << 14
_EARLY, _LATE = 4, 4
"""Steps beyond the limit before the trace is opened, and after it."""
_NOISE_BITS = 9
"""What the trace lacks, times the factor, is opened under noise of about 2^-9 ..."""
_SHORT = 2.0**-7
"""... and may be this much. The factor is one at least; four more steps square what is lacking four times."""
FACTOR_BITS = 20
"""An island's factor is up to 2^20: a number that is blurred so much says hardly two bits of what it was."""
_FACTOR_FRACTION, _LACKING_FRACTION = 32, 40
RELEASED_BITS = 44
"""Coefficients are released with noise of at least 2^-44 of their unit."""


def smudge(limit: int) -> int:
    """Bits of noise under which a result's roundings hide: more for a matrix that may be nearer to singular.

    Simulated on up to 12 columns and 8 islands with the smallest eigenvalue at the limit, roundings of the
    result stay below 2^(1.25 limit + 8) units for limits from 10 to 24; the noise is 2^18 times as wide.
    """
    return max(FRACTION - RELEASED_BITS, ceil(1.25 * limit) + 26)


class Block(NamedTuple):
    """Some columns of one owner: their values over 2^TABLE_FRACTION, where this role knows them."""

    owner: str
    width: int
    values: Any = None


class Table(NamedTuple):
    """Everybody's columns, the target last; ``lift`` is what alpha adds to the diagonal, where known;
    ``factor`` is the role's own (:func:`own_factor`)."""

    rows: int
    blocks: tuple[Block, ...]
    lift: Any = None
    factor: Any = None

    @property
    def columns(self) -> int:
        """Without the target."""
        return sum(block.width for block in self.blocks[:-1])

    def places(self) -> list[slice]:
        """Where every owner's columns stand."""
        ends = np.cumsum([block.width for block in self.blocks]).tolist()
        return [slice(end - block.width, end) for block, end in zip(self.blocks, ends, strict=True)]


def own_factor(seed: bytes) -> Any:
    """An island's summand of the factor that hides how much a trace lacks: 2^u, with u uniform up to 20."""
    word = int(randomness.expand_words(seed, 1, "atoll/least-squares/factor")[0])
    drawn = round(2.0 ** (FACTOR_BITS * (word / 2**64) + _FACTOR_FRACTION))
    return np.array([[drawn]], dtype=object)


async def coefficients(machine: Machine, table: Table, limit: int) -> list[Shared]:
    """Every owner's coefficients, in units of the columns' lengths; each for its owner to be released."""
    d = table.columns
    S = await _gram(machine, table)
    halvings = ceil(log2(d)) if d > 1 else 0
    lift = machine.private(None, table.lift, (d, d), FRACTION, 1)
    everything, columns = slice(0, d), slice(d, d + 1)
    G = machine.part(S, everything, everything)
    A = machine.combine([(2.0**-halvings, G), (2.0**-halvings, lift)], bits=1)
    b = machine.part(S, everything, columns)
    w = machine.smudged(await solved(machine, A, b, limit, table.factor), smudge_bits=smudge(limit))
    w = w.times_power_of_two(-halvings)
    return [machine.part(w, place, slice(0, 1)) for place in table.places()[:-1]]


async def solved(machine: Machine, A: Shared, b: Shared, limit: int, factor: Any) -> Shared:
    """A^-1 b, for a matrix with eigenvalues in [0, 1] and a column whose entries are below one."""
    V, bits = await _inverse(machine, A, limit, factor)
    # V has no eigenvalue above 2^bits.
    wide = bits + 1 + ceil(log2(A.shape[0] + 1) / 2)
    return await machine.product((V, b), fraction=FRACTION, bits=wide, name="w")


async def _gram(machine: Machine, table: Table) -> Shared:
    """All columns times all columns, some rows at a time."""
    parts = []
    for start in range(0, table.rows, _PIECE_ROWS):
        rows = slice(start, min(start + _PIECE_ROWS, table.rows))
        parts.append(machine.hstack(await machine.products(_jobs(machine, table, rows))))
    # No column is longer than one, so no product exceeds one, of some rows or of all.
    return machine.combine([(1.0, part) for part in parts], bits=1) if len(parts) > 1 else parts[0]


def _jobs(machine: Machine, table: Table, rows: slice) -> list[Job]:
    count, wide = rows.stop - rows.start, table.columns + 1
    left = machine.private(None, _embedded(table, rows), (wide, count), TABLE_FRACTION, 1)
    jobs = []
    for block in table.blocks:
        own = None if block.values is None else np.ascontiguousarray(block.values[rows])
        norm = ceil(log2(block.width) / 2)
        right = machine.private(block.owner, own, (count, block.width), TABLE_FRACTION, 1, norm)
        jobs.append(Job(((left, right),), FRACTION, 1, "Gram matrix"))
    return with_one_left(machine, jobs)


def _embedded(table: Table, rows: slice) -> Any:
    """The transposed table, zero where this role does not know it."""
    if all(block.values is None for block in table.blocks):
        return None
    values = np.zeros((table.columns + 1, rows.stop - rows.start), np.int64)
    for block, place in zip(table.blocks, table.places(), strict=True):
        if block.values is not None:
            values[place] = block.values[rows].T
    return values


async def _inverse(machine: Machine, A: Shared, limit: int, factor: Any) -> tuple[Shared, int]:
    """A^-1, and the bits of its largest eigenvalue; refuses a matrix that is too near to a singular one."""
    V, k = machine.combine([(-1.0, A)], identity=2.0, bits=2), 1
    for _ in range(limit + _EARLY):
        V, _, k = await _step(machine, A, V, k)
    V, AV, k = await _step(machine, A, V, k)
    lacking = machine.beside(_lacking(machine, AV, factor))
    V, _, k = await _step(machine, A, V, k)
    opened = await machine.opened(
        await machine.finished(lacking),
        smudge_bits=_LACKING_FRACTION - _NOISE_BITS - machine.n_providers.bit_length(),
    )
    _check_settled(float(opened[0, 0]), limit)
    for _ in range(_LATE - 1):
        V, _, k = await _step(machine, A, V, k)
    return V, k + 1


def _lacking(machine: Machine, AV: Shared, own: Any) -> Rounds[Shared]:
    """What the trace of A V lacks to d, times everybody's factors, added up."""
    d, more = AV.shape[0], machine.n_providers.bit_length()
    factor = machine.private(None, own, (1, 1), _FACTOR_FRACTION, FACTOR_BITS + more)
    wide = 1 + ceil(log2(d + 1))
    rest = machine.combine([(-1.0, machine.trace(AV, bits=wide))], identity=float(d), bits=wide)
    job = Job(((factor, rest),), _LACKING_FRACTION, FACTOR_BITS + more + wide, "trace")
    (product,) = yield [job]
    return product


async def _step(machine: Machine, A: Shared, V: Shared, k: int) -> tuple[Shared, Shared, int]:
    """V (2 - A V), in this order: rounding dies out in it, and in V (2 - V A) it grows."""
    AV = await machine.product((A, V), fraction=FRACTION, bits=1, name="A V")
    rest = machine.combine([(-1.0, AV)], identity=2.0, bits=2)
    V = await machine.product((V, rest), fraction=FRACTION, bits=k + 2, name="V (2 - A V)")
    return V, AV, k + 1


def _check_settled(short: float, limit: int) -> None:
    if short > _SHORT:
        raise RunError(
            "the columns of all islands together leave a coefficient undecided: one follows from others, or "
            f"nearly so (the condition exceeds 2^{limit}); no coefficient was opened",
            hint="leave a column out, a ridge (alpha > 0), or a larger condition_bits; with rows split, also "
            "subtract a public number from columns that are far from zero",
        )
