"""Several files that are one table: the same columns, one file's rows after the other's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from atoll.data.tables.base import NUMBERS, Piece, Table
from atoll.errors import SchemaError


class JoinedTable(Table):
    """``parts``: by the names of their files; columns are found by name."""

    def __init__(self, parts: Mapping[str, Table]) -> None:
        self._parts = dict(parts)
        first, reference = next(iter(parts.items()))
        self.columns = reference.columns
        for name, part in parts.items():
            for one, other, where in (
                (self.columns, part.columns, name),
                (part.columns, self.columns, first),
            ):
                lacking = [column for column in one if column not in other]
                if lacking:
                    raise SchemaError(
                        f"{where} lacks the column {lacking[0]!r}, which another file of the table has",
                        hint="all files of one table have the same columns",
                    )

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts.values())

    def _there(self, part: Table, places: Sequence[int]) -> list[int]:
        return [part.columns.index(self.columns[place]) for place in places]

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        for part in self._parts.values():
            yield from part.pieces(self._there(part, places))

    def holds(self, place: int) -> str:
        found = [part.holds(self._there(part, [place])[0]) for part in self._parts.values()]
        return next((one for one in found if one != NUMBERS), NUMBERS)

    def kind(self, place: int) -> str:
        kinds = {part.kind(self._there(part, [place])[0]): None for part in self._parts.values()}
        return " or ".join(kinds)

    def place(self, row: int) -> str:
        ends = np.cumsum([part.n_rows for part in self._parts.values()])
        which = min(int(np.searchsorted(ends, row, side="right")), len(ends) - 1)
        name, part = list(self._parts.items())[which]
        said = part.place(row - (int(ends[which - 1]) if which else 0))
        return said if name in said else f"{said} of {name}"
