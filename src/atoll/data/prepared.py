"""A table as a study prepares it: categories as indicators, rows with missing values dropped or filled in.

Nothing is copied: whoever reads the prepared table reads the owner's, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from atoll.data.island import Island, Matrix
from atoll.data.levels import codes
from atoll.data.tables.base import NUMBERS, Column, Piece, Table
from atoll.errors import DataError

R = TypeVar("R")


class Term(NamedTuple):
    """One column of the prepared table: a column of numbers, or the indicator of a level."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}[{self.level}]"


def terms(columns: Sequence[str], levels: Mapping[str, Sequence[str]]) -> tuple[Term, ...]:
    """A column of numbers is one term, a column of categories one for each level."""
    return tuple(Term(column, level) for column in columns for level in levels.get(column, (None,)))


class Survey(NamedTuple):
    """Of every term: how many values there are, what they add up to, and whether they differ."""

    rows: int
    present: Matrix
    total: Matrix
    varies: Matrix
    first: Matrix
    """Any of its values; nan where there is none."""


class Coder(NamedTuple):
    """How rows of an island become rows of terms, without the island: it may travel to where they lie.

    ``numbers``, ``groups``: the columns that are read, numbers and categories; ``fill``: what stands for a
    missing value of each term; ``drop``: rows with a missing term do not count.
    """

    owner: str
    terms: tuple[Term, ...]
    levels: Mapping[str, tuple[str, ...]]
    numbers: tuple[str, ...]
    groups: tuple[str, ...]
    fill: Matrix
    drop: bool

    def read(self, block: Matrix, others: Sequence[Column]) -> tuple[Matrix, list[Column], Column]:
        """All rows of all terms, the columns beside them, and which rows count."""
        X = self._coded(block, others[: len(self.groups)])
        keep = ~np.asarray(np.isnan(X).any(axis=1)) if self.drop else np.ones(len(X), bool)
        if not np.isnan(self.fill).all():
            X = np.where(np.isnan(X), self.fill, X)
        return X, list(others[len(self.groups) :]), keep

    def _coded(self, block: Matrix, groups: Sequence[Column]) -> Matrix:
        if not self.groups and len(self.numbers) == len(self.terms):
            return block
        X = np.empty((len(block), len(self.terms)))
        named = zip(self.groups, groups, strict=True)
        places = {name: codes(values, self.levels[name], self.owner, name) for name, values in named}
        for j, term in enumerate(self.terms):
            if term.level is None:
                X[:, j] = block[:, self.numbers.index(term.column)]
            else:
                which = places[term.column]
                X[:, j] = which == self.levels[term.column].index(term.level)
                X[which < 0, j] = np.nan
        return X


class PreparedTable(Table):
    """Terms and, beside them, columns that go along as they are.

    ``drop``: rows with a missing term are left out; ``fill``: what stands for a missing value of each term.
    """

    def __init__(
        self,
        island: Island,
        made_of: Sequence[Term],
        levels: Mapping[str, tuple[str, ...]],
        *,
        beside: Sequence[str] = (),
        drop: bool = False,
        fill: Mapping[str, float] | None = None,
    ) -> None:
        self._island, self._terms, self._beside = island, tuple(made_of), tuple(beside)
        used = dict.fromkeys(term.column for term in made_of)
        self._coder = Coder(
            island.name,
            self._terms,
            dict(levels),
            tuple(name for name in used if name not in levels),
            tuple(name for name in used if name in levels),
            np.array([(fill or {}).get(term.name, np.nan) for term in made_of]),
            drop,
        )
        self.columns = (*(term.name for term in made_of), *self._beside)
        self.lies_here = island.lies_here
        self._kept: int | None = None

    @property
    def n_rows(self) -> int:
        if not self._coder.drop:
            return self._island.n_rows
        if self._kept is None:
            self._kept = sum(int(keep.sum()) for keep in self._mapped(partial(_kept, coder=self._coder)))
        return self._kept

    def _mapped(self, function: Callable[[Matrix, list[Column]], R]) -> Iterator[R]:
        return self._island.mapped(self._coder.numbers, self._coder.groups, function)

    def _chosen(self, places: Sequence[int]) -> tuple[list[str], list[bool], list[int] | None]:
        """Columns beside the terms; which places are terms; those, unless they are all."""
        width = len(self._terms)
        wanted = [place for place in places if place < width]
        beside = [self.columns[place] for place in places if place >= width]
        return beside, [place < width for place in places], None if wanted == list(range(width)) else wanted

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        beside, are_terms, wanted = self._chosen(places)
        for read in self._island.mixed(self._coder.numbers, (*self._coder.groups, *beside)):
            yield _piece(*read, coder=self._coder, are_terms=are_terms, wanted=wanted)

    def each_part(self, places: Sequence[int], function: Callable[[Piece, int], R]) -> Iterator[R] | None:
        """Where a row stands is known before any are dropped, and looked up when it is asked for."""
        beside, are_terms, wanted = self._chosen(places)
        work = partial(_of_prepared, coder=self._coder, are_terms=are_terms, wanted=wanted, function=function)
        return self._island.each_part(self._coder.numbers, (*self._coder.groups, *beside), work)

    def holds(self, place: int) -> str:
        width = len(self._terms)
        return NUMBERS if place < width else self._island.holds(self._beside[place - width])

    def kind(self, place: int) -> str:
        width = len(self._terms)
        return "number" if place < width else self._island.kind(self._beside[place - width])

    def place(self, row: int) -> str:
        """Where its owner finds it: rows that were left out count there."""
        start = kept = 0
        for keep in self._mapped(partial(_kept, coder=self._coder)) if self._coder.drop else ():
            if row < kept + int(keep.sum()):
                return self._island.place(start + int(np.flatnonzero(keep)[row - kept]))
            start, kept = start + len(keep), kept + int(keep.sum())
        return self._island.place(row)

    def survey(self, genotypes: bool = False) -> Survey:
        """One pass over all rows; ``genotypes``: values other than 0, 1 and 2 are refused."""
        found, at = _nothing(len(self._terms)), 0
        for part, rows, wrong in self._mapped(partial(_surveyed, coder=self._coder, genotypes=genotypes)):
            if wrong is not None:
                self._refuse(wrong, at)
            found, at = _merged(found, part), at + rows
        return found

    def _refuse(self, wrong: _Wrong, start: int) -> None:
        words, hint = _WRONG[wrong.infinite]
        raise DataError(
            f"{self._island.name}: column {self._terms[wrong.term].name!r} {words} at "
            f"{self._island.place(start + wrong.row)}",
            hint=hint,
        )


