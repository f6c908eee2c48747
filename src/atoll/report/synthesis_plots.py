"""Pictures of synthetic rows, beside an owner's own where there are any: margins, and columns by pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from atoll.protocols.synthesis.schema import Column, cell_names, sizes_of
from atoll.report import plots
from atoll.report.plots import COLOURS, Matrix, Picture

Codes = npt.NDArray[np.int64]

_PANELS = 12
_NAMED_CELLS = 12
"""More cells of a column than these have no names below their bars."""
_NAMED_COLUMNS = 30


class Rows(NamedTuple):
    """Rows of one kind as cells of the schema."""

    name: str
    codes: Codes


def cell_shares(codes: Codes, size: int) -> Matrix:
    """How often each cell is."""
    return np.bincount(codes, minlength=size) / len(codes)


def two_way(codes: Codes, a: int, b: int, sizes: Sequence[int]) -> Matrix:
    """How often each pair of cells of two columns is."""
    together = codes[:, a] * sizes[b] + codes[:, b]
    return cell_shares(together, sizes[a] * sizes[b]).reshape(sizes[a], sizes[b])


def strength(table: Matrix) -> float:
    """Cramér's V: 0 where columns are independent, 1 where one says the other."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.nansum(np.where(expected > 0, (table - expected) ** 2 / expected, 0.0))
    free = min((table.sum(axis=0) > 0).sum(), (table.sum(axis=1) > 0).sum()) - 1
    return float(np.sqrt(squared / free)) if free > 0 else 0.0


def strengths(codes: Codes, sizes: Sequence[int]) -> Matrix:
    """Of every two columns."""
    found = np.eye(len(sizes))
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            found[a, b] = found[b, a] = strength(two_way(codes, a, b, sizes))
    return found


def margins_figure(kinds: Sequence[Rows], schema: Sequence[Column], bins: int, title: str) -> Picture:
    """Every column's cells: how many of the rows of each kind lie in them."""
    shown, sizes = list(schema)[:_PANELS], sizes_of(schema, bins)
    if len(schema) > _PANELS:
        title += f" (the first {_PANELS} of {len(schema)} columns)"
    across = min(3, len(shown))
    down, width = -(-len(shown) // across), 0.8 / len(kinds)
    with mpl.rc_context(plots.STYLE):
        figure = plots.sheet(2.0 + 2.7 * across, 0.9 + 2.5 * down)
        figure.suptitle(title, x=0.02, ha="left", weight="bold")
        for place, column in enumerate(shown):
            axes = figure.add_subplot(down, across, place + 1, axes_class=plots.Drawn)
            at = np.arange(sizes[place])
            for number, kind in enumerate(kinds):
                shift = (number - (len(kinds) - 1) / 2) * width
                heights = 100 * cell_shares(kind.codes[:, place], sizes[place])
                axes.bar(at + shift, heights, width, color=COLOURS[number], label=kind.name)
            axes.set_xlabel(plots.shortened(column.name).replace("$", r"\$"))
            names = [plots.shortened(str(name)) for name in cell_names(column, bins)]
            named = at if sizes[place] <= _NAMED_CELLS else at[[0, -1]]
            axes.set_xticks(named, [names[i].replace("$", r"\$") for i in named], rotation=40, ha="right")
            axes.tick_params(labelsize=8)
            axes.grid(axis="x", visible=False)
            if place % across == 0:
                axes.set_ylabel("percent of rows")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(kinds))
        return figure


def dependence_figure(kinds: Sequence[Rows], schema: Sequence[Column], bins: int, title: str) -> Picture:
    """How strongly every two columns depend on each other, a square for each kind of rows."""
    sizes, names = sizes_of(schema, bins), [plots.shortened(column.name) for column in schema]
    side = max(2.6, 1.2 + 0.2 * min(len(names), _NAMED_COLUMNS))
    with mpl.rc_context(plots.STYLE):
        figure = plots.sheet(1.4 + side * len(kinds), side + 0.9)
        figure.suptitle(title, x=0.02, ha="left", weight="bold")
        squares = figure.subplots(1, len(kinds), squeeze=False, subplot_kw={"axes_class": plots.Drawn})[0]
        for axes, kind in zip(squares, kinds, strict=True):
            drawn = axes.imshow(strengths(kind.codes, sizes), cmap="Purples", vmin=0, vmax=1)
            axes.set_title(kind.name, fontsize=10, weight="normal")
            axes.grid(visible=False)
            if len(names) <= _NAMED_COLUMNS:
                plain = [name.replace("$", r"\$") for name in names]
                axes.set_xticks(range(len(names)), plain, rotation=90)
                axes.set_yticks(range(len(names)), plain if axes is squares[0] else [])
            else:
                axes.set(xticks=[], yticks=[], xlabel=f"{len(names)} columns, in the study's order")
        figure.colorbar(drawn, ax=list(squares), label="Cramér's V")
        return figure


def closest_figure(used: Matrix, unused: Matrix) -> Picture:
    """How far rows that were used, and rows that were not, are from the closest synthetic row."""
    places = np.unique(np.round(np.concatenate([used, unused]), 6))
    width = 0.4 * float(np.diff(places).min()) if len(places) > 1 else 0.05
    with mpl.rc_context(plots.STYLE):
        figure = plots.sheet(5.6, 3.6)
        axes = figure.add_subplot(1, 1, 1, axes_class=plots.Drawn)
        for number, (rows, name) in enumerate(((used, "rows that were used"), (unused, "hold-out"))):
            heights = [100 * float(np.isclose(rows, place).mean()) for place in places]
            at = places + (number - 0.5) * width
            axes.bar(at, heights, width, color=COLOURS[number], label=name)
        axes.set(
            xlabel="columns in which the closest synthetic row differs (share)", ylabel="percent of rows"
        )
        axes.legend(frameon=False)
        return figure
