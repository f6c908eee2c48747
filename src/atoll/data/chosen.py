"""Some columns of an island: read block by block, or computed on where their rows lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from atoll.data.numbers import Matrix
from atoll.data.tables.base import Column

if TYPE_CHECKING:
    from atoll.data.island import Island

R = TypeVar("R")


class Chosen(NamedTuple):
    """Some columns of an island, in order: what a role reads of it."""

    island: Island
    columns: tuple[str, ...]
    units: Callable[[Matrix], Matrix] | None = None
    """What is done to every block before it is read: a shift, other units."""

    @property
    def n_rows(self) -> int:
        return self.island.n_rows

    def blocks(self, rows: int | None = None) -> Iterator[Matrix]:
        """All rows, so many at a time."""
        read = self.island.blocks(self.columns, rows)
        return read if self.units is None else map(self.units, read)

    def each_part(self, function: Callable[[Matrix], R]) -> Iterator[R] | None:
        """A function of some rows after the other, computed where these lie; None where they lie here."""
        work = partial(_of_numbers, units=self.units, function=function)
        return self.island.each_part(self.columns, (), work)

    def mapped(self, function: Callable[[Matrix], R], rows: int | None = None) -> Iterator[R]:
        """The same wherever they lie: here, so many at a time."""
        there = self.each_part(function)
        return map(function, self.blocks(rows)) if there is None else there

    def stacked(self, function: Callable[[Matrix], Matrix]) -> Matrix:
        """What a function makes of all rows: a row of each."""
        made, at = np.empty((0, 0)), 0
        for part in self.mapped(function):
            if not at:
                made = np.empty((self.n_rows, part.shape[1]))
            made[at : at + len(part)] = part
            at += len(part)
        return made

    def whole(self) -> Matrix:
        """All rows at once, for what cannot be done block by block."""
        return next(self.blocks(max(1, self.n_rows)))

    def largest(self) -> Matrix:
        """The largest magnitude of each column."""
        return np.asarray(reduce(np.maximum, self.mapped(_largest)))


def _of_numbers(
    block: Matrix,
    others: list[Column],
    *,
    units: Callable[[Matrix], Matrix] | None,
    function: Callable[[Matrix], R],
) -> R:
    del others
    return function(block if units is None else units(block))


def _largest(block: Matrix) -> Matrix:
    return np.asarray(np.abs(block).max(axis=0, initial=0.0))
