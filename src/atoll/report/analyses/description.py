"""A description: numbers column by column, levels, correlations and two-way tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.protocols.learning.describe import QUANTILES
from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import Review
    from atoll.runtime.result import Result

LEFT_OUT = "left out"
"""What stands in the place of a small cell."""
_SHOWN = 40
"""More levels than these are not for the eye; their file holds them."""


class Description(Analysis):
    """The joint "Table 1"."""

    words = "a description (counts, means, deviations, quantiles, levels)"

    def tables(self, result: Result) -> list[Table]:
        if "description" not in result:
            return []
        told = result["description"]
        shown = [_numbers(told)] if len(told["numbers"]) else []
        if told["levels"]:
            shown.append(_levels(told["levels"]))
        return shown + [_crossed(name, table) for name, table in told["tables"].items()]

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        if "description" not in result:
            return {}
        import pandas as pd

        told = result["description"]
        names = list(told["numbers"])
        kept = {key: np.asarray(told[key]) for key in ("count", "missing", "mean", "std")}
        numbers = pd.DataFrame({"column": names, **kept})
        for i, q in enumerate(QUANTILES):
            values = [told["quantiles"].get(name, [None] * len(QUANTILES))[i] for name in names]
            numbers[f"{q:.0%}"] = values
        frames = {"numbers": numbers}
        if names:
            correlation = pd.DataFrame(np.asarray(told["correlation"]), columns=names)
            correlation.insert(0, "column", names)
            frames["correlation"] = correlation
        if told["levels"]:
            frames["levels"] = pd.DataFrame(_rows(told["levels"]), columns=["column", "level", "count"])
        return frames | {f"table-{i}": _frame(t) for i, t in enumerate(told["tables"].values(), 1)}

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        from atoll.report.analyses.learning_charts import charts_of

        return charts_of(self.name, result, own)

    def facts(self, result: Result) -> dict[str, Any]:
        return {"rows": int(result["description"]["rows"])} if "description" in result else {}

    def summary(self, result: Result) -> str:
        if "description" not in result:
            return super().summary(result)
        told = result["description"]
        columns = len(told["numbers"]) + len(told["levels"])
        return f"{int(told['rows']):,} rows, {columns} columns; small cells are left out."

    def about_records(self, review: Review) -> str:
        del review
        return (
            "No message is about a single record: only sums over all rows of all islands are opened. The "
            "role that opens them sees small cells; those to whom the description is released do not."
        )


def _numbers(told: Any) -> Table:
    forms = [Column("column"), Column("values", "{:,}"), Column("missing", "{:,}")]
    forms += [Column("mean", "{}"), Column("deviation", "{}"), Column("median", "{}")]
    rows = []
    for i, name in enumerate(told["numbers"]):
        median = told["quantiles"].get(name, [None] * len(QUANTILES))[QUANTILES.index(0.5)]
        values = (float(told["mean"][i]), float(told["std"][i]), np.nan if median is None else median)
        counts = (int(told["count"][i]), int(told["missing"][i]))
        rows.append((name, *counts, *(LEFT_OUT if np.isnan(v) else f"{v:.5g}" for v in values)))
    return Table("numbers", "Numbers", forms, rows)


def _levels(levels: Any) -> Table:
    rows = [(column, level, _cell(count)) for column, level, count in _rows(levels)[:_SHOWN]]
    return Table("levels", "Levels", (Column("column"), Column("level"), Column("rows")), rows)


def _rows(levels: Any) -> list[tuple[str, str, int | None]]:
    return [
        (column, level, count)
        for column, told in levels.items()
        for level, count in (
            *zip(told["levels"], told["counts"], strict=True),
            ("(missing)", told["missing"]),
        )
    ]


def _crossed(name: str, table: Any) -> Table:
    columns = (Column(name), *(Column(str(level)) for level in table["columns"]))
    rows = [
        (str(level), *map(_cell, counts))
        for level, counts in zip(table["rows"], table["counts"], strict=True)
    ]
    return Table(name.replace(" ", "-"), name, columns, rows)


def _frame(table: Any) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(table["counts"], columns=list(table["columns"]))
    frame.insert(0, "level", list(table["rows"]))
    return frame


def _cell(count: int | None) -> str:
    return LEFT_OUT if count is None else f"{count:,}"
