"""What a user says of columns, as a study's schema; and synthetic rows as a frame with the input's dtypes."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.data.island import Island
from atoll.data.levels import as_levels
from atoll.errors import DataError, ParameterError
from atoll.lazy import lazy
from atoll.protocols.synthesis.schema import Column

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

_HINT = (
    "columns={'age': (18, 90), 'sex': ['F', 'M'], 'smokes': bool}: whole or decimal bounds, all levels, "
    "or bool, known without looking at the rows"
)


def schema_of(columns: Any, edges: Mapping[str, Any] | None, tables: Mapping[str, Island]) -> list[Any]:
    """Every column as the study holds it: bounds, levels or bool as said, dtypes as the tables have them."""
    if not isinstance(columns, Mapping) or not columns:
        raise ParameterError("a synthesizer needs to be told its columns", hint=_HINT, option="columns")
    strange = [name for name in edges or {} if name not in columns]
    if strange:
        raise ParameterError(f"edges name {strange[0]!r}, which is no column", option="edges")
    return [
        {**_said(str(name), said, (edges or {}).get(name)), "dtype": _dtype(str(name), tables)}
        for name, said in columns.items()
    ]


def _said(name: str, said: Any, edges: Any) -> dict[str, Any]:
    if said is bool:
        return {"name": name, "kind": "boolean"}
    if isinstance(said, tuple) and len(said) == 2 and all(isinstance(end, numbers.Real) for end in said):
        whole = all(isinstance(end, numbers.Integral) for end in said)
        told: dict[str, Any] = {"name": name, "kind": "integer" if whole else "number"}
        told |= {"low": float(said[0]), "high": float(said[1])}
        return told | ({"edges": [float(edge) for edge in edges]} if edges is not None else {})
    if isinstance(said, list | np.ndarray) or (hasattr(said, "__iter__") and not isinstance(said, str)):
        return {"name": name, "kind": "category", "levels": as_levels(np.array(list(said), dtype=object))}
    raise ParameterError(f"column {name!r} is described by {said!r}", hint=_HINT, option="columns")


def _dtype(name: str, tables: Mapping[str, Island]) -> str:
    """As the tables have it, where they agree; a study's file may leave it out."""
    found = set()
    for table in tables.values():
        if name in table.columns and table.n_rows:
            frame = table.frame()[name]
            found.add("category" if isinstance(frame.dtype, pd.CategoricalDtype) else str(frame.dtype))
    return found.pop() if len(found) == 1 else ""


def as_frame(rows: Mapping[str, Any], schema: Sequence[Column]) -> pd.DataFrame:
    """Synthetic rows with the dtypes of the input."""
    return pd.DataFrame({column.name: _typed(rows[column.name], column) for column in schema})


def _typed(values: Any, column: Column) -> Any:
    if column.kind == "category":
        if column.dtype == "category" or not column.dtype:
            return pd.Categorical(values, categories=list(column.levels))
        if column.dtype.startswith(("int", "uint", "float", "Int", "UInt", "Float")):
            return pd.array(values.astype(np.float64)).astype(column.dtype)
        return pd.Series(values, dtype=column.dtype)
    if not column.dtype or column.dtype == "object":
        return values
    try:
        dtype: Any = column.dtype
        return pd.Series(values).astype(dtype)
    except (TypeError, ValueError):
        raise DataError(f"column {column.name!r} cannot be written as {column.dtype}") from None
