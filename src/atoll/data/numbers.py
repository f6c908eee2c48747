"""Values as doubles: what cannot be one is refused by its place, and never quoted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from atoll.data.tables.base import OTHER, TIMES, Column, Piece, length
from atoll.errors import DataError

if TYPE_CHECKING:
    from atoll.data.island import Island

Matrix = npt.NDArray[np.float64]
R = TypeVar("R")


class Owner(Protocol):
    """Whoever errors name, and who can say where a row is."""

    @property
    def name(self) -> str: ...

    def place(self, row: int) -> str: ...


class Elsewhere(NamedTuple):
    """The owner of rows that are read on another machine."""

    name: str

    def place(self, row: int) -> str:
        return f"row {row}"


@dataclass(frozen=True)
class OfRows(Generic[R]):
    """A function of numbers and other columns as one of a piece; it travels to where the piece lies."""

    function: Callable[[Matrix, list[Column]], R]
    owner: str
    columns: tuple[str, ...]
    """Those with numbers, which are the first ones of a piece."""

    def __call__(self, piece: Piece, start: int) -> R:
        wide = piece.shape[1] if isinstance(piece, np.ndarray) else len(piece)
        others = [raw([piece], place) for place in range(len(self.columns), wide)]
        return self.function(matrix(Elsewhere(self.owner), [piece], self.columns, start), others)


def cut(pieces: Iterable[Piece], step: int) -> Iterator[list[Piece]]:
    """Blocks of so many rows, the last one perhaps of fewer: each as pieces one after the other."""
    held: list[Piece] = []
    have = 0
    for piece in pieces:
        at, end = 0, length(piece)
        while at < end:
            taken = min(step - have, end - at)
            held.append(_rows(piece, at, at + taken))
            at, have = at + taken, have + taken
            if have == step:
                yield held
                held, have = [], 0
    if held:
        yield held


def _rows(piece: Piece, start: int, end: int) -> Piece:
    return piece[start:end] if isinstance(piece, np.ndarray) else [column[start:end] for column in piece]


def matrix(island: Owner, parts: Sequence[Piece], columns: Sequence[str], start: int) -> Matrix:
    """The first columns of some pieces as one block of doubles; ``start``: the place of its first row."""
    d = len(columns)
    if len(parts) == 1 and isinstance(parts[0], np.ndarray) and parts[0].shape[1] == d:
        return as_floats(island, parts[0], columns, start)
    # Column after column, as they come: rows would be written one value here, one there.
    out = np.empty((d, sum(map(length, parts))))
    at = 0
    for part in parts:
        end = at + length(part)
        if isinstance(part, np.ndarray):
            out[:, at:end] = as_floats(island, part[:, :d], columns, start + at).T
        else:
            for j, values in enumerate(part[:d]):
                out[j, at:end] = as_floats(island, values, columns[j : j + 1], start + at)
        at = end
    return out.T


def raw(parts: Sequence[Piece], place: int) -> Column:
    """One column of some pieces, as it is."""
    columns = [part[:, place] if isinstance(part, np.ndarray) else part[place] for part in parts]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def as_floats(island: Owner, values: npt.NDArray[Any], columns: Sequence[str], start: int = 0) -> Matrix:
    """One column, or all of a matrix; ``start``: the place of its first row."""
    if values.dtype.kind == "c":
        raise DataError(
            f"{island.name}: complex data not supported",
            hint="hand in real and imaginary parts as columns of their own",
        )
    if values.dtype.kind in "mM":
        raise not_numbers(island, columns[0], TIMES)
    converted = _floats_or_none(values)
    if converted is None:
        # Raised here rather than where the conversion failed, whose error quotes the cell.
        _raise_for_text(island, np.atleast_2d(values.T).T, columns, start)
        raise DataError(f"{island.name}: column {columns[0]!r} cannot be read as numbers")
    return converted


def check_floats(island: Island, column: str, held: str) -> None:
    """Refuse a column whose type does not say that it holds numbers, unless all its values are such."""
    if held != OTHER:
        raise not_numbers(island, column, held)
    start = 0
    for (values,) in island.values_in_blocks([column]):
        as_floats(island, values, [column], start)
        start += len(values)


def not_numbers(island: Owner, column: str, held: str) -> DataError:
    """The error for a column of another type."""
    recoded = "turn it into a number first, for example days since a public date"
    return DataError(
        f"{island.name}: column {column!r} holds {held} where numbers are needed",
        hint=recoded if held == TIMES else "recode it as numbers, or leave it out (columns = [...])",
    )


def _raise_for_text(island: Owner, values: npt.NDArray[Any], columns: Sequence[str], start: int) -> None:
    for j, column in enumerate(columns):
        for row, value in enumerate(values[:, j], start):
            if not _is_number(value):
                raise DataError(
                    f"{island.name}: column {column!r} holds {_kind(value)} at {island.place(row)}",
                    hint="recode it as numbers (no and yes: 0 and 1), leave it out (columns = [...]), or "
                    "name it as the label",
                )


def _floats_or_none(values: npt.NDArray[Any]) -> Matrix | None:
    if values.dtype.kind in "OU" and any(_is_code(value) for value in values.ravel()):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_code(value: object) -> bool:
    """Python reads 12_34 as a number; in a table it is plate 12, well 34."""
    return isinstance(value, str) and "_" in value


def _is_number(value: object) -> bool:
    if _is_code(value):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _kind(value: object) -> str:
    """What a cell holds that is no number, without quoting it."""
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, int):
        return "a number too large for a double"
    return f"a {type(value).__name__}, which is no number,"
