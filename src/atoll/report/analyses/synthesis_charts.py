"""What a report shows of synthetic data: columns one by one and two by two, beside the owner's own rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from atoll.protocols.synthesis.schema import encode
from atoll.report import synthesis_plots
from atoll.report.charts import Chart
from atoll.report.plots import shortened
from atoll.report.synthesis_plots import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atoll.data.island import Island
    from atoll.protocols.synthesis.schema import Column
    from atoll.runtime.result import Result

FEWEST = 20
"""Fewer own rows say nothing beside synthetic ones."""


def charts_of(
    result: Result, drawn: Island | None, schema: Sequence[Column], bins: int, own: Island | None
) -> list[Chart]:
    """``drawn``: rows from the released model; where the study released rows themselves, they are cells."""
    codes = result["rows"] if drawn is None else encode(drawn, schema, bins, "clip")
    kinds = [Rows("synthetic rows", codes)]
    if own is not None and own.n_rows >= FEWEST:
        kinds.insert(0, Rows("your own rows", encode(own, schema, bins, "clip")))
    name = shortened(result.study.name)
    beside = (
        " Your own rows are of your table alone, exactly: whoever sees this picture sees figures of them."
        if len(kinds) > 1
        else ""
    )
    margins = (
        "How many of the rows lie in each cell of a column. Synthetic rows are drawn from the model of all "
        "islands together, so a site that differs from the others differs here too." + beside
    )
    pairs = (
        "How strongly every two columns depend on each other: Cramér's V is 0 where they are independent, "
        "and 1 where one says the other. Where a square is as dark in both pictures, the synthetic rows keep "
        "what the two columns say of each other."
    )
    return [
        Chart(
            "margins",
            "Columns one by one",
            margins,
            partial(synthesis_plots.margins_figure, kinds, schema, bins, f"{name}: columns one by one"),
        ),
        Chart(
            "dependence",
            "Columns two by two",
            pairs,
            partial(synthesis_plots.dependence_figure, kinds, schema, bins, f"{name}: columns two by two"),
        ),
    ]
