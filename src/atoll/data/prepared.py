"""A table as a study prepares it: categories as indicators, rows with missing values dropped or filled in.

Nothing is copied: whoever reads the prepared table reads the owner's, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from atoll.data.island import Island, Matrix
from atoll.data.levels import codes
from atoll.data.tables.base import NUMBERS, Column, Piece, Table
from atoll.errors import DataError


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
        self._island, self._terms, self._levels = island, tuple(made_of), dict(levels)
        self._beside = tuple(beside)
        self._drop = drop
        self._fill = np.array([(fill or {}).get(term.name, np.nan) for term in made_of])
        used = dict.fromkeys(term.column for term in made_of)
        self._numbers = tuple(name for name in used if name not in levels)
        self._groups = tuple(name for name in used if name in levels)
        self.columns = (*(term.name for term in made_of), *self._beside)
        self._kept: int | None = None

    @property
    def n_rows(self) -> int:
        if not self._drop:
            return self._island.n_rows
        if self._kept is None:
            self._kept = sum(int(keep.sum()) for _, _, keep in self._read(()))
        return self._kept

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        width = len(self._terms)
        beside = [self.columns[place] for place in places if place >= width]
        wanted = [place for place in places if place < width]
        whole = wanted == list(range(width))
        for block, others, keep in self._read(beside):
            X = block if whole else block[:, wanted]
            if not keep.all():
                X, others = X[keep], [values[keep] for values in others]
            if not beside:
                yield X
                continue
            numbers, along = iter(X.T), iter(others)
            yield [next(numbers) if place < width else next(along) for place in places]

    def holds(self, place: int) -> str:
        width = len(self._terms)
        return NUMBERS if place < width else self._island.holds(self._beside[place - width])

    def kind(self, place: int) -> str:
        width = len(self._terms)
        return "number" if place < width else self._island.kind(self._beside[place - width])

    def place(self, row: int) -> str:
        """Where its owner finds it: rows that were left out count there."""
        start = kept = 0
        for _, _, keep in self._read(()) if self._drop else ():
            if row < kept + int(keep.sum()):
                return self._island.place(start + int(np.flatnonzero(keep)[row - kept]))
            start, kept = start + len(keep), kept + int(keep.sum())
        return self._island.place(row)

    def survey(self, genotypes: bool = False) -> Survey:
        """One pass over all rows; ``genotypes``: values other than 0, 1 and 2 are refused."""
        width = len(self._terms)
        rows, present, total = 0, np.zeros(width), np.zeros(width)
        first, varies = np.full(width, np.nan), np.zeros(width, bool)
        for block, _, keep in self._read(()):
            there = ~np.isnan(block)
            if genotypes:
                self._check_genotypes(block, there, rows)
            self._check_finite(block, rows)
            rows += len(block)
            X, seen = block[keep], there[keep]
            present += seen.sum(axis=0)
            total += np.where(seen, X, 0.0).sum(axis=0)
            if len(X):
                found = X[np.argmax(seen, axis=0), np.arange(width)]
                first = np.where(np.isnan(first), found, first)
                varies |= (seen & (first != X)).any(axis=0)
        return Survey(self.n_rows, present, total, varies.astype(float), first)

    def _check_genotypes(self, block: Matrix, there: Matrix, start: int) -> None:
        numbers = np.array([term.level is None for term in self._terms])
        wrong = there & numbers & ~np.isin(block, (0.0, 1.0, 2.0))
        hint = "0, 1 or 2 copies of an allele; missing = 'mean' is for other numbers"
        self._refuse(wrong, start, "holds no genotype", hint)

    def _check_finite(self, block: Matrix, start: int) -> None:
        hint = "drop the row, or correct it before the study starts"
        self._refuse(np.isinf(block), start, "holds an infinite value (inf)", hint)

    def _refuse(self, wrong: Matrix, start: int, words: str, hint: str) -> None:
        """By the first place that is wrong, if there is one."""
        found = np.argwhere(wrong)
        if len(found):
            row, place = (int(i) for i in found[0])
            raise DataError(
                f"{self._island.name}: column {self._terms[place].name!r} {words} at "
                f"{self._island.place(start + row)}",
                hint=hint,
            )

    def _read(self, beside: Sequence[str]) -> Iterator[tuple[Matrix, list[Column], Column]]:
        """All rows of all terms, columns beside them, and which rows count."""
        for block, others in self._island.mixed(self._numbers, (*self._groups, *beside)):
            X = self._coded(block, others[: len(self._groups)])
            keep = ~np.asarray(np.isnan(X).any(axis=1)) if self._drop else np.ones(len(X), bool)
            if not np.isnan(self._fill).all():
                X = np.where(np.isnan(X), self._fill, X)
            yield X, others[len(self._groups) :], keep

    def _coded(self, block: Matrix, groups: Sequence[Column]) -> Matrix:
        if not self._groups and len(self._numbers) == len(self._terms):
            return block
        X = np.empty((len(block), len(self._terms)))
        named = zip(self._groups, groups, strict=True)
        places = {name: codes(values, self._levels[name], self._island.name, name) for name, values in named}
        for j, term in enumerate(self._terms):
            if term.level is None:
                X[:, j] = block[:, self._numbers.index(term.column)]
            else:
                which = places[term.column]
                X[:, j] = which == self._levels[term.column].index(term.level)
                X[which < 0, j] = np.nan
        return X
