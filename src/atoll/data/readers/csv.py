"""Text with a header line: values between commas (csv) or tabs (tsv), as they are or compressed (.gz).

A file is parsed once, by Arrow, block by block, on all cores where it is not packed. What a column holds is
decided by its first block and widened when a later one says otherwise: numbers become text, and the file is
parsed again from its start.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

import numpy as np

from atoll.data.headers import SEPARATORS, other_separator
from atoll.data.readers.base import Reader, State, as_frame, check_unchanged
from atoll.data.tables.arrow import held
from atoll.data.tables.base import Column
from atoll.data.tables.scratch import Scratch
from atoll.errors import DataError
from atoll.lazy import lazy
from atoll.threads import in_order

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as arrow_csv
else:
    pa, pc, arrow_csv = lazy("pyarrow"), lazy("pyarrow.compute"), lazy("pyarrow.csv")

_BLOCK_BYTES = 8 << 20
_EXACT: Final = 2.0**53
"""Whole numbers beyond it are not told apart by doubles."""

_NOT_UTF8: Final = ("it is not UTF-8 text", "save it as UTF-8")

_MISSING: Final = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""What stands for a missing value, as in pandas."""


class CSV(Reader):
    """Commas between the values."""

    separator: ClassVar[str] = ","
    others: ClassVar[str] = ";\t|"
    """What stands between values instead, if the file is of another kind."""

    def read(self, path: Path) -> pd.DataFrame:
        return as_frame(self.open(path))

    def open(self, path: Path) -> CsvTable:
        before = State.of(path)
        table = _Parse(path, self._header(path), self.separator).table()
        check_unchanged(path, before)
        return table

    def columns(self, path: Path) -> tuple[str, ...]:
        return self._header(path).names

    def kinds(self, path: Path) -> list[tuple[str, str, str]]:
        """As the first block says; a later one may say otherwise."""
        header = self._header(path)
        types = _Parse(path, header, self.separator).first_types()
        return [
            (name, held(kind), str(kind)) for name, kind in zip(header.names, types.values(), strict=True)
        ]

    def _header(self, path: Path) -> _Header:
        with _opened(path) as data:
            lines = csv.reader(_text(data), delimiter=self.separator)
            names = next((row for row in lines if row), None)
            empty = not any(line.strip() for line in data)
        if names is None:
            raise DataError("it is empty", hint="its first line names the columns")
        if any("\0" in name for name in names):
            raise DataError(_NOT_UTF8[0], hint=_NOT_UTF8[1])
        if (mark := other_separator(names, self.others)) is not None:
            raise DataError(f"it has one column only, and {mark!r} in its name", hint=SEPARATORS)
        return _Header(tuple(names), lines.line_num, empty)

    def rows(self, path: Path) -> int:
        with _opened(path) as lines:
            return max(0, sum(1 for line in lines if line.strip()) - 1)

    def trouble(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, UnicodeError) or "invalid UTF8" in str(error):
            return _NOT_UTF8
        if isinstance(error, csv.Error):
            return "its lines are not those of a text file", "save it with line ends of Unix or Windows"
        if isinstance(error, gzip.BadGzipFile):  # the first line is read so
            return "it is not packed by gzip", "pack it, or leave .gz out of its name"
        if "zlib inflate failed" in str(error):
            return "it is damaged, or something else stands behind its end", "copy it again"
        if isinstance(error, EOFError) or "Truncated compressed stream" in str(error):
            return "it ends too early", "copy it again: a part is missing"
        if isinstance(error, pa.ArrowInvalid):  # its words may quote a cell
            return "it is not a table of values between separators", "open it in an editor and look"
        return super().trouble(error)


class TSV(CSV):
    """The same with tabs."""

    separator = "\t"
    others = ",;|"


class _Header(NamedTuple):
    """What stands before the rows; ``lines``: how many lines it takes, empty ones before it included."""

    names: tuple[str, ...]
    lines: int
    empty: bool
    """Whether nothing stands behind it."""


