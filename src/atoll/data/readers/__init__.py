"""Files that hold tables, one module per format; a format is found by the ending of a file's name.

- :mod:`base`: what a reader brings
- :mod:`csv`: text with a header line, commas or tabs between the values
- :mod:`parquet`: Apache Parquet
- :mod:`npz`: NumPy archives
- :mod:`bed`: genotypes of PLINK
- :mod:`h5ad`: single cells, of anndata

A new format is a module with a :class:`Reader` and a line below, or a package's entry point in the group
``atoll.readers``. What a table may hold is checked by the island, whatever file it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from atoll.data.headers import check_header, without_index
from atoll.data.readers.base import Reader
from atoll.data.tables.base import Table
from atoll.data.tables.joined import JoinedTable
from atoll.errors import DataError, MissingComponent, named
from atoll.registry import Registry

READERS: Registry[type[Reader]] = Registry(
    "atoll.readers",
    "a reader of tables",
    Reader,
    {
        "csv": "atoll.data.readers.csv:CSV",
        "csv.gz": "atoll.data.readers.csv:CSV",
        "tsv": "atoll.data.readers.csv:TSV",
        "tsv.gz": "atoll.data.readers.csv:TSV",
        "parquet": "atoll.data.readers.parquet:Parquet",
        "npz": "atoll.data.readers.npz:NPZ",
        "bed": "atoll.data.readers.bed:Bed",
        "h5ad": "atoll.data.readers.h5ad:H5ad",
    },
)
"""By the ending of a file's name, without its dot."""

_MARKS = frozenset("*?[")

__all__ = ["READERS", "Reader", "files_of", "opened", "reader_of"]


def files_of(path: Path, name: str) -> list[Path]:
    """The files of one table: itself, or all that a pattern such as ``part-*.parquet`` names, in order."""
    with _permitted(path, name):
        if path.exists() or not _MARKS & set(path.name):
            return [path]
    found = sorted(path.parent.glob(path.name))
    if not found:
        folders = "; a pattern may stand in the last part only" if _MARKS & set(str(path.parent)) else ""
        raise DataError(
            f"{name}: there is no file {path}",
            hint=f"no name fits the pattern; paths are relative to the study file{folders}",
        )
    for one in found:
        if not one.is_file():  # left out, its rows would be missed by nobody
            raise DataError(
                f"{name}: {one.name} fits the pattern {path.name} and is no file",
                hint="a link to nothing, or a folder? Take it away, or choose another pattern",
            )
    return found


def opened(files: Sequence[Path], reader: Reader, name: str) -> Table:
    """The table that lies in one file or in several; ``name``: the island's, for errors."""
    parts: dict[str, Table] = {}
    for path in files:
        if not path.is_file():
            raise DataError(f"{name}: there is no file {path}", hint="paths are relative to the study file")
        try:
            parts[path.name] = reader.open(path)
        except MissingComponent:
            raise
        except PermissionError:
            raise _locked(path, name) from None
        except DataError as error:
            raise DataError(f"{name}: {path.name} cannot be read: {error.message}", hint=error.hint) from None
        except Exception as error:  # each reader has its own exceptions
            reason, hint = reader.trouble(error)
            raise DataError(f"{name}: {path.name} cannot be read: {reason}", hint=hint) from error
        check_header(without_index(parts[path.name].columns), path.name, name)
    if len(parts) == 1:
        return next(iter(parts.values()))
    with named(name):
        return JoinedTable(parts)


@contextmanager
def _permitted(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise _locked(path, name) from None


def _locked(path: Path, name: str) -> DataError:
    return DataError(
        f"{name}: {path.name} may not be read by whoever runs Atoll",
        hint="its owner can give the right to read it, and to enter its folders",
    )


def reader_of(path: Path, name: str) -> Reader:
    """The reader for a file; ``name``: the island's, for the error."""
    with _permitted(path, name):
        if path.is_dir():
            raise DataError(
                f"{name}: {path.name or path} is a folder, not a table", hint="give the path of a file"
            )
        if path.exists() and not path.is_file():
            # A pipe would be waited for, and read once only.
            raise DataError(
                f"{name}: {path.name} is no ordinary file", hint="write the table to a file first"
            )
    two = "".join(path.suffixes[-2:]).removeprefix(".").lower()
    ending = two if two in READERS else path.suffix.removeprefix(".").lower()
    if ending not in READERS:
        known = ", ".join(f".{known}" for known in READERS.names())
        raise DataError(f"{name}: {path.name} has an ending that is not known", hint=f"one of {known}")
    return READERS[ending]()
