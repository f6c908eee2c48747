"""Genotypes of PLINK (.bed with .bim and .fam beside it), some people at a time: counts of allele 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from atoll.data.readers.base import PieceReader, State, check_unchanged
from atoll.data.tables.base import NUMBERS, Piece, Table
from atoll.errors import DataError, MissingComponent

_PIECE_BYTES: Final = 16 << 20
_MAGIC: Final = b"\x6c\x1b\x01"
_WRITE: Final = "plink --make-bed writes the three files anew"


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
        self._check_form(path)

    @property
    def n_rows(self) -> int:
        return len(self._people)

    def _check_form(self, path: Path) -> None:
        """That variants stand one after the other, each with all people of the .fam file."""
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start != _MAGIC:
            raise DataError("it is no .bed file of PLINK with one variant after the other", hint=_WRITE)
        due = len(_MAGIC) + len(self.columns) * -(-len(self._people) // 4)
        if self._state.size != due:
            raise DataError(
                f"{len(self._people):,} people and {len(self.columns):,} variants take {due:,} bytes, and "
                f"it has {self._state.size:,}",
                hint="a part is missing, or its .bim or .fam is another table's: copy all three again",
            )

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

    def trouble(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, FileNotFoundError):
            return "its .bim or its .fam is not beside it", "the three files of one table have one name"
        return "its .bim or its .fam is not as PLINK writes them", _WRITE
