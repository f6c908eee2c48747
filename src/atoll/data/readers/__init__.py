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

from collections.abc import Sequence
from pathlib import Path

from atoll.data.headers import check_header, without_index
from atoll.data.readers.base import Reader
from atoll.data.tables.base import Table
from atoll.data.tables.joined import JoinedTable
from atoll.errors import DataError, MissingComponent, SchemaError
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

__all__ = ["READERS", "Reader", "files_of", "opened", "reader_of"]


def files_of(path: Path, name: str) -> list[Path]:
    """The files of one table: itself, or all that a pattern such as ``part-*.parquet`` names, in order."""
    if path.exists() or not any(mark in path.name for mark in "*?["):
        return [path]
    found = sorted(one for one in path.parent.glob(path.name) if one.is_file())
    if not found:
        raise DataError(
            f"{name}: there is no file {path}",
            hint="no name fits the pattern; paths are relative to the study file",
        )
    return found


def opened(files: Sequence[Path], reader: Reader, name: str) -> Table:
    """The table that lies in one file or in several; ``name``: the island's, for errors."""
    parts: dict[str, Table] = {}
    for path in files:
        try:
            parts[path.name] = reader.open(path)
        except MissingComponent:
            raise
        except DataError as error:
            raise DataError(f"{name}: {path.name} cannot be read: {error.message}", hint=error.hint) from None
        except Exception as error:  # each reader has its own exceptions
            reason, hint = reader.trouble(error)
            raise DataError(f"{name}: {path.name} cannot be read: {reason}", hint=hint) from error
        check_header(without_index(parts[path.name].columns), path.name, name)
    if len(parts) == 1:
        return next(iter(parts.values()))
    try:
        return JoinedTable(parts)
    except SchemaError as error:
        raise SchemaError(f"{name}: {error.message}", hint=error.hint) from None


def reader_of(path: Path, name: str) -> Reader:
    """The reader for a file; ``name``: the island's, for the error."""
    if path.is_dir():
        raise DataError(
            f"{name}: {path.name or path} is a folder, not a table", hint="give the path of a file"
        )
    if path.exists() and not path.is_file():
        # A pipe would be waited for, and read once only.
        raise DataError(f"{name}: {path.name} is no ordinary file", hint="write the table to a file first")
    two = "".join(path.suffixes[-2:]).removeprefix(".")
    ending = two if two in READERS else path.suffix.removeprefix(".")
    if ending not in READERS:
        known = ", ".join(f".{known}" for known in READERS.names())
        raise DataError(f"{name}: {path.name} has an ending that is not known", hint=f"one of {known}")
    return READERS[ending]()
