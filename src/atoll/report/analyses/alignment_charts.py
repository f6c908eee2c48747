"""What a report shows of an alignment: the owner's rows, those that all islands have and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

from atoll.errors import DataError
from atoll.report import plots
from atoll.report.charts import Chart

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.runtime.result import Result


def charts_of(result: Result, own: Island) -> list[Chart]:
    """One chart."""
    common, rows = int(result["common"]), own.n_rows
    if common > rows:
        raise DataError(
            f"{own.name} has {rows:,} rows, of which {common:,} cannot be common to all islands",
            hint="give the table that took part in the study",
        )

    def draw() -> plots.Picture:
        with mpl.rc_context(plots.STYLE):
            figure, axes = plots.canvas(7.0, 2.2)
            parts = {"all islands have": (0, common), "only some have": (common, rows - common)}
            for (words, (left, width)), colour in zip(parts.items(), plots.COLOURS, strict=False):
                axes.barh([0], [width], left=left, color=colour, height=0.5, label=f"{words}: {width:,}")
            axes.set(
                title=f"{plots.shortened(result.study.name)}: rows in common",
                xlabel=f"rows of {plots.shortened(own.name)}",
                yticks=[],
                ylim=(-0.5, 0.5),
            )
            figure.legend(loc="outside lower right", ncols=2)
            return figure

    words = "Of your own rows, those that all islands have. How many rows another island has is not known."
    return [Chart("common", "Rows in common", words, draw)]
