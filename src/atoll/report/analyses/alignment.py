"""An alignment: how many rows all islands have, and which of one's own they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atoll.lazy import lazy
from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import Review
    from atoll.runtime.result import Result
else:
    pd = lazy("pandas")


class Alignment(Analysis):
    """The common rows."""

    words = "which records they all have"

    def tables(self, result: Result) -> list[Table]:
        if "common" not in result:
            return []
        rows = [("common rows", f"{result['common']:,}"), ("order", str(result["order"])[:16])]
        return [Table("alignment", "Alignment", (Column("what"), Column("value")), rows)]

    def notes(self, result: Result) -> list[str]:
        if "rows" not in result:
            return []
        return ["A later study takes these rows in this order: [local] alignments names every result file."]

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        """Rows counted from 0, in the common order; one column for each island whose result this is."""
        rows = result.outputs.get("rows")
        return {"rows": pd.DataFrame(dict(rows))} if rows else {}

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        """How many of the owner's own rows all islands have; another island's number is not known."""
        if own is None or "common" not in result:
            return []
        from atoll.report.analyses.alignment_charts import charts_of

        return charts_of(result, own)

    def facts(self, result: Result) -> dict[str, Any]:
        return {name: result[name] for name in ("common", "order") if name in result}

    def summary(self, result: Result) -> str:
        if "common" not in result:
            return super().summary(result)
        return f"{result['common']:,} rows are common to all islands."

    def about_records(self, review: Review) -> str:
        del review
        return (
            "Every island learns of single records of its own that all others have them too. It learns "
            "nothing of records that it does not have."
        )

    def risks(self, review: Review) -> list[str]:
        del review
        return [
            "That all islands know a person may be sensitive: a register of an illness says who is ill.",
            "An island with made-up ids learns which of these all others have. Nobody can tell.",
        ]
