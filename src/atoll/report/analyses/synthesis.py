"""Synthetic data: what the model is, how often each cell is, and rows drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atoll import randomness
from atoll.protocols import protocol_of
from atoll.protocols.synthesis import models
from atoll.protocols.synthesis.schema import Column as Field
from atoll.protocols.synthesis.schema import cell_names
from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import Review
    from atoll.runtime.result import Result

_SHOWN = 40
"""More cells than these are not for the eye; their file holds them."""
_SEED = 0
"""Of the rows that go to a file and into pictures: the same result, the same file."""


class Synthesis(Analysis):
    """A model of synthetic rows."""

    words = "a model of all rows together, with noise in it, from which synthetic rows are drawn"

    def tables(self, result: Result) -> list[Table]:
        if "model" not in result:
            return []
        rows = [(column, cell, share) for column, cell, share in _margins(result)[:_SHOWN]]
        columns = (Column("column"), Column("cell"), Column("share", "{:.1%}"))
        return [Table("margins", "Margins of the model", columns, rows)]

    def notes(self, result: Result) -> list[str]:
        if "model" not in result:
            return []
        return [
            (
                f"Rows are drawn from {_kind(result)}. Numbers have noise in them, and nothing here is a "
                "row of anybody; a conclusion that matters is to be checked on the real rows."
            )
        ]

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        if "model" not in result:
            return {}
        import pandas as pd

        margins = pd.DataFrame(_margins(result), columns=["column", "cell", "share"])
        return {"synthetic": _drawn(result), "margins": margins}

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        if "model" not in result and "rows" not in result:
            return []
        from atoll.data.island import Island
        from atoll.report.analyses.synthesis_charts import charts_of

        drawn = Island.from_frame(_drawn(result), name="synthetic") if "model" in result else None
        return charts_of(result, drawn, *_schema(result), own)

    def facts(self, result: Result) -> dict[str, Any]:
        if "model" not in result:
            return {}
        return {"rows": round(float(result["model"]["count"])), "model": str(result["model"]["kind"])}

    def summary(self, result: Result) -> str:
        if "rows" in result:
            return f"{len(result['rows']):,} synthetic rows of {len(_schema(result)[0])} columns."
        if "model" not in result:
            return super().summary(result)
        columns, rows = len(_schema(result)[0]), round(float(result["model"]["count"]))
        return f"A model of {columns} columns and about {rows:,} rows: {_kind(result)}."

    def about_records(self, review: Review) -> str:
        del review
        return (
            "No message is about a single record: one sum over all rows of all islands is opened, with noise "
            "in it that hides any one of them. Synthetic rows are drawn from a model of that sum."
        )

    def risks(self, review: Review) -> list[str]:
        del review
        return [
            (
                "Synthetic rows look like records, and are none. A row that equals somebody's by chance says "
                "nothing about that person beyond what the stated epsilon allows."
            ),
            (
                "Groups smaller than the noise are not in the model as they are in the data; a conclusion "
                "about them is to be checked on the real rows."
            ),
        ]


def _schema(result: Result) -> tuple[tuple[Field, ...], int]:
    p: Any = result.study.read_parameters(protocol_of(result.study.protocol).parameters)
    return p.schema, p.bins


def _drawn(result: Result) -> pd.DataFrame:
    """As many rows as there were, from the model; the same result gives the same rows."""
    import pandas as pd

    schema, bins = _schema(result)
    rows = max(1, round(float(result["model"]["count"])))
    return pd.DataFrame(models.sample(result["model"], schema, bins, rows, {}, randomness.public(_SEED)))


def _kind(result: Result) -> str:
    said = {
        "maximum-entropy": "the distribution of largest entropy with the released moments",
        "latent-classes": "latent classes fitted to the released moments",
        "tree": "a tree of two-way tables",
        "gaussian": "probabilistic PCA of the released moments",
    }
    return said.get(result["model"]["kind"], str(result["model"]["kind"]))


def _margins(result: Result) -> list[tuple[str, str, float]]:
    schema, bins = _schema(result)
    names = [(column.name, cell) for column in schema for cell in cell_names(column, bins)]
    shares = np.asarray(result["model"]["margins"])
    return [(column, cell, float(share)) for (column, cell), share in zip(names, shares, strict=True)]
