"""An island's rows as a model sees them: a design matrix, a response, weights and offsets, block by block.

Numbers are measured from a common centre in common units, which the server makes of the first sum: means to
a sixteenth of a deviation, deviations to a power of two. Sums of squares then lose no digits to a column
that is large beside its deviations, and the model is the same: coefficients are put back at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from atoll.codec import Message
from atoll.data.island import BLOCK_BYTES, Island, Matrix
from atoll.data.levels import codes
from atoll.data.numbers import Elsewhere
from atoll.data.statistics import raise_for_missing
from atoll.data.tables.base import Column
from atoll.errors import DataError
from atoll.protocols import checked
from atoll.protocols.fields import AgreedFields, FieldParameters, terms
from atoll.study.address import Address
from atoll.threads import in_order

INTERCEPT = "(Intercept)"

R = TypeVar("R")

Places = npt.NDArray[np.int64]
"""Of levels."""

_CENTRE_STEPS = 16
"""A centre is told to this part of a deviation."""

KEPT_BYTES = 1 << 27
"""Of rows that are held in memory as the model sees them, beside the table they were made of."""


class Rows(NamedTuple):
    """Some rows: the design matrix, the response (a number, or the place of its class), weight and offset."""

    X: Matrix
    y: Matrix
    weight: Matrix
    offset: Matrix


class Units(Message, frozen=True):
    """Server -> provider: n, and the centre and unit of every design column and, last, of the response."""

    n: int
    centre: np.ndarray[Any, Any]
    unit: np.ndarray[Any, Any]


REASONS = ("target", "weights or offset", "columns")
"""What a row that is left out lacks a value of: the first of these."""


class Survey(NamedTuple):
    """What the first sum says: rows, rows left out, and moments of every design column and the response."""

    n: int
    left_out: tuple[int, ...]
    """By reason."""
    total: Matrix
    squares: Matrix

    @staticmethod
    def length(terms: int) -> int:
        """Of the sum."""
        return 1 + len(REASONS) + 2 * (terms + 1)

    @classmethod
    def of(cls, values: Matrix) -> Survey:
        """From the sum."""
        start = 1 + len(REASONS)
        total, squares = np.split(values[start:], 2)
        return cls(round(values[0]), tuple(round(value) for value in values[1:start]), total, squares)


def units(survey: Survey, measured: np.ndarray[Any, Any], recentre: bool) -> Units:
    """Centres and units from the first sum.

    ``measured``: which terms, and last whether the response, hold numbers; the others are indicators and
    classes, which need neither. Without an intercept nothing may be moved, only measured otherwise.
    """
    mean = survey.total / survey.n
    variance = np.maximum(survey.squares / survey.n - mean**2, 0.0)
    spread = np.sqrt(np.maximum(variance, np.maximum(mean**2 * 2.0**-40, 2.0**-200)))
    if not recentre:
        spread = np.sqrt(np.maximum(survey.squares / survey.n, 2.0**-200))
    unit = np.where(survey.squares > 0.0, 2.0 ** np.round(np.log2(spread)), 1.0)
    centre = np.round(mean / unit * _CENTRE_STEPS) / _CENTRE_STEPS * unit if recentre else np.zeros_like(mean)
    unit[~measured], centre[~measured] = 1.0, 0.0
    return Units(survey.n, centre, unit)


def check_units(told: Units, length: int, own_rows: int, server: Address) -> None:
    """Finite centres, units that are powers of two, and no fewer rows than there are here."""
    checked.check_floats(told.centre, (length,), "centres", server)
    checked.check_scale(told.unit, length, server)
    if (np.frexp(told.unit)[0] != 0.5).any():
        raise checked.refuse(server, "units that are not powers of two")
    if not own_rows <= told.n < checked.MAX_ROWS:
        raise checked.refuse(server, f"{told.n} as the number of all rows to one who has {own_rows} of them")


class Read(NamedTuple):
    """Everything that is read of a table: numbers, and the places of categories and classes."""

    island: Island
    numbers: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    """Of the columns that hold categories or classes."""

    def parts(self, rows: int | None = None) -> Iterator[tuple[Matrix, list[Places]]]:
        """All rows, so many at a time: numbers, and beside them the places of levels, -1 for none."""
        for block, others in self.island.mixed(self.numbers, tuple(self.levels), rows):
            yield _with_places(block, others, levels=self.levels, owner=self.island.name, function=_as_read)

    def each_part(self, function: Callable[[Matrix, list[Places]], R]) -> Iterator[R] | None:
        """A function of some rows after the other, computed where they lie; None where they lie here."""
        work = partial(_with_places, levels=self.levels, owner=self.island.name, function=function)
        return self.island.each_part(self.numbers, tuple(self.levels), work)

    def blocks(self) -> Iterator[Matrix]:
        """The same side by side."""
        for block, places in self.parts():
            yield np.column_stack([block, *places])


def _as_read(block: Matrix, places: list[Places]) -> tuple[Matrix, list[Places]]:
    return block, places


def _with_places(
    block: Matrix,
    others: list[Column],
    *,
    levels: Mapping[str, tuple[str, ...]],
    owner: str,
    function: Callable[[Matrix, list[Places]], R],
) -> R:
    named = zip(others, levels.items(), strict=True)
    return function(block, [codes(values, known, owner, name) for values, (name, known) in named])


class Design:
    """One island's rows for one model."""

    def __init__(
        self, island: Island, agreed: AgreedFields, p: FieldParameters, *, classes: bool, intercept: bool
    ) -> None:
        self.island = island
        self.numbers = tuple(name for name in agreed.names if name not in p.categorical)
        self.terms = terms(agreed, p.categorical)
        self.intercept = intercept
        self._p = p
        self._group_names = [name for name in agreed.names if name in p.categorical]
        self._order = _order(agreed, p)
        target = p.target if classes and p.target in agreed.levels else None
        self._has_classes = target is not None
        self.units: Units | None = None
        self._kept: list[Rows] | None = None
        numbers = [*self.numbers, *(name for name in p.special if name != target)]
        named = [*self._group_names, *([target] if target is not None else [])]
        self.table = island.chosen(numbers)
        """Everything that is read as numbers."""
        self.read = Read(island, self.table.columns, {name: agreed.levels[name] for name in named})

    @property
    def width(self) -> int:
        """Columns of the design matrix, the intercept included."""
        return len(self.terms) + self.intercept

    def survey(self) -> Matrix:
        """Rows, rows left out, moments of the terms and the response: what this island adds first."""

        def of_block(block: Matrix, places: list[Places]) -> Matrix:
            left_out, rows = self._left_out(block, places), self._rows(block, places)
            wide = np.column_stack([rows.X[:, int(self.intercept) :], rows.y])
            return np.concatenate([[len(wide)], left_out, wide.sum(axis=0), (wide**2).sum(axis=0)])

        total = self._added(of_block, Survey.length(len(self.terms)))
        if total[0] < self.island.n_rows and self._p.missing == "refuse":
            self._raise_for_missing()
        if total[0] == 0:
            raise DataError(
                f"{self.island.name}: the table has no complete row", hint="leave the island out of the study"
            )
        return total

    def _left_out(self, block: Matrix, places: list[Places]) -> list[int]:
        """How many rows lack a value, by the first reason of each."""
        d, known = len(self.numbers), np.isfinite(block)
        groups = places[:-1] if self._has_classes else places
        at = d + (self._p.target is not None and not self._has_classes)
        target = places[-1] >= 0 if self._has_classes else known[:, d:at].all(axis=1)
        others = known[:, at:].all(axis=1)
        columns = known[:, :d].all(axis=1)
        for place in groups:
            columns &= place >= 0
        return [int((~target).sum()), int((target & ~others).sum()), int((target & others & ~columns).sum())]

    def measure(self, told: Units) -> None:
        """From now on in common units; few rows are held so, because every step reads them again."""
        self.units = told
        size = self.island.n_rows * (self.width + len(Rows._fields) - 1) * 8
        if size <= KEPT_BYTES and self.island.lies_here:
            self._kept = list(self._each(self._rows))

    def add_up(self, of_block: Callable[[Rows], Matrix], length: int) -> Matrix:
        """What every block of complete rows gives, added."""
        if self._kept is None:
            return self._added(lambda block, places: of_block(self._rows(block, places)), length)
        return reduce(np.add, in_order(of_block, self._kept, len(self._kept)), np.zeros(length))

    def _added(self, of_block: Callable[[Matrix, list[Places]], Matrix], length: int) -> Matrix:
        return reduce(np.add, self._each(of_block), np.zeros(length))

    def _each(self, of_block: Callable[[Matrix, list[Places]], R]) -> Iterator[R]:
        """Of every block, on all cores or where the rows lie, in an order that the table's shape decides."""
        there = self.read.each_part(of_block)
        if there is not None:
            return there
        step = self._step()
        count = max(1, -(-self.island.n_rows // step))
        return in_order(lambda read: of_block(*read), self.read.parts(step), count)

    def _step(self) -> int:
        return max(256, BLOCK_BYTES // (8 * max(1, self.width)))

    def each(self, function: Callable[[Rows], R]) -> Iterator[R]:
        """A function of all complete rows, so many at a time."""
        if self._kept is not None:
            return map(function, self._kept)
        return self._each(lambda block, places: function(self._rows(block, places)))

    def __getstate__(self) -> dict[str, Any]:
        """What travels to where rows lie is without them, and without the way to them."""
        owner: Any = Elsewhere(self.island.name)
        without = {"island": owner, "table": None, "read": self.read._replace(island=owner), "_kept": None}
        return self.__dict__ | without

    def _rows(self, block: Matrix, places: list[Places]) -> Rows:
        keep = np.isfinite(block).all(axis=1)
        for place in places:
            keep &= place >= 0
        if not keep.all():
            block, places = block[keep], [place[keep] for place in places]
        label = places.pop() if self._has_classes else None
        counts = [len(self.read.levels[name]) for name in self._group_names]
        return self._measured(block, list(zip(places, counts, strict=True)), label)

    def _measured(self, block: Matrix, groups: list[tuple[Any, int]], label: Any) -> Rows:
        d, n = len(self.numbers), len(block)
        X = np.empty((n, self.width))
        if self.intercept:
            X[:, 0] = 1.0
        design = X[:, int(self.intercept) :]
        numbers, places = block[:, :d], self._order[:d]
        if self.units is None:
            design[:, places] = numbers
        elif places == list(range(d)):  # the usual case, without a copy between
            np.subtract(numbers, self.units.centre[:d], out=design[:, :d])
            design[:, :d] /= self.units.unit[:d]
        else:
            design[:, places] = (numbers - self.units.centre[places]) / self.units.unit[places]
        at = d
        for place, count in groups:
            for level in range(1, count):
                design[:, self._order[at]] = place == level
                at += 1
        rest = {
            name: block[:, d + i]
            for i, name in enumerate(n for n in self._p.special if label is None or n != self._p.target)
        }
        return Rows(X, self._response(rest, label, n), *self._extras(rest, n))

    def _response(self, rest: dict[str, Matrix], label: Any, n: int) -> Matrix:
        if label is not None:
            return np.asarray(label, dtype=np.float64)
        if self._p.target is None:
            return np.zeros(n)
        return rest[self._p.target]

    def _extras(self, rest: dict[str, Matrix], n: int) -> tuple[Matrix, Matrix]:
        weight = rest[self._p.weights] if self._p.weights else np.ones(n)
        if (weight <= 0).any():
            raise DataError(
                f"{self.island.name}: the weights in {self._p.weights!r} must be above 0",
                hint="drop rows of weight 0",
            )
        return weight, rest[self._p.offset] if self._p.offset else np.zeros(n)

    def _raise_for_missing(self) -> None:
        hint = "drop the row, fill it in, or let the study drop such rows (missing = 'drop')"
        raise_for_missing(self.table, hint)
        start = 0
        for block, places in self.read.parts():
            for name, place in zip(self.read.levels, places, strict=True):
                if (place < 0).any():
                    where = self.island.place(start + int(np.argmax(place < 0)))
                    raise DataError(
                        f"{self.island.name}: column {name!r} holds a missing value at {where}", hint=hint
                    )
            start += len(block)


def _order(agreed: AgreedFields, p: FieldParameters) -> list[int]:
    """Where in the design the numbers stand and, after them, the indicators of each category."""
    numbers: list[int] = []
    groups: list[int] = []
    at = 0
    for name in agreed.names:
        if name in p.categorical:
            width = len(agreed.levels[name]) - 1
            groups.extend(range(at, at + width))
            at += width
        else:
            numbers.append(at)
            at += 1
    return [*numbers, *groups]


def measured_terms(agreed: AgreedFields, p: FieldParameters) -> np.ndarray[Any, Any]:
    """Which design columns hold numbers rather than indicators."""
    flags = [
        flag
        for name in agreed.names
        for flag in ([False] * (len(agreed.levels[name]) - 1) if name in p.categorical else [True])
    ]
    return np.array(flags, dtype=bool)
