"""The pages, rendered on the server; a little script keeps parts of the first one current."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup

from atoll import __version__
from atoll.report.html import page as reports
from atoll.report.html.section import Section
from atoll.runtime.doctor import Finding
from atoll.web.views import Overview, Reviewed

LIVE: Final = ("node", "waiting", "active", "ended", "ledger")
"""Parts of the first page that change while somebody looks at it."""


def _render(template: str, **told: Any) -> str:
    made = reports.environment(__package__).get_template(template)
    return made.render(version=__version__, **told)


def index(base: str, shown: Overview) -> str:
    """The first page: what waits, what runs, what ended, what was spent."""
    live = {name: Markup(text) for name, text in fragments(base, shown).items()}
    return _render("index.html", base=base, title="Dashboard", shown=shown, live=live)


def fragments(base: str, shown: Overview) -> dict[str, str]:
    """The parts that change, by name."""
    made = reports.environment(__package__).get_template("live.html")
    parts = made.make_module({"base": base, "shown": shown})
    return {name: str(getattr(parts, name)()) for name in LIVE}


def run(base: str, reviewed: Reviewed) -> str:
    """One run: its review, and the decision where one is due."""
    return _render("run.html", base=base, title=f"{reviewed.shown.study}: review", one=reviewed)


def section(base: str, part: Section) -> str:
    """A page of one part."""
    return _render("section.html", base=base, title=part.title, section=part)


def doctor(base: str, found: list[Finding], left_out: str) -> str:
    """What works on this machine and on the way to the hub, and what to do where it does not."""
    return _render("doctor.html", base=base, title="Doctor", found=found, left_out=left_out)


def problem(base: str, message: str, hint: str) -> str:
    """Something was refused, or did not work."""
    return _render("problem.html", base=base, title="This did not work", message=message, hint=hint)


@cache
def asset(name: str) -> str:
    """A file that pages load: the style of reports with ours after it, or the script."""
    own = (files(__package__) / name).read_text(encoding="utf-8")
    return reports.style() + own if name.endswith(".css") else own
