"""Pictures of models: coefficients with intervals, residuals, ROC and calibration curves, cluster centres."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.ticker import PercentFormatter

from atoll.report import plots
from atoll.report.plots import COLOURS, Matrix, Picture

SHOWN_TERMS = 40


def forest_figure(
    names: Sequence[str], estimates: Matrix, low: Matrix | None, high: Matrix | None, title: str, axis: str
) -> Picture:
    """Every coefficient with its interval, and the line at which it would say nothing."""
    largest = np.arange(len(names))
    if len(names) > SHOWN_TERMS:
        largest = np.sort(np.argsort(-np.abs(estimates), kind="stable")[:SHOWN_TERMS])
        title += f" (the largest {SHOWN_TERMS} of {len(names)})"
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.0, 1.4 + 0.27 * len(largest))
        places = np.arange(len(largest))
        if low is not None and high is not None:
            axes.hlines(places, low[largest], high[largest], color=COLOURS[0], lw=1.6)
        axes.scatter(estimates[largest], places, color=COLOURS[0], s=26, zorder=3)
        axes.axvline(0, color=plots.QUIET, lw=0.9)
        axes.set_yticks(places, [plots.shortened(str(names[i])) for i in largest.tolist()])
        axes.invert_yaxis()
        axes.set(title=title, xlabel=axis)
        return figure


def residuals_figure(fitted: Matrix, residuals: Matrix, title: str) -> Picture:
    """What is left of each own row, against what the model says of it."""
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(6.4, 4.4)
        size = plots.marker_size(len(fitted), letters=False)
        axes.scatter(
            fitted, residuals, s=size, color=COLOURS[0], alpha=0.6, lw=0, rasterized=len(fitted) > 5000
        )
        axes.axhline(0, color=plots.QUIET, lw=0.9)
        axes.set(title=title, xlabel="What the model says", ylabel="Seen minus said")
        return figure


def roc_figure(seen: npt.NDArray[np.bool_], score: Matrix, title: str) -> Picture:
    """How many of one class are found for how many of the other that are found wrongly."""
    false, true, area = roc_curve(seen, score)
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(5.4, 4.8)
        axes.plot(false, true, color=COLOURS[0], lw=1.8, label=f"area {area:.3f}")
        axes.plot([0, 1], [0, 1], color=plots.QUIET, lw=0.9, ls="--", label="by chance")
        axes.set(title=title, xlabel="Found wrongly", ylabel="Found rightly", aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.legend(loc="lower right")
        return figure


def roc_curve(seen: npt.NDArray[np.bool_], score: Matrix) -> tuple[Matrix, Matrix, float]:
    """Shares found wrongly and rightly as the line moves down, and the area below the curve."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # rows of one score are found together
    true = np.append(0.0, np.cumsum(seen[order])[last] / max(1, int(seen.sum())))
    false = np.append(0.0, np.cumsum(~seen[order])[last] / max(1, int((~seen).sum())))
    return false, true, float(np.trapezoid(true, false))


def calibration_figure(seen: npt.NDArray[np.bool_], chance: Matrix, title: str) -> Picture:
    """How often it happened, for rows of which the model said so much."""
    said, happened, counts = calibration_curve(seen, chance)
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(5.4, 4.8)
        axes.plot([0, 1], [0, 1], color=plots.QUIET, lw=0.9, ls="--", label="as said")
        axes.plot(said, happened, color=COLOURS[0], marker="o", label="own rows, in groups of equal size")
        for x, y, count in zip(said, happened, counts, strict=True):
            axes.annotate(f"{count}", (x, y), xytext=(5, -9), textcoords="offset points", fontsize=7.5)
        axes.set(title=title, xlabel="What the model says", ylabel="How often it was so", aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.legend(loc="upper left")
        return figure


def calibration_curve(
    seen: npt.NDArray[np.bool_], chance: Matrix, groups: int = 10
) -> tuple[Matrix, Matrix, list[int]]:
    """Rows in groups of nearly equal size by what the model says: what it says, what was seen, sizes."""
    parts = [part for part in np.array_split(np.argsort(chance, kind="stable"), groups) if len(part)]
    return (
        np.array([chance[part].mean() for part in parts]),
        np.array([seen[part].mean() for part in parts]),
        [len(part) for part in parts],
    )


def centres_figure(centres: Matrix, names: Sequence[str], counts: Sequence[int], title: str) -> Picture:
    """Every cluster's centre, column by column, measured from the mean of the centres in their deviations;
    ``counts`` is empty for whoever was not given them."""
    spread = centres.std(axis=0)
    shown = np.argsort(-spread, kind="stable")[: plots.SHOWN_COLUMNS]
    relative = (centres - centres.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    left_out = (
        f" (the {len(shown)} of {len(names)} columns that differ most)" if len(shown) < len(names) else ""
    )
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(3.4 + 0.9 * len(centres), max(3.4, 1.6 + 0.26 * len(shown)))
        limit = float(np.abs(relative[:, shown]).max(initial=1.0))
        drawn = axes.imshow(relative[:, shown].T, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
        axes.set_yticks(range(len(shown)), [plots.shortened(str(names[i])) for i in shown])
        ticks = [str(i) for i in range(1, len(centres) + 1)]
        if counts:
            ticks = [f"{i}\nn = {n:,}" for i, n in zip(ticks, counts, strict=True)]
        axes.set_xticks(range(len(centres)), ticks)
        axes.set(title=title + left_out, xlabel="cluster")
        axes.grid(visible=False)
        figure.colorbar(drawn, ax=axes, label="deviations from the mean centre")
        return figure


def correlation_figure(correlation: Matrix, names: Sequence[str], title: str) -> Picture:
    """Correlations of every two columns, by colour."""
    with mpl.rc_context(plots.STYLE):
        side = max(4.2, 1.8 + 0.26 * min(len(names), 40))
        figure, axes = plots.canvas(side + 1.0, side)
        drawn = axes.imshow(correlation, cmap="PuOr", vmin=-1, vmax=1)
        if len(names) <= 40:
            short = [plots.shortened(str(name)) for name in names]
            axes.set_xticks(range(len(names)), short, rotation=90)
            axes.set_yticks(range(len(names)), short)
        axes.set(title=title)
        axes.grid(visible=False)
        figure.colorbar(drawn, ax=axes, label="correlation")
        return figure