class CsvTable(Scratch):
    """A text file's rows. ``whole``: columns of whole numbers, which are kept as doubles."""

    def __init__(self, schema: Any, path: Path, columns: tuple[str, ...], separator: str) -> None:
        super().__init__(schema)
        self.columns = columns
        self._path, self._separator = path, separator
        self.whole: set[int] = set()

    def kind(self, place: int) -> str:
        return "int64" if place in self.whole else super().kind(place)

    def column(self, place: int) -> Column:
        values = super().column(place)
        exact = place in self.whole and values.dtype.kind == "f" and not np.isnan(values).any()
        return values.astype(np.int64) if exact else values

    def place(self, row: int) -> str:
        line = self._line(row)
        name = self._path.name
        return f"row {row} of {name}" if line is None else f"row {row} (line {line} of {name})"

    def _line(self, row: int) -> int | None:
        """Where a row begins: lines may be empty, and a value may have several.

        None if the file is no longer as it was.
        """
        try:
            with _opened(self._path) as data:
                lines = csv.reader(_text(data), delimiter=self._separator)
                full = (values for values in lines if values)  # the header is the first
                values = next(islice(full, row + 1, None), None)
                return None if values is None else lines.line_num - sum(one.count("\n") for one in values)
        except (OSError, EOFError, ValueError, csv.Error):
            pass
        return None


