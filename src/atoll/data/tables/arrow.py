"""Columns of Apache Arrow as NumPy arrays, and Arrow tables that lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.data.tables.base import NUMBERS, OTHER, TIMES, Column, Piece, Table
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = lazy("pyarrow")


def as_numpy(column: Any) -> Column:
    """An Arrow array: numbers as they are, or as doubles with nan where one is missing; else objects."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_decimal(kind) or (column.null_count and held(kind) == NUMBERS):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def held(kind: Any) -> str:
    """What an Arrow type says of its values."""
    types = pa.types
    if types.is_dictionary(kind):
        return held(kind.value_type)
    if types.is_temporal(kind):
        return TIMES
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if any(test(kind) for test in numbers):
        return NUMBERS
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return OTHER
    return f"values of the type {kind}"


class ArrowTable(Table):
    """Record batches that lie in memory; whatever comes as batches elsewhere derives from this."""

    def __init__(self, table: Any) -> None:
        self.schema = table.schema
        self.columns = tuple(table.schema.names)
        self._table = table

    @property
    def n_rows(self) -> int:
        return int(self._table.num_rows)

    def batches(self, places: Sequence[int]) -> Iterator[Any]:
        """Record batches of these columns."""
        yield from self._table.select(list(places)).to_batches()

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        for batch in self.batches(places):
            yield [as_numpy(column) for column in batch.columns]

    def holds(self, place: int) -> str:
        return held(self.schema.field(place).type)

    def kind(self, place: int) -> str:
        return str(self.schema.field(place).type)
