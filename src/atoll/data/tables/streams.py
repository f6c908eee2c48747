"""Tables of other libraries that speak Arrow: its own tables, readers and data sets, and polars frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atoll.data.tables.arrow import ArrowTable
from atoll.data.tables.base import Table
from atoll.data.tables.scratch import Scratch
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = lazy("pyarrow")


def speaks_arrow(data: Any) -> bool:
    """Whether it is an object of Arrow or polars."""
    return type(data).__module__.split(".")[0] in ("polars", "pyarrow")


def streamed(data: Any) -> Table | None:
    """The table of such an object; None for any other. What can be read only once is kept until the end."""
    if not speaks_arrow(data):
        return None
    try:
        return _read(data)
    except DataError:
        raise
    except Exception as error:  # of whatever it reads from; its words may quote a value
        raise DataError(
            f"the {type(data).__name__} cannot be read ({type(error).__name__})",
            hint="collect it by itself first: that says what is wrong with it, or with the files behind it",
        ) from None


def _read(data: Any) -> Table:
    if type(data).__module__.startswith("polars"):
        return _polars(data)
    if hasattr(data, "to_reader"):  # a table
        return ArrowTable(data)
    if hasattr(data, "num_rows"):  # a record batch
        return ArrowTable(pa.Table.from_batches([data]))
    if hasattr(data, "scanner"):  # a data set of many files
        return Scratch.filled(data.schema, data.to_batches())
    return Scratch.filled(data.schema, data)


def _polars(frame: Any) -> Table:
    if not hasattr(frame, "collect"):
        return ArrowTable(frame.to_arrow())
    nothing = frame.limit(0).collect().to_arrow()
    parts = (part.to_arrow().cast(nothing.schema) for part in frame.collect_batches(maintain_order=True))
    return Scratch.filled(nothing.schema, (batch for part in parts for batch in part.to_batches()))
