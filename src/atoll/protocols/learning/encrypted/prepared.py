"""An island's columns in units of their own length, and its coefficients back in the columns' own units."""

from __future__ import annotations

from math import ceil, frexp
from typing import Any, NamedTuple

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix
from atoll.errors import DataError
from atoll.protocols.learning.columns.table import Joint, Part
from atoll.protocols.learning.encrypted.program import FRACTION, TABLE_FRACTION, Block, Table, smudge


class Lengths(NamedTuple):
    """Private to an island: what every column was divided by, and the target's power of two."""

    divisors: Matrix
    exponent: int

    def restored(self, w: Matrix) -> Matrix:
        """Coefficients of the columns as they are."""
        return np.asarray(w * 2.0**self.exponent / self.divisors)


def lengths(part: Part, alpha: float, exponent: int) -> Lengths:
    """|x|^2 + alpha for each column, under the root."""
    squares = (part.X**2).sum(axis=0) + alpha
    if not np.isfinite(squares).all():
        raise DataError(f"{part.island}: a column's squares exceed a double's range", hint="rescale it")
    return Lengths(np.where(squares > 0.0, np.sqrt(squares), 1.0), exponent)


def blurred(offset: Matrix, exponent: int, rows: int, limit: int, seed: bytes) -> Matrix:
    """An island's part of the intercept, with noise of the width that coefficients are released with.

    Coefficients are known as they were released, so an intercept with a double's digits would be an exact
    relation between the sums of all columns: of a few columns of whole numbers it would say every one.
    """
    word = int(randomness.expand_words(seed, 1, "atoll/least-squares/offset")[0])
    unit = 2.0**exponent / np.sqrt(rows)  # what the target is in a row, at the most
    return np.asarray(offset + (word / 2**64 - 0.5) * unit * 2.0 ** (smudge(limit) - FRACTION))


def exponent_of(y: Matrix) -> int:
    """The smallest power of two above the target's length."""
    length = float(np.sqrt(y @ y))
    if not np.isfinite(length):
        raise DataError("the target's squares exceed a double's range", hint="rescale it")
    return frexp(length)[1] if length > 0.0 else 0


def table_of(
    joint: Joint,
    owners: tuple[str, ...],
    leader: int,
    part: Part,
    own: Lengths,
    alpha: float,
    place: int,
    factor: Any,
) -> Table:
    """The joint table as one island knows it."""
    Z = _whole_numbers(part.X / own.divisors)
    blocks = [Block(owner, width) for owner, width in zip(owners, joint.widths, strict=True)]
    blocks[place] = Block(owners[place], joint.widths[place], Z)
    y = None
    if place == leader and part.y is not None:
        y = _whole_numbers(part.y[:, None] * 2.0**-own.exponent)
    start, d = sum(joint.widths[:place]), sum(joint.widths)
    lift = np.zeros((d, d), dtype=object)
    for j, divisor in enumerate(own.divisors, start):
        lift[j, j] = ceil(alpha / divisor**2 * 2.0**FRACTION)
    return Table(joint.rows, (*blocks, Block(owners[leader], 1, y)), lift, factor)


def empty_table(joint: Joint, owners: tuple[str, ...], leader: int) -> Table:
    """The same as a role knows it that has no columns."""
    blocks = [Block(owner, width) for owner, width in zip(owners, joint.widths, strict=True)]
    return Table(joint.rows, (*blocks, Block(owners[leader], 1)))


def _whole_numbers(values: Matrix) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Towards zero, so that no column becomes longer than one."""
    return np.asarray(np.trunc(values * 2.0**TABLE_FRACTION), dtype=np.int64)
