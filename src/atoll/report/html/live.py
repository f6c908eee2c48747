"""Interactive forms of charts: Bokeh draws them, from data that is in the page.

The page's own script chooses what stands on an axis, through ordinary select elements, which keyboards and
screen readers know. Models are found by their names: ``points``, ``words``, ``line``,
``outline``, ``x``, ``y``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, FactorRange, FixedTicker, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from atoll.report.charts import Bars, Chart, Outline, Points
from atoll.report.pca_plots import outline
from atoll.report.plots import COLOURS

_TOOLS = "pan,wheel_zoom,box_zoom,reset"
_MANY = 3_000
"""More points than these are drawn by the graphics processor, where there is one."""
_SHOWN_BARS = 60
"""More bars than these have no names below them, which Bokeh would measure one by one."""
_NAMED, _NAMED_BELOW = 40, 12
"""More groups than these have no legend; more than the second, one beside the picture."""


def library() -> str:
    """Bokeh's own script, to stand in the page."""
    scripts: list[str] = Resources(mode="inline", components=["bokeh", "bokeh-gl"]).js_raw
    return "\n".join(scripts).replace("</script", "<\\/script")


def item(chart: Chart) -> str:
    """A chart's interactive form as JSON that is safe inside a script element."""
    assert chart.live is not None
    made = _bars(chart.live) if isinstance(chart.live, Bars) else _points(chart.live)
    made.name = chart.name
    return safe_json(json_item(made, ID(f"live-{chart.name}")))


