"""Interactive forms of charts: Bokeh draws them, from data that is in the page.

The page's own script chooses what stands on an axis, through ordinary select elements, which keyboards and
screen readers know. Models are found by their names: ``points``, ``line``, ``x``, ``y``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, NumeralTickFormatter
from bokeh.plotting import figure
from bokeh.resources import Resources

from atoll.report.charts import Bars, Chart, Points
from atoll.report.plots import COLOURS

_TOOLS = "pan,wheel_zoom,box_zoom,reset"
_MANY = 3_000
"""More points than these are drawn by the graphics processor, where there is one."""
_SHOWN_BARS = 60


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
    many = len(next(iter(columns.values()))) > _MANY
    how: dict[str, Any] = {}
    if told.circle:
        how = {"sizing_mode": "scale_width", "width": 560, "max_width": 600, "aspect_ratio": 1.0}
        how |= {"x_range": (-1.1, 1.1), "y_range": (-1.1, 1.1)}
    made = _canvas(output_backend="webgl" if many else "canvas", **how)
    if told.circle:
        made.circle(0, 0, radius=1.0, fill_alpha=0.0, line_color="#888888")
    for number, name in enumerate(told.names):
        chosen = slice(None) if told.groups is None else told.groups == number
        part = {field: values[chosen] for field, values in columns.items()}
        source = ColumnDataSource(
            {**part, **({} if told.groups is None else _constant("island", name, part))}
        )
        if told.arrows:
            zeros = np.zeros(len(next(iter(part.values()))))
            source.data["zero"] = zeros
            made.segment(
                "zero", "zero", first["x"], first["y"], source=source, color=told.colours[number], name="line"
            )
        made.scatter(
            first["x"],
            first["y"],
            source=source,
            size=3 if many else 7,
            color=told.colours[number],
            line_color=None,
            alpha=0.25 if many else 0.7,
            name="points",
            **({} if told.groups is None or len(told.names) > 40 else {"legend_label": name}),
        )
    _finish(made, told, first)
    return made


def _constant(field: str, name: str, part: dict[str, Any]) -> dict[str, list[str]]:
    return (
        {field: [name] * len(next(iter(part.values())))} if len(next(iter(part.values()))) <= 20_000 else {}
    )


def _finish(made: Any, told: Points, first: dict[str, str]) -> None:
    made.xaxis.axis_label, made.yaxis.axis_label = told.titles[first["x"]], told.titles[first["y"]]
    if told.hover:
        shown = [(field, f"@{{{field}}}") for field in told.hover]
        made.add_tools(HoverTool(tooltips=shown, renderers=[r for r in made.renderers if r.name == "points"]))
    if told.groups is not None and len(told.names) <= 40:
        made.add_layout(made.legend[0], "right")
        made.legend.click_policy = "hide"
        made.legend.background_fill_alpha = 0.0
        made.legend.border_line_color = None


def _bars(told: Bars) -> Any:
    first = told.choices[0].first if told.choices else next(iter(told.columns))
    shown = list(told.names)
    # Bokeh needs names that differ; two columns of a result always do.
    made = _canvas(x_range=FactorRange(factors=shown), x_axis_label=None)
    source = ColumnDataSource({"name": shown, **{k: np.asarray(v) for k, v in told.columns.items()}})
    made.vbar("name", top=first, width=0.75, source=source, color=COLOURS[0], name="points", line_color=None)
    if told.line:
        lines = ColumnDataSource({"name": shown, **{k: np.asarray(v) for k, v in told.line.items()}})
        made.line(
            "name",
            first,
            source=lines,
            color=COLOURS[5],
            line_width=2,
            name="line",
            legend_label=told.line_name,
        )
        made.legend.location = "top_right" if told.choices else "center_right"
        made.legend.background_fill_alpha = 0.0
        made.legend.border_line_color = None
    made.yaxis.axis_label = told.titles[first]
    form = "{0.0%}" if told.percent else "{0.00}"
    if told.percent:
        made.yaxis.formatter = NumeralTickFormatter(format="0%")
    if min(float(np.min(values)) for values in told.columns.values()) >= 0:
        made.y_range.start = 0
    made.xgrid.grid_line_color = None
    made.xaxis.major_label_orientation = 1.0 if len(shown) > 6 else 0.0
    if len(shown) > _SHOWN_BARS:
        made.xaxis.major_label_text_font_size = "0pt"
        made.xaxis.major_tick_line_color = None
    made.add_tools(
        HoverTool(tooltips=[("", "@name"), *((told.titles[f], f"@{{{f}}}{form}") for f in told.columns)])
    )
    return made
