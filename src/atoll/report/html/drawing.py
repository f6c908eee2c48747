"""Pictures as SVG that follows the page's colours, dark or light, and as files of any kind."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

from atoll.report import plots
from atoll.report.charts import Chart

FORMATS: Final = ("png", "svg", "pdf")
_DOTS: Final = 110
"""Of an inch, in those parts of a picture on a page that are dots: many points."""

# Colours of the paper become variables of the page's style; matplotlib writes them in lower case.
_VARIABLES: Final = {
    plots.INK: "--ink",
    plots.QUIET: "--quiet",
    plots.GRID: "--grid",
    "#ffffff": "--paper",
    "#000000": "--ink",
}


def as_file(chart: Chart, kind: str) -> bytes:
    """A chart's picture as a file."""
    buffer = io.BytesIO()
    chart.draw().savefig(buffer, format=kind, metadata=_NO_DATE.get(kind))
    return buffer.getvalue()


_NO_DATE: Final = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def inline_svg(chart: Chart) -> str:
    """A chart's picture to stand in a page, with words for those who cannot see it."""
    figure = chart.draw()
    figure.patch.set_alpha(0.0)
    drawn = _svg(figure, chart.name)
    drawn = drawn[drawn.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour, f"var({variable})")
    head, tail = drawn.split(">", 1)
    head = re.sub(r' height="[^"]*"', "", re.sub(r' width="([\d.]+)pt"', _wide, head))
    label = escape(f"{chart.title}. {chart.caption}", quote=True)
    return f'{head} role="img" aria-label="{label}">{tail}'


def _wide(found: re.Match[str]) -> str:
    """As wide on every page as its text wants: 10 points become 14 pixels."""
    return f' width="{1.4 * float(found[1]):.0f}"'


def _svg(figure: Figure, name: str) -> str:
    """Text stays text, and the ids of two pictures on one page never meet."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", dpi=_DOTS, metadata={"Date": None, "Creator": None})
    drawn = re.sub(r"font-family: [^;\"]*", "font-family: 'DejaVu Sans', sans-serif", buffer.getvalue())
    return re.sub(r'((?:id="|href="#|url\(#))', rf"\1{name}-", drawn)
