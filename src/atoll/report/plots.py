"""Scree, projection and loading plots, as figures and as PNG bytes.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, and where they are not enough
those of Paul Tol; islands differ by colour, classes by marker: few have a shape each, many a letter.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import ceil
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

Matrix = npt.NDArray[np.float64]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MORE_COLOURS = ("#882255", "#44AA99", "#999933", "#332288", "#117733", "#DDCC77", "#661100", "#888888")
_PALE = COLOURS[6]
"""Hard to see on white in small markers: used last where there are many."""
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
LETTERS = ascii_uppercase + ascii_lowercase + digits
NAMED_ISLANDS, NAMED_CLASSES = 40, len(LETTERS)
"""More have no line of their own in a legend, which then says so."""

INK, QUIET, GRID = "#222222", "#666666", "#e6e6e6"
ON_BARS = "#fefefe"
"""White that stays white where a dark page turns the paper's own white around."""
# matplotlib types these keys one by one, and differently from version to version.
STYLE: Any = {
    "font.size": 10,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
}


class Picture(Figure):
    """A figure outside pyplot (no window system, no global state) that notebooks show by themselves."""

    def _repr_png_(self) -> bytes:
        return _png(self)


class Drawn(Axes):
    """Axes that notebooks show by themselves, with all of their figure."""

    def _repr_png_(self) -> bytes:
        return _png(self.get_figure(root=True))  # type: ignore[arg-type]


def scree(explained_variance: Matrix, total_variance: float, title: str) -> bytes:
    """:func:`scree_figure`, as PNG bytes."""
    return _png(scree_figure(explained_variance, total_variance, title))


def scree_figure(
    explained_variance: Matrix, total_variance: float, title: str, by_chance: Matrix | None = None
) -> Picture:
    """Each component's share of the variance, and the share of all up to it; ``by_chance``: shares to compare
    with."""
    shares = np.asarray(explained_variance) / (total_variance or 1.0)
    numbers = np.arange(1, len(shares) + 1)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(6.4, 4.0)
        axes.bar(numbers, shares, width=0.62, color=COLOURS[0], label="each component")
        axes.plot(numbers, np.cumsum(shares), color=COLOURS[5], marker="o", ms=4.5, label="all up to it")
        if by_chance is not None:
            axes.plot(numbers, by_chance, color=INK, ls="--", lw=1.2, label="broken stick")
        if len(shares) <= 12:
            _label_shares(axes, numbers, shares)
        axes.set(title=title, xlabel="Principal component", ylabel="Share of the variance", ylim=(0, 1.06))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0.4, len(shares) + 0.6)
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside right upper")
        return figure


def _label_shares(axes: Axes, numbers: npt.NDArray[Any], shares: Matrix) -> None:
    cumulated = np.cumsum(shares)
    for number, share, total in zip(numbers, shares, cumulated, strict=True):
        # Tall bars carry their label in their middle, clear of the lines; white there on dark pages too.
        inside = share >= 0.12
        place: Any = {"xytext": (0, 0 if inside else 3), "color": ON_BARS if inside else INK}
        place |= {"va": "center" if inside else "bottom", "ha": "center"}
        at = (number, share / 2 if inside else share)
        axes.annotate(f"{share:.0%}", at, textcoords="offset points", **place)
        if number > 1:
            place = {"xytext": (0, 7), "color": COLOURS[5]}
            axes.annotate(f"{total:.0%}", (number, total), textcoords="offset points", ha="center", **place)


def projection(scores: Mapping[str, Matrix], title: str, **how: Any) -> bytes:
    """:func:`projection_figure`, as PNG bytes."""
    return _png(projection_figure(scores, title, **how))