def safe_json(value: Any) -> str:
    """JSON in which no text can end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _canvas(**more: Any) -> Any:
    made = figure(
        sizing_mode=more.pop("sizing_mode", "stretch_width"),
        height=440,
        tools=_TOOLS,
        background_fill_alpha=0.0,
        border_fill_alpha=0.0,
        outline_line_color=None,
        **more,
    )
    made.toolbar.logo = None
    made.xaxis.name, made.yaxis.name = "x", "y"
    return made


def _points(told: Points) -> Any:
    columns = {name: np.asarray(values) for name, values in told.columns.items()}
    first = {choice.axis: choice.first for choice in told.choices}
    many = len(next(iter(columns.values()), ())) > _MANY
    how: dict[str, Any] = {}
    if told.circle:
        how = {"sizing_mode": "scale_width", "width": 560, "max_width": 600, "aspect_ratio": 1.0}
        how |= {"x_range": (-1.25, 1.25), "y_range": (-1.25, 1.25)}
    made = _canvas(output_backend="webgl" if many else "canvas", **how)
    if told.circle:
        made.tags = ["equal"]  # the page's script keeps it round
        made.ellipse(0, 0, 2.0, 2.0, fill_alpha=0.0, line_color="#888888")
    for number, name in enumerate(told.names):
        chosen = slice(None) if told.groups is None else told.groups == number
        part: dict[str, Any] = {field: values[chosen] for field, values in columns.items()}
        if "island" in told.hover:
            part["island"] = np.array([name] * len(next(iter(part.values()))), dtype=object)
        source = ColumnDataSource(part)
        _group(made, told, number, source, first, many)
    for one in told.outlines:
        _outline(made, one, first)
    _finish(made, told, first)
    return made


def _group(made: Any, told: Points, number: int, source: Any, first: dict[str, str], many: bool) -> None:
    """The points of one group, with lines from the origin and words beside them where that was asked for."""
    colour, x, y = told.colours[number], first["x"], first["y"]
    if told.arrows:
        source.data["zero"] = np.zeros(len(source.data[x]))
        made.segment("zero", "zero", x, y, source=source, color=colour, name="line")
    named = told.groups is not None and not told.outlines and len(told.names) <= _NAMED
    made.scatter(
        x,
        y,
        source=source,
        size=3 if many else 7,
        color=colour,
        line_color=None,
        alpha=0.25 if many else 0.7,
        name="points",
        **({"legend_label": told.names[number]} if named else {}),
    )
    if told.written:
        made.text(
            x,
            y,
            text=told.written,
            source=source,
            x_offset=6,
            y_offset=-3,
            text_font_size="12px",
            name="words",
        )


def _outline(made: Any, one: Outline, first: dict[str, str]) -> None:
    """An island's ellipse along every two components; the page's script finds ``y|x``, the height over x."""
    fields = [f"PC{i + 1}" for i in range(len(one.mean))]
    data: dict[str, Any] = {}
    for i, x in enumerate(fields):
        for j, y in enumerate(fields):
            data[x], data[f"{y}|{x}"] = outline(one, i, j)
    source = ColumnDataSource({name: values.astype(np.float32) for name, values in data.items()})
    made.line(
        first["x"],
        f"{first['y']}|{first['x']}",
        source=source,
        color=one.colour,
        line_width=2,
        name="outline",
        legend_label=one.name,
    )
    centre = {field: [float(value)] for field, value in zip(fields, one.mean, strict=True)}
    made.scatter(
        first["x"],
        first["y"],
        source=ColumnDataSource({**centre, "island": [one.name]}),
        marker="cross",
        size=14,
        line_width=3,
        color=one.colour,
        name="points",
    )


def _finish(made: Any, told: Points, first: dict[str, str]) -> None:
    made.xaxis.axis_label, made.yaxis.axis_label = told.titles[first["x"]], told.titles[first["y"]]
    if told.hover:
        shown = [(field, f"@{{{field}}}") for field in told.hover]
        made.add_tools(HoverTool(tooltips=shown, renderers=[r for r in made.renderers if r.name == "points"]))
    _legend(made)


def _legend(made: Any) -> None:
    """Below the picture, which keeps its width on a small screen; a long one beside it."""
    if not made.legend:
        return
    legend = made.legend[0]
    entries = len(legend.items)
    if entries <= _NAMED_BELOW:
        legend.orientation, legend.ncols, legend.spacing = "horizontal", min(4, entries), 14
        legend.location = "top_left"
    made.add_layout(legend, "below" if entries <= _NAMED_BELOW else "right")
    legend.click_policy = "hide"
    legend.background_fill_alpha = 0.0
    legend.border_line_color = None


def _bars(told: Bars) -> Any:
    first = told.choices[0].first if told.choices else next(iter(told.columns))
    shown = list(told.names)
    named = len(shown) <= _SHOWN_BARS
    # Bokeh needs names that differ; two columns of a result always do.
    across = FactorRange(factors=shown) if named else Range1d(start=-0.5, end=len(shown) - 0.5)
    made = _canvas(x_range=across, x_axis_label=told.across or None)
    places: dict[str, Any] = {"name": shown, "place": shown if named else np.arange(len(shown))}
    source = ColumnDataSource({**places, **{k: np.asarray(v) for k, v in told.columns.items()}})
    made.vbar(
        "place",
        top=first,
        width=0.75,
        source=source,
        color=COLOURS[0],
        name="points",
        line_color=None,
        **({"legend_label": told.name} if told.lines else {}),
    )
    for line in told.lines:
        made.line(
            "place",
            first,
            source=ColumnDataSource({**places, **{k: np.asarray(v) for k, v in line.columns.items()}}),
            color="#888888" if line.dashed else COLOURS[5],
            line_dash="dashed" if line.dashed else "solid",
            line_width=2,
            name="line",
            legend_label=line.name,
        )
    _legend(made)
    _bar_axes(made, told, first)
    return made


def _bar_axes(made: Any, told: Bars, first: str) -> None:
    made.yaxis.axis_label = told.titles[first]
    form = "{0.0%}" if told.percent else "{0.00}"
    if told.percent:
        made.yaxis.formatter = NumeralTickFormatter(format="0%")
    if min(float(np.min(values)) for values in told.columns.values()) >= 0:
        made.y_range.start = 0
    made.xgrid.grid_line_color = None
    made.xaxis.major_label_orientation = 1.0 if len(told.names) > 6 else 0.0
    if len(told.names) > _SHOWN_BARS:
        made.xaxis.ticker = FixedTicker(ticks=[])
    bars = [renderer for renderer in made.renderers if renderer.name == "points"]
    shown = [("", "@name"), *((told.titles[f], f"@{{{f}}}{form}") for f in told.columns)]
    made.add_tools(HoverTool(tooltips=shown, renderers=bars))
