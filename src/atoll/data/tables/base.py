"""What a table is: names, a number of rows, and pieces of some of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

R = TypeVar("R")
Column = npt.NDArray[Any]

Piece = Sequence[Column] | npt.NDArray[Any]
"""Some rows of some columns: one array for each column, or a matrix."""

NUMBERS = "numbers"
TIMES = "dates or times"
OTHER = "text"
"""What a column holds: numbers by its type; times; or what only its values tell."""


class Table(ABC):
    """Rows that lie somewhere. Places count columns from 0; names are as the table has them."""

    columns: tuple[str, ...]
    scratch_bytes: int = 0
    """How much of it lies in a scratch file."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        """These columns of all rows, in order, in pieces of any length that fit into memory.

        Numbers come as they are, or as doubles with nan for a missing value; everything else as objects.
        Whoever reads a second time reads the same, or an error.
        """

    lies_here: bool = True
    """Whether this process reads the rows."""

    def each_part(self, places: Sequence[int], function: Callable[[Piece, int], R]) -> Iterator[R] | None:
        """A function of some rows and the place of their first, one part after the other, computed where they
        lie; None where they lie here."""
        del places, function
        return None

    @abstractmethod
    def holds(self, place: int) -> str:
        """What a column holds, as far as its type says."""

    def kind(self, place: int) -> str:
        """The column's type in its owner's words."""
        return self.holds(place)

    def place(self, row: int) -> str:
        """A row as its owner finds it."""
        return f"row {row}"

    def column(self, place: int) -> Column:
        """One column of all rows, as it is."""
        parts = [piece[:, 0] if isinstance(piece, np.ndarray) else piece[0] for piece in self.pieces([place])]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0)


def length(piece: Piece, default: int = 0) -> int:
    """How many rows a piece has; ``default``: of a piece without columns."""
    if isinstance(piece, np.ndarray):
        return len(piece)
    return len(piece[0]) if piece else default


def held_by(dtype: np.dtype[Any]) -> str:
    """What a NumPy type says of its values."""
    if dtype.kind in "fiub":
        return NUMBERS
    return TIMES if dtype.kind in "mM" else OTHER