def projection_figure(
    scores: Mapping[str, Matrix],
    title: str,
    *,
    labels: Mapping[str, Sequence[Any]] | None = None,
    label_name: str = "label",
    shares: Matrix | None = None,
) -> Picture:
    """Every row on the first two components; islands by colour, classes by shape or letter."""
    classes = _classes(labels)
    marks = _class_marks(classes)
    colours = island_colours(list(scores))
    size = marker_size(sum(len(rows) for rows in scores.values()), letters=len(classes) > len(MARKERS))
    with mpl.rc_context(STYLE):
        figure, axes = canvas(7.6, max(4.8, 0.9 + _LINE * _legend_lines(colours, classes, marks)))
        for number, (island, rows) in enumerate(scores.items()):
            of_rows = np.array([_class_name(v) for v in labels[island]]) if labels and marks else None
            _scatter(axes, *_points(rows, -number), colours[island], size, of_rows, marks)
        axes.set(title=title, xlabel=axis_title("PC1", shares, 0), ylabel=axis_title("PC2", shares, 1))
        if next(iter(scores.values())).shape[1] == 1:
            axes.set(ylabel="island", yticks=[])
        else:
            axes.axhline(0, color=QUIET, lw=0.6, zorder=0)
        axes.axvline(0, color=QUIET, lw=0.6, zorder=0)
        _legends(axes, colours, classes, marks, label_name)
        return figure


def loadings(components: Matrix, names: Sequence[str], title: str, shares: Matrix | None = None) -> bytes:
    """:func:`loadings_figure`, as PNG bytes."""
    return _png(loadings_figure(components, names, title, shares))


SHOWN_COMPONENTS, SHOWN_COLUMNS = 3, 15


def loadings_figure(
    components: Matrix, names: Sequence[str], title: str, shares: Matrix | None = None
) -> Picture:
    """What the first components are made of: their largest entries, column by column."""
    k, rows = min(len(components), SHOWN_COMPONENTS), min(len(names), SHOWN_COLUMNS)
    left_out = f" (the largest {rows} of {len(names)} columns)" if rows < len(names) else ""
    with mpl.rc_context(STYLE):
        figure = sheet(1.2 + 3.2 * k, 1.3 + 0.24 * rows)
        figure.suptitle(title + left_out, x=0.02, ha="left", weight="bold")
        side_by_side = figure.subplots(1, k, squeeze=False, subplot_kw={"axes_class": Drawn})
        for axes, number in zip(side_by_side[0], range(k), strict=True):
            largest = np.argsort(-np.abs(components[number]), kind="stable")[:rows]
            values = components[number][largest]
            colours = [COLOURS[0] if value >= 0 else COLOURS[5] for value in values]
            axes.barh(np.arange(rows), values, color=colours, height=0.7)
            axes.set_yticks(np.arange(rows), [shortened(str(names[i])) for i in largest])
            axes.invert_yaxis()
            axes.axvline(0, color=QUIET, lw=0.8)
            # In two lines: one is wider than a narrow picture.
            axes.set_xlabel(axis_title(f"PC{number + 1}", shares, number).replace(" (", "\n("))
            axes.grid(axis="y", visible=False)
        return figure


def _points(rows: Matrix, line: int) -> tuple[Matrix, Matrix]:
    """A row's place; with a single component every island has a line of its own."""
    return rows[:, 0], rows[:, 1] if rows.shape[1] > 1 else np.full(len(rows), float(line))


def marker_size(points: int, *, letters: bool) -> float:
    """Of a marker, in square points: smaller where many rows share the picture, and never a mere dot."""
    size = float(np.clip(26.0 * (1000.0 / max(points, 1)) ** 0.5, 6.0, 26.0))
    return size * 1.8 if letters else size


def _scatter(
    axes: Axes,
    x: Matrix,
    y: Matrix,
    colour: str,
    size: float,
    of_rows: npt.NDArray[Any] | None,
    marks: Mapping[str, str],
) -> None:
    style: dict[str, Any] = {"s": size, "color": colour, "alpha": 0.75, "edgecolors": "white"}
    style["linewidths"] = 0.4 if size > 10 else 0.15  # a wide rim would hide a small marker
    if of_rows is None:
        axes.scatter(x, y, marker=MARKERS[0], **style)
        return
    for name, marker in marks.items():
        chosen = of_rows == name
        if marker.startswith("$"):
            style["linewidths"] = 0.0
        axes.scatter(x[chosen], y[chosen], marker=marker, **style)


def _classes(labels: Mapping[str, Sequence[Any]] | None) -> list[str]:
    """The label's values."""
    found = {_class_name(value) for values in (labels or {}).values() for value in values}
    return sorted(found, key=_by_number)


