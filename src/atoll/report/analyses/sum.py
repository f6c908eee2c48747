"""A secure sum: the total, entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    from atoll.runtime.result import Result

SHOWN = 20
"""A longer vector is not for the eye; its file holds it."""


class Sum(Analysis):
    """The total of what the islands brought."""

    words = "a sum"

    def tables(self, result: Result) -> list[Table]:
        if "total" not in result or len(result["total"]) > SHOWN:
            return []
        rows = [(str(i), float(value)) for i, value in enumerate(result["total"], 1)]
        return [Table("total", "Sum", (Column("entry"), Column("total", "{:.6g}")), rows)]

    def summary(self, result: Result) -> str:
        if "total" not in result:
            return super().summary(result)
        numbers = len(result["total"])
        what = "one number" if numbers == 1 else f"{numbers:,} numbers"
        return f"The sum of {what} over {len(result['islands'])} islands."
