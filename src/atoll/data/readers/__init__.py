"""Files that hold tables, one module per format; a format is found by the ending of a file's name.

- :mod:`base`: what a reader brings
- :mod:`csv`: text with a header line, commas or tabs between the values
- :mod:`parquet`: Apache Parquet
- :mod:`npz`: NumPy archives

A new format is a module with a :class:`Reader` and a line below, or a package's entry point in the group
``atoll.readers``. What a table may hold is checked by the island, whatever file it came from.
"""

from __future__ import annotations

from pathlib import Path

from atoll.data.readers.base import Reader
from atoll.errors import DataError
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
    },
)
"""By the ending of a file's name, without its dot."""

__all__ = ["READERS", "Reader", "reader_of"]


def reader_of(path: Path, name: str) -> Reader:
    """The reader for a file; ``name``: the island's, for the error."""
    two = "".join(path.suffixes[-2:]).removeprefix(".")
    ending = two if two in READERS else path.suffix.removeprefix(".")
    if ending not in READERS:
        known = ", ".join(f".{known}" for known in READERS.names())
        raise DataError(f"{name}: {path.name} has an ending that is not known", hint=f"one of {known}")
    return READERS[ending]()
