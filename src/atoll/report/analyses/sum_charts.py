"""What a report shows of a sum: its entries, one beside the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from atoll.report import plots
from atoll.report.charts import Bars, Chart

if TYPE_CHECKING:
    from atoll.runtime.result import Result

MOST_BARS = 2_000
"""More entries are drawn as a line, and only so."""


def charts_of(result: Result) -> list[Chart]:
    """One chart."""
    total = np.asarray(result["total"], np.float64)
    title = f"{plots.shortened(result.study.name)}: the total"

    def draw() -> plots.Picture:
        with mpl.rc_context(plots.STYLE):
            figure, axes = plots.canvas(7.0, 4.0)
            places = np.arange(1, len(total) + 1)
            if len(total) > MOST_BARS:
                axes.plot(places, total, color=plots.COLOURS[0], lw=0.8)
            else:
                axes.bar(places, total, width=0.75, color=plots.COLOURS[0])
            axes.axhline(0, color=plots.QUIET, lw=0.8)
            axes.set(title=title, xlabel="entry of the vector", ylabel="total over all islands")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            return figure

    live = None
    if len(total) <= MOST_BARS:
        names = [str(i) for i in range(1, len(total) + 1)]
        live = Bars(
            names, {"total": total}, {"total": "total over all islands"}, (), across="entry of the vector"
        )
    words = "Every bar is an entry of the vector that the islands brought, added over all of them."
    return [Chart("total", "The total, entry by entry", words, draw, live)]