def _by_number(name: str) -> list[tuple[float, str]]:
    """Names in order, ward 2 before ward 10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(float(part), "") if part.isdecimal() else (-1.0, part) for part in parts]


def _class_name(value: Any) -> str:
    """Class 1.0 reads as 1."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _class_marks(classes: Sequence[str]) -> dict[str, str]:
    """A shape for each of a few classes, a letter for each of many (its own, if it is one), else nothing."""
    if len(classes) <= len(MARKERS):
        return dict(zip(classes, MARKERS, strict=False))
    if len(classes) > NAMED_CLASSES:
        return {}
    letters = classes if all(c in LETTERS and len(c) == 1 for c in classes) else LETTERS
    return {name: rf"$\mathrm{{{letter}}}$" for name, letter in zip(classes, letters, strict=False)}


def island_colours(islands: Sequence[str]) -> dict[str, str]:
    dark = [colour for colour in COLOURS if colour != _PALE]
    known = COLOURS if len(islands) <= len(COLOURS) else (*dark, *MORE_COLOURS, _PALE)
    if len(islands) <= len(known):
        return dict(zip(islands, known, strict=False))
    steps = mpl.colormaps["viridis"](np.linspace(0, 0.95, len(islands)))
    return {island: mpl.colors.to_hex(step) for island, step in zip(islands, steps, strict=True)}


# ---- legends ----

_LINE = 0.205
"""Inches for one line of a legend."""
_BESIDE = 1.02
"""Where legends begin, in widths of the axes: both at the same place."""


def _legends(
    axes: Axes, colours: Mapping[str, str], classes: Sequence[str], marks: Mapping[str, str], name: str
) -> None:
    """Islands above, classes below, both beginning at the same place; what has no line is said."""
    above = _legend(axes, _island_handles(colours), "island", "upper left", 1.0)
    if classes:
        axes.add_artist(above)  # a second legend takes the place of the first
        above.set_clip_on(False)  # else the layout leaves no room for it
        _legend(axes, _class_handles(classes, marks), shortened(name), "lower left", 0.0)


def _legend(axes: Axes, handles: Sequence[Line2D], title: str, place: Any, height: float) -> Legend:
    return axes.legend(
        handles=handles,
        title=title,
        loc=place,
        bbox_to_anchor=(_BESIDE, height),
        ncols=_columns(handles),
        alignment="left",
        borderaxespad=0.0,
        handletextpad=0.3,
        columnspacing=1.0,
    )


def _island_handles(colours: Mapping[str, str]) -> list[Line2D]:
    if len(colours) <= NAMED_ISLANDS:
        return [_handle("o", colour, name) for name, colour in colours.items()]
    names, shades = list(colours), list(colours.values())
    words = f"{len(colours)} islands, from"
    return [
        Line2D([], [], ls="", label=words),
        _handle("o", shades[0], names[0]),
        _handle("o", shades[-1], f"to {shortened(names[-1])}"),
    ]


def _class_handles(classes: Sequence[str], marks: Mapping[str, str]) -> list[Line2D]:
    if marks:
        return [_handle(marker, QUIET, name) for name, marker in marks.items()]
    return [Line2D([], [], ls="", label=f"{len(classes)} values: not drawn")]


def _handle(marker: str, colour: str, name: str) -> Line2D:
    return Line2D([], [], ls="", marker=marker, mew=0, color=colour, label=shortened(name))


def _columns(handles: Sequence[Line2D]) -> int:
    """Long lists stand in columns, as many as names of this length allow."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    return min(ceil(len(handles) / 12), max(1, 24 // (longest + 3)))


def _legend_lines(colours: Mapping[str, str], classes: Sequence[str], marks: Mapping[str, str]) -> int:
    lists = [_island_handles(colours), *([_class_handles(classes, marks)] if classes else [])]
    return sum(2 + ceil(len(handles) / _columns(handles)) for handles in lists)


def shortened(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:22]}…"


def axis_title(name: str, shares: Matrix | None, index: int) -> str:
    if shares is None or index >= len(shares):
        return name if shares is None else ""
    return f"{name} ({shares[index]:.1%} of the variance)"


def sheet(width: float, height: float) -> Picture:
    """An empty figure."""
    return Picture(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))


def canvas(width: float, height: float) -> tuple[Picture, Axes]:
    """A figure with one pair of axes, sizes in inches."""
    figure = sheet(width, height)
    return figure, figure.add_subplot(axes_class=Drawn)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
