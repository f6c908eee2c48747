"""Pictures of columns and of many records: correlation circle, biplot, contributions, density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from atoll.report import plots
from atoll.report.charts import Outline
from atoll.report.plots import COLOURS, Matrix, Picture

NAMED_COLUMNS = 25
"""Names beyond these would cover each other; the columns that matter most keep theirs."""
MANY = 5_000
"""More points than these are drawn as a density."""


def circle_figure(correlations: Matrix, names: Sequence[str], title: str, shares: Matrix | None) -> Picture:
    """Columns by their correlation with the first two components; long arrows are shown well."""
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(6.4, 6.0)
        axes.add_patch(Circle((0, 0), 1.0, fill=False, color=plots.QUIET, lw=0.8))
        named = _largest(np.hypot(*correlations[:, :2].T))
        _arrows(axes, correlations[:, :2], names, named)
        axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal", title=title + _left_out(names))
        _label(axes, shares)
        return figure


def biplot_figure(
    scores: Mapping[str, Matrix], weights: Matrix, names: Sequence[str], title: str, shares: Matrix | None
) -> Picture:
    """Records and columns in one picture; the title says by how much columns are scaled."""
    scale = biplot_scale(scores, weights)
    colours = plots.island_colours(list(scores))
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.6, 6.0)
        many = sum(map(len, scores.values())) > MANY
        if many:
            _density(axes, scores, "Greys")
        for island, rows in ({} if many else scores).items():
            size = plots.marker_size(sum(map(len, scores.values())), letters=False)
            axes.scatter(
                rows[:, 0], rows[:, 1], s=size, color=colours[island], alpha=0.45, lw=0, label=island
            )
        named = _largest(np.hypot(*weights[:, :2].T), 12)
        _arrows(axes, weights[:, :2] * scale, names, named)
        axes.set(title=f"{title}\narrows: entries of the components x {scale:.3g}")
        _label(axes, shares)
        if not many:
            figure.legend(loc="outside right upper", title="island")
        return figure


def biplot_scale(scores: Mapping[str, Matrix], weights: Matrix) -> float:
    """Makes the longest arrow reach four fifths of the way to the farthest record; a round number."""
    far = max((float(np.abs(rows[:, :2]).max()) for rows in scores.values() if len(rows)), default=1.0)
    longest = float(np.abs(weights[:, :2]).max()) or 1.0
    return float(f"{0.8 * (far or 1.0) / longest:.2g}")


def contributions_figure(
    contributions: Matrix, names: Sequence[str], title: str, component: int = 0
) -> Picture:
    """The columns that make up most of a component, and the line at which all would be equal."""
    values = contributions[:, component]
    largest = np.argsort(-values, kind="stable")[: plots.SHOWN_COLUMNS]
    left_out = f" (the largest {len(largest)} of {len(values)})" if len(largest) < len(values) else ""
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.0, 1.5 + 0.24 * len(largest))
        axes.barh(np.arange(len(largest)), values[largest], color=COLOURS[0], height=0.7)
        axes.set_yticks(np.arange(len(largest)), [plots.shortened(str(names[i])) for i in largest])
        axes.invert_yaxis()
        axes.axvline(
            100.0 / len(values), color=COLOURS[5], lw=1.4, ls="--", label="if all columns were equal"
        )
        axes.set(title=title + left_out, xlabel=f"Contribution to PC{component + 1} in percent")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower right")
        return figure


def density_figure(scores: Mapping[str, Matrix], title: str, shares: Matrix | None) -> Picture:
    """Very many records on the first two components: how many there are at each place."""
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.6, 5.2)
        drawn = _density(axes, scores, "viridis")
        figure.colorbar(drawn, ax=axes, label="records at this place")
        axes.set(title=title)
        _label(axes, shares)
        return figure


REACH = float(np.sqrt(-2.0 * np.log(0.05)))
"""Deviations within which 95 percent of a normal distribution in the plane lie."""


def outline(told: Outline, i: int, j: int) -> tuple[Matrix, Matrix]:
    """The ellipse along components i and j."""
    angle = np.linspace(0.0, 2.0 * np.pi, 73)
    r = 1.0 if i == j else float(told.correlation[i, j])
    x, y = np.cos(angle), r * np.cos(angle) + np.sqrt(max(0.0, 1.0 - r * r)) * np.sin(angle)
    return told.mean[i] + REACH * told.deviation[i] * x, told.mean[j] + REACH * told.deviation[j] * y


def ellipses_figure(
    outlines: Sequence[Outline], scores: Mapping[str, Matrix], title: str, shares: Matrix | None
) -> Picture:
    """Where islands lie on the first two components, with the records that may be shown."""
    known = {one.name: one.colour for one in outlines}
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.6, 5.2)
        size = plots.marker_size(sum(map(len, scores.values())), letters=False)
        for island, rows in scores.items():
            drawn = axes.scatter(
                rows[:, 0], rows[:, 1], s=size, color=known.get(island, plots.QUIET), alpha=0.4, lw=0
            )
            drawn.set_rasterized(len(rows) > MANY)
        for one in outlines:
            axes.plot(*outline(one, 0, 1), color=one.colour, lw=1.6, label=plots.shortened(one.name))
            axes.plot(one.mean[0], one.mean[1], color=one.colour, marker="P", ms=8, mec="white", mew=0.8)
        axes.set(title=title)
        _label(axes, shares)
        if len(outlines) <= plots.NAMED_ISLANDS:
            figure.legend(loc="outside right upper", title="island", ncols=1 + (len(outlines) - 1) // 20)
        return figure


def _density(axes: Axes, scores: Mapping[str, Matrix], colours: str) -> Any:
    """How many records are where; as dots, else a page would hold every cell as a shape."""
    points = np.concatenate([rows[:, :2] for rows in scores.values()])
    drawn = axes.hexbin(*points.T, gridsize=60, bins="log", mincnt=1, cmap=colours, lw=0.1)
    drawn.set_rasterized(True)
    return drawn


def _arrows(axes: Axes, ends: Matrix, names: Sequence[str], named: npt.NDArray[np.int64]) -> None:
    few = len(ends) <= 200
    for i, (x, y) in enumerate(ends):
        if few or i in set(named.tolist()):
            axes.plot([0, x], [0, y], color=COLOURS[5], lw=0.9, alpha=0.8)
    axes.scatter(ends[:, 0], ends[:, 1], s=8, color=COLOURS[5], lw=0, zorder=3)
    for i in _apart(ends, named):
        x, y = ends[i]
        place: Any = {"ha": "left" if x >= 0 else "right", "va": "bottom" if y >= 0 else "top"}
        axes.annotate(
            plots.shortened(str(names[i])),
            (x, y),
            xytext=(2 if x >= 0 else -2, 2 if y >= 0 else -2),
            textcoords="offset points",
            fontsize=7.5,
            **place,
        )


def _apart(ends: Matrix, named: npt.NDArray[np.int64]) -> list[int]:
    """Those whose names do not cover one that was written before."""
    reach = float(np.abs(ends).max()) or 1.0
    written: list[int] = []
    for i in named.tolist():
        near = np.abs(ends[written] - ends[i]) / reach
        if not ((near[:, 0] < 0.35) & (near[:, 1] < 0.055)).any():
            written.append(i)
    return written


def _largest(lengths: Matrix, most: int = NAMED_COLUMNS) -> npt.NDArray[np.int64]:
    return np.argsort(-lengths, kind="stable")[:most]


def _left_out(names: Sequence[str]) -> str:
    return f"\nnames of some of the {len(names)} columns, where there is room" if len(names) > 8 else ""


def _label(axes: Axes, shares: Matrix | None) -> None:
    axes.set_xlabel(plots.axis_title("PC1", shares, 0))
    axes.set_ylabel(plots.axis_title("PC2", shares, 1))
    axes.axhline(0, color=plots.QUIET, lw=0.6, zorder=0)
    axes.axvline(0, color=plots.QUIET, lw=0.6, zorder=0)