# ---- of some rows: without the island, because they may lie elsewhere ----


class _Wrong(NamedTuple):
    """The first value that cannot be used."""

    row: int
    term: int
    infinite: bool


_WRONG = {
    False: ("holds no genotype", "0, 1 or 2 copies of an allele; missing = 'mean' is for other numbers"),
    True: ("holds an infinite value (inf)", "drop the row, or correct it before the study starts"),
}


def _kept(block: Matrix, others: list[Column], *, coder: Coder) -> Column:
    return coder.read(block, others)[2]


def _piece(
    block: Matrix, others: list[Column], *, coder: Coder, are_terms: Sequence[bool], wanted: list[int] | None
) -> Piece:
    """The rows that count, of terms and columns in the order in which they are asked for."""
    X, along, keep = coder.read(block, others)
    X = X if wanted is None else X[:, wanted]
    if not keep.all():
        X, along = X[keep], [values[keep] for values in along]
    if not along:
        return X
    numbers, beside = iter(X.T), iter(along)
    return [next(numbers) if is_term else next(beside) for is_term in are_terms]


def _of_prepared(
    block: Matrix,
    others: list[Column],
    *,
    coder: Coder,
    are_terms: Sequence[bool],
    wanted: list[int] | None,
    function: Callable[[Piece, int], R],
) -> R:
    return function(_piece(block, others, coder=coder, are_terms=are_terms, wanted=wanted), 0)


def _surveyed(
    block: Matrix, others: list[Column], *, coder: Coder, genotypes: bool
) -> tuple[Survey, int, _Wrong | None]:
    """The survey of the rows that count, how many there are in all, and what cannot be used."""
    X, _, keep = coder.read(block, others)
    there = ~np.isnan(X)
    numbers = np.array([term.level is None for term in coder.terms])
    no_genotype = there & numbers & ~np.isin(X, (0.0, 1.0, 2.0)) if genotypes else np.zeros((0, 0), bool)
    for is_infinite, wrong in ((False, no_genotype), (True, np.isinf(X))):
        if wrong.any():
            row, term = (int(i) for i in np.argwhere(wrong)[0])
            return _nothing(len(coder.terms)), len(X), _Wrong(row, term, is_infinite)
    rows, seen = X[keep], there[keep]
    if not len(rows):
        return _nothing(len(coder.terms)), len(X), None
    first = rows[np.argmax(seen, axis=0), np.arange(rows.shape[1])]
    total = np.where(seen, rows, 0.0).sum(axis=0)
    varies = (seen & (first != rows)).any(axis=0)
    return Survey(len(rows), seen.sum(axis=0), total, varies.astype(float), first), len(X), None


def _nothing(width: int) -> Survey:
    return Survey(0, np.zeros(width), np.zeros(width), np.zeros(width), np.full(width, np.nan))


def _merged(one: Survey, other: Survey) -> Survey:
    both = ~np.isnan(one.first) & ~np.isnan(other.first)
    return Survey(
        one.rows + other.rows,
        one.present + other.present,
        one.total + other.total,
        np.maximum(np.maximum(one.varies, other.varies), both & (one.first != other.first)),
        np.where(np.isnan(one.first), other.first, one.first),
    )
