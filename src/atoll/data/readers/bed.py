"""Genotypes of PLINK (.bed with .bim and .fam beside it), some people at a time: counts of allele 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from atoll.data.readers.base import PieceReader, State, check_unchanged
from atoll.data.tables.base import NUMBERS, Piece, Table
from atoll.errors import MissingComponent

_PIECE_BYTES: Final = 16 << 20


class BedTable(Table):
    """Rows are people, columns are variants, named as in the .bim file."""

    def __init__(self, path: Path) -> None:
        try:
            from bed_reader import open_bed
        except ImportError:
            raise MissingComponent(
                "files of PLINK need bed-reader", hint="pip install 'atoll[genomics]'"
            ) from None
        self._path, self._state = path, State.of(path)
        self._bed: Any = open_bed(path)
        self.columns = tuple(str(name) for name in self._bed.sid)
        self._people = tuple(str(name) for name in self._bed.iid)

    @property
    def n_rows(self) -> int:
        return len(self._people)

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        check_unchanged(self._path, self._state)
        step = max(1, _PIECE_BYTES // (4 * max(1, len(places))))
        for start in range(0, self.n_rows, step):
            rows = np.arange(start, min(start + step, self.n_rows))
            yield self._bed.read(index=(rows, np.asarray(places)), dtype="float32", order="C")
        check_unchanged(self._path, self._state)

    def holds(self, place: int) -> str:
        del place
        return NUMBERS

    def kind(self, place: int) -> str:
        del place
        return "genotype"

    def place(self, row: int) -> str:
        return f"row {row} (person {row + 1} of {self._path.with_suffix('.fam').name})"


class Bed(PieceReader):
    """Names come from beside the values."""

    table = BedTable
