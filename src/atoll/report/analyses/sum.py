"""A secure sum: the total, entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.runtime.result import Result

SHOWN = 20
"""A longer vector is not for the eye; its file holds it."""


class Sum(Analysis):
    """The total of what the islands brought."""

    words = "a sum"

    def tables(self, result: Result) -> list[Table]:
        return [] if len(result.outputs.get("total", ())) > SHOWN else self.long_tables(result)

    def long_tables(self, result: Result) -> list[Table]:
        if "total" not in result:
            return []
        rows = [(str(i), float(value)) for i, value in enumerate(result["total"], 1)]
        return [Table("total", "Sum", (Column("entry"), Column("total", "{:.6g}")), rows)]

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        del own  # a sum is of vectors, which no table has
        if "total" not in result or len(result["total"]) < 2:
            return []
        from atoll.report.analyses.sum_charts import charts_of

        return charts_of(result)

    def summary(self, result: Result) -> str:
        if "total" not in result:
            return super().summary(result)
        numbers = len(result["total"])
        what = "one number" if numbers == 1 else f"{numbers:,} numbers"
        return f"The sum of {what} over {len(result['islands'])} islands."
