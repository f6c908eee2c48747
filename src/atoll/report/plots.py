"""Scree and projection plots, as PNG bytes.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; islands differ by
colour, classes by marker.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

Matrix = npt.NDArray[np.float64]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
MAX_LABELLED_CLASSES = len(MARKERS)

_INK, _QUIET, _GRID = "#222222", "#666666", "#e6e6e6"
# matplotlib types these keys one by one, and differently from version to version.
_STYLE: Any = {
    "font.size": 10,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _INK,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "legend.frameon": False,
}


def scree(explained_variance: Matrix, total_variance: float, title: str) -> bytes:
    """Each component's share of the variance, and the share of all up to it."""
    shares = np.asarray(explained_variance) / (total_variance or 1.0)
    numbers = np.arange(1, len(shares) + 1)
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(6.4, 4.0)
        axes.bar(numbers, shares, width=0.62, color=COLOURS[0], label="each component")
        axes.plot(numbers, np.cumsum(shares), color=COLOURS[5], marker="o", ms=4.5, label="all up to it")
        if len(shares) <= 12:
            _label_shares(axes, numbers, shares)
        axes.set(title=title, xlabel="Principal component", ylabel="Share of the variance", ylim=(0, 1.06))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0.4, len(shares) + 0.6)
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside right upper")
        return _png(figure)


def _label_shares(axes: Axes, numbers: npt.NDArray[Any], shares: Matrix) -> None:
    cumulated = np.cumsum(shares)
    for number, share, total in zip(numbers, shares, cumulated, strict=True):
        # Tall bars carry their label inside, clear of the line above them.
        inside = share >= 0.12
        place: Any = {"xytext": (0, -14 if inside else 3), "color": "white" if inside else _INK}
        axes.annotate(f"{share:.0%}", (number, share), textcoords="offset points", ha="center", **place)
        if number > 1:
            place = {"xytext": (0, 7), "color": COLOURS[5]}
            axes.annotate(f"{total:.0%}", (number, total), textcoords="offset points", ha="center", **place)


def projection(
    scores: Mapping[str, Matrix],
    title: str,
    *,
    labels: Mapping[str, Sequence[Any]] | None = None,
    label_name: str = "label",
    shares: Matrix | None = None,
) -> bytes:
    """Every row on the first two components; islands by colour and classes, where few, by marker."""
    classes = _classes(labels)
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(7.0, 4.8)
        colours = _island_colours(list(scores))
        for number, (island, rows) in enumerate(scores.items()):
            marks = np.array([str(_plain(v)) for v in labels[island]]) if labels and classes else None
            _scatter(axes, *_points(rows, -number), colours[island], marks, classes)
        axes.set(title=title, xlabel=_axis("PC1", shares, 0), ylabel=_axis("PC2", shares, 1))
        if next(iter(scores.values())).shape[1] == 1:
            axes.set(ylabel="island", yticks=[])
        else:
            axes.axhline(0, color=_QUIET, lw=0.6, zorder=0)
        axes.axvline(0, color=_QUIET, lw=0.6, zorder=0)
        _legends(figure, colours, classes, label_name)
        return _png(figure)


def _points(rows: Matrix, line: int) -> tuple[Matrix, Matrix]:
    """A row's place; with a single component every island has a line of its own."""
    return rows[:, 0], rows[:, 1] if rows.shape[1] > 1 else np.full(len(rows), float(line))


def _scatter(
    axes: Axes, x: Matrix, y: Matrix, colour: str, marks: npt.NDArray[Any] | None, classes: Sequence[str]
) -> None:
    size = 26 if len(x) <= 2_000 else 8
    style: dict[str, Any] = {
        "s": size,
        "color": colour,
        "alpha": 0.7,
        "linewidths": 0.4,
        "edgecolors": "white",
    }
    if marks is None:
        axes.scatter(x, y, marker=MARKERS[0], **style)
        return
    for name, marker in zip(classes, MARKERS, strict=False):
        chosen = marks == name
        axes.scatter(x[chosen], y[chosen], marker=marker, **style)


def _classes(labels: Mapping[str, Sequence[Any]] | None) -> list[str]:
    """The label's values, where they are few enough to be told apart."""
    found = sorted({str(_plain(value)) for values in (labels or {}).values() for value in values})
    return found if len(found) <= MAX_LABELLED_CLASSES else []


def _plain(value: Any) -> Any:
    """Class 1.0 reads as 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _island_colours(islands: Sequence[str]) -> dict[str, str]:
    if len(islands) <= len(COLOURS):
        return dict(zip(islands, COLOURS, strict=False))
    steps = mpl.colormaps["viridis"](np.linspace(0, 0.95, len(islands)))
    return {island: mpl.colors.to_hex(step) for island, step in zip(islands, steps, strict=True)}


def _legends(figure: Figure, colours: Mapping[str, str], classes: Sequence[str], label_name: str) -> None:
    if len(colours) <= len(COLOURS):
        handles = [Line2D([], [], ls="", marker="o", color=c, label=i) for i, c in colours.items()]
    else:
        handles = [Line2D([], [], ls="", label=f"{len(colours)} islands, by colour")]
    figure.legend(handles=handles, title="island", loc="outside right upper", alignment="left")
    if classes:
        shapes = [
            Line2D([], [], ls="", marker=m, color=_QUIET, label=c)
            for c, m in zip(classes, MARKERS, strict=False)
        ]
        figure.legend(handles=shapes, title=label_name, loc="outside right lower", alignment="left")


def _axis(name: str, shares: Matrix | None, index: int) -> str:
    if shares is None or index >= len(shares):
        return name if shares is None else ""
    return f"{name} ({shares[index]:.1%} of the variance)"


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    # A figure of its own, outside pyplot: no window system, no global state.
    figure = Figure(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    return figure, figure.add_subplot()


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
