"""pandas frames as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from atoll.data.tables.base import TIMES, Column, Piece, Table, held_by
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


class FrameTable(Table):
    """Columns are taken by their place: names of a frame need not be text, nor differ."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.columns = tuple(
            "" if pd.api.types.is_scalar(column) and pd.isna(column) else str(column)
            for column in frame.columns
        )

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        yield [self.column(place) for place in places]

    def holds(self, place: int) -> str:
        kind = self.frame.dtypes.iloc[place]
        if isinstance(kind, pd.DatetimeTZDtype | pd.PeriodDtype):
            return TIMES
        return held_by(self.column(place).dtype)

    def kind(self, place: int) -> str:
        return str(self.frame.dtypes.iloc[place])

    def column(self, place: int) -> Column:
        series = self.frame.iloc[:, place]
        kind = series.dtype.kind
        if kind in "fiub" and not isinstance(series.dtype, np.dtype):
            # pandas' nullable numbers: a missing value becomes nan, which the statistics refuse by place.
            if not series.isna().any():
                return series.to_numpy(
                    dtype={"b": np.bool_, "i": np.int64, "u": np.uint64}.get(kind, np.float64)
                )
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        return series.to_numpy()