class _Parse:
    """One file on its way to a table; types are by place, and only ever widened."""

    def __init__(self, path: Path, header: _Header, separator: str) -> None:
        self._path, self._header, self._separator = path, header, separator
        self._columns = header.names
        self._names = [str(place) for place in range(len(header.names))]  # theirs may be there twice
        self._types: dict[str, Any] = {}
        self._whole: set[int] = set()
        self._long: set[int] = set()
        self._newlines = False

    def table(self) -> CsvTable:
        """The whole file; parsed again whenever a later block holds other than the first."""
        self._types = self.first_types()
        if self._header.empty:
            schema = pa.schema(list(self._types.items()))
            return CsvTable(schema, self._path, self._columns, self._separator)
        while True:
            try:
                table = self._filled()
            except pa.ArrowInvalid as error:
                if self._widened(str(error)) or self._with_newlines(str(error)):
                    continue
                self._raise_for_length()
                raise
            if not self._exactly(table):
                return table

    def _reader(self, types: dict[str, Any]) -> Any:
        stream = pa.OSFile(str(self._path))
        if self._path.suffix.lower() == ".gz":
            stream = pa.CompressedInputStream(stream, "gzip")
        return arrow_csv.open_csv(stream, *self._options(types, self._header.lines))

    def _options(self, types: dict[str, Any], header: int, longest: int | None = None) -> tuple[Any, ...]:
        """How to read, parse and convert; ``header``: lines to leave out."""
        return (
            arrow_csv.ReadOptions(
                use_threads=longest is None,
                block_size=longest or _BLOCK_BYTES,
                column_names=self._names,
                skip_rows=header,
            ),
            arrow_csv.ParseOptions(delimiter=self._separator, newlines_in_values=self._newlines),
            arrow_csv.ConvertOptions(
                column_types=types,
                null_values=list(_MISSING),
                strings_can_be_null=True,
                true_values=["True", "TRUE", "true"],
                false_values=["False", "FALSE", "false"],
            ),
        )

    def _batches(self) -> tuple[Any, Iterator[Any]]:
        """Schema and rows: blocks of lines side by side where lines are told apart without parsing."""
        reader = self._reader(self._types)
        size = self._path.stat().st_size
        if self._newlines or self._path.suffix.lower() == ".gz" or size <= _BLOCK_BYTES:
            return reader.schema, reader
        parts = in_order(self._block, enumerate(_lines_together(self._path)), size // _BLOCK_BYTES + 1)
        return reader.schema, (batch for part in parts for batch in part)

    def _block(self, numbered: tuple[int, bytes]) -> list[Any]:
        """The rows of some whole lines; the first of them are behind the header."""
        number, lines = numbered
        longest = len(lines) + 1
        options = self._options(self._types, 0 if number else self._header.lines, longest)
        return cast("list[Any]", arrow_csv.read_csv(pa.py_buffer(lines), *options).to_batches())

    def first_types(self) -> dict[str, Any]:
        """As the first block says: numbers as doubles, true and false, and text for everything else."""
        if self._header.empty:
            return dict.fromkeys(self._names, pa.float64())
        while True:
            try:
                schema = self._reader({}).schema
                break
            except pa.ArrowInvalid as error:
                if not self._with_newlines(str(error)):
                    self._raise_for_length()
                    raise
        self._whole = {i for i, kind in enumerate(schema.types) if pa.types.is_integer(kind)}
        return {name: _plain(kind) for name, kind in zip(self._names, schema.types, strict=True)}

    def _filled(self) -> CsvTable:
        schema, batches = self._batches()
        table = CsvTable(schema, self._path, self._columns, self._separator)
        whole, beyond, over_lines = set(self._whole), set[int](), False
        for batch in batches:
            over_lines = over_lines or _over_lines(batch)
            for place in list(whole - self._long):
                values = batch.column(place).to_numpy(zero_copy_only=False)
                if not (np.isnan(values) | (values == np.rint(values))).all():
                    whole.discard(place)
                elif (np.abs(values) >= _EXACT).any():
                    beyond.add(place)
            table.add(batch)
        if over_lines:  # one value may have swallowed many rows
            self._raise_for_length()
        table.whole = whole
        self._beyond = beyond & whole
        return table

    def _exactly(self, table: CsvTable) -> bool:
        """Whole numbers that doubles do not tell apart are parsed again, as what they are."""
        self._whole = table.whole - self._beyond
        self._long |= self._beyond
        for place in self._beyond:
            self._types[self._names[place]] = pa.int64()
        return bool(self._beyond)

    def _widened(self, error: str) -> bool:
        found = re.search(r"In CSV column #(\d+):(?: Row #\d+:)? CSV conversion error to", error)
        if not found:
            return False
        place = int(found[1])
        kind = self._types[self._names[place]]
        if pa.types.is_string(kind):
            return False
        self._types[self._names[place]] = pa.float64() if pa.types.is_integer(kind) else pa.string()
        self._whole.discard(place)
        return True

    def _with_newlines(self, error: str) -> bool:
        """Lines within quotes may lie across two blocks, which Arrow sees only when it is told to look."""
        again = not self._newlines and ("parse" in error or "straddling" in error)
        self._newlines |= again
        return again

    def _raise_for_length(self) -> None:
        """Name the first line that is longer or shorter than the header, or whose quotes are wrong."""
        due, at, first = len(self._columns), 0, True
        with _opened(self._path) as data:
            lines = csv.reader(_text(data), delimiter=self._separator, strict=True)
            try:
                for row in lines:
                    if row and len(row) != due:
                        raise _wrong_length(lines.line_num, len(row), due, first=first and at > 0)
                    first, at = not row and first if at else True, lines.line_num
            except csv.Error as error:
                raise _wrong_quote(at + 1, str(error)) from None


def _lines_together(path: Path) -> Iterator[bytes]:
    """About a block of whole lines after the other. A line end within quotes ends no line: where a block
    would end there, Arrow has to find the lines by itself."""
    rest = b""
    with path.open("rb") as file:
        while data := file.read(_BLOCK_BYTES):
            end = data.rfind(b"\n") + 1
            lines, rest = (rest + data[:end], data[end:]) if end else (b"", rest + data)
            if lines.count(b'"') % 2 or len(rest) > 4 * _BLOCK_BYTES:
                raise pa.ArrowInvalid("a block cannot be parsed by itself")
            if lines.strip(b"\r\n"):
                yield lines
    if rest.count(b'"') % 2:
        raise pa.ArrowInvalid("the last line cannot be parsed by itself")
    if rest.strip(b"\r\n"):
        yield rest


def _wrong_length(line: int, found: int, due: int, *, first: bool) -> DataError:
    if first and found > due:
        more = f"{found - due} value{'s' if found - due > 1 else ''}"
        return DataError(
            f"its lines have {more} more than its first line has names",
            hint="name every column, that of row names too; let no line end with a separator",
        )
    return DataError(
        f"line {line} has {found} values where the header has {due}",
        hint="put quotes around values that hold a separator, and fill up short lines",
    )


def _wrong_quote(line: int, error: str) -> DataError:
    if "field limit" in error:
        return DataError(
            f"a value that begins in line {line} has more than {csv.field_size_limit():,} characters",
            hint="is a quote not closed there? No value is so long",
        )
    if "expected after" in error:
        return DataError(
            f"text follows a closed quote in line {line} or behind it",
            hint='write a quote within a value twice (""), and close every one',
        )
    return DataError(f"a quote in line {line} is not closed", hint="close it, or take it out")


def _over_lines(batch: Any) -> bool:
    """Whether a value has several lines."""
    text = (column for column in batch.columns if pa.types.is_string(column.type))
    return any(pc.any(pc.match_substring(column, "\n")).as_py() for column in text)


def _text(data: IO[bytes]) -> Iterator[str]:
    """Lines; a byte order mark before the first is none of its letters."""
    return (line.decode("utf-8-sig" if i == 0 else "utf-8") for i, line in enumerate(data))


def _plain(kind: Any) -> Any:
    if pa.types.is_boolean(kind):
        return pa.bool_()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return pa.float64()
    return pa.string()


def _opened(path: Path) -> IO[bytes]:
    """The bytes of the text, unpacked where the name says so."""
    packed = path.suffix.lower() == ".gz"
    return cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))
