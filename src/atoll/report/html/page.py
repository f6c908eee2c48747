"""The page: template, style and script put together. Everything that comes from a study is escaped."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from atoll.report.html import drawing, live
from atoll.report.html.beside import Beside
from atoll.report.html.sections import sections_of

if TYPE_CHECKING:
    from atoll.report.charts import Chart
    from atoll.runtime.result import Result


def report_html(result: Result, beside: Beside | None = None) -> str:
    """The whole page; it loads nothing from anywhere."""
    sections = sections_of(result, beside or Beside())
    charts = [chart for section in sections for chart in section.charts]
    moving = [chart for chart in charts if chart.live is not None]
    return (
        environment()
        .get_template("report.html")
        .render(
            title=f"{result.study.name}: report",
            sections=sections,
            still={chart.name: Markup(drawing.inline_svg(chart)) for chart in charts},
            items={chart.name: Markup(live.item(chart)) for chart in moving},
            choices={chart.name: _choices(chart) for chart in moving},
            style=Markup(style()),
            script=Markup(_text("report.js")),
            library=Markup(live.library() if moving else ""),
            version=_version(),
        )
    )


def _choices(chart: Chart) -> list[dict[str, Any]]:
    assert chart.live is not None
    titles = chart.live.titles
    return [
        {
            "label": choice.label,
            "axis": choice.axis,
            "first": choice.first,
            "fields": [(field, titles[field]) for field in choice.fields],
        }
        for choice in chart.live.choices
        if len(choice.fields) > 1
    ]


@cache
def environment(package: str = __package__) -> Environment:
    """Templates of a package, then those of this one; everything that they show is escaped."""
    return Environment(
        loader=ChoiceLoader([FunctionLoader(partial(_found, one)) for one in (package, __package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _found(package: str, name: str) -> str | None:
    path = files(package) / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def style() -> str:
    """How pages look: dark or light, on any width, and printed."""
    return _text("report.css")


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _version() -> str:
    from atoll import __version__

    return __version__
