"""What stands on a report's page, as plain data: facts, tables, and words. Values that were not released to
whoever makes the report cannot be here, because a result does not hold them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from atoll.protocols import protocol_of
from atoll.protocols.base import with_helpers
from atoll.report.analyses import renderer_of
from atoll.report.analyses.base import Column, Table
from atoll.report.charts import Chart
from atoll.report.html.beside import Beside
from atoll.report.html.reviewed import learning, privacy_words, study_facts
from atoll.report.html.section import Section
from atoll.report.units import duration, listing, size
from atoll.review.study import Review, review_study
from atoll.runtime.transcript import NOTED, Transcript

if TYPE_CHECKING:
    from atoll.runtime.result import Result


def sections_of(result: Result, beside: Beside) -> list[Section]:
    """The page from top to bottom."""
    review = review_study(result.study)
    found = [
        _summary(result, review),
        _pictures(result, beside),
        _tables(result),
        learning(review),
        _privacy(result, review, beside),
        _traffic(result),
        study_facts(review, *beside.receipt),
    ]
    return [one for one in found if one is not None]


def _summary(result: Result, review: Review) -> Section:
    renderer = renderer_of(result.study.analysis)
    islands = [party for role in review.roles if role.brings_data for party in role.parties]
    facts = [
        ("What was computed", renderer.words),
        ("How", f"{review.title}; protocol {review.protocol}"),
        (
            "Who brought rows" if review.partition == "horizontal" else "Who brought columns",
            listing(islands, 12),
        ),
        ("This page is of what was released to", _holder(result)),
        ("How it ran", _way(review)),
    ]
    if result.certificate:
        facts.append(("Accuracy certificate", _said(result.certificate)))
    return Section("summary", "Summary", [renderer.summary(result), *renderer.notes(result)], facts=facts)


def _way(review: Review) -> str:
    if review.between_machines:
        return "between machines: every party ran its own role where its table lies"
    return "as a rehearsal: all roles in one process, on one machine that had every table"


def _holder(result: Result) -> str:
    """Whose result it is, as far as the transcript says; a rehearsal's caller has everybody's."""
    roles = list(result.transcript.roles)
    parties = {name.rpartition("/")[0] for name in roles}
    if len(parties) == 1:
        played = listing([name.rpartition("/")[2] for name in roles])
        return f"{parties.pop()} ({played})"
    return "all parties together (whoever ran the rehearsal)"


def _said(value: Any) -> str:
    """A certificate's values in one line."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{name.replace('_', ' ')}: {_short(one)}" for name, one in value.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _pictures(result: Result, beside: Beside) -> Section | None:
    charts = renderer_of(result.study.analysis).charts(result, beside.own)
    return Section("pictures", "Pictures", charts=charts) if charts else None


def _tables(result: Result) -> Section | None:
    renderer = renderer_of(result.study.analysis)
    short, long = renderer.tables(result), renderer.long_tables(result)
    words = renderer.missing(result)
    if not short and not long:
        return None
    shown = {table.name for table in short}
    long = [table for table in long if table.name not in shown]
    return Section("tables", "Tables", words, tables=short, folded=long)


def _privacy(result: Result, review: Review, beside: Beside) -> Section:
    facts = [("Booked", result.booked)] if result.booked else []
    tables = [] if beside.budget is None else [beside.budget]
    return Section("privacy", "Privacy budget", privacy_words(review), facts=facts, tables=tables)


def _traffic(result: Result) -> Section | None:
    cost = result.transcript
    if not cost.roles:
        return None
    rows = [
        (name, one.messages_sent, one.bytes_sent, one.messages_received, one.bytes_received, one.step_seconds)
        for name, one in cost.roles.items()
    ]
    heads = (
        Column("role"),
        Column("messages sent", "{:,}"),
        Column("bytes sent", "{:,}"),
        Column("messages received", "{:,}"),
        Column("bytes received", "{:,}"),
        Column("seconds of computing", "{:.3g}"),
    )
    words_of = _kinds_in_words(result)
    kinds = [
        (kind, count, words_of.get(kind, ""))
        for kind, count in sorted(cost.kinds.items(), key=lambda item: -item[1])
    ]
    tables = [Table("roles-cost", "By role", heads, rows)]
    links = [(a, b, *counted) for (a, b), counted in cost.links().items()]
    columns = (Column("from"), Column("to"), Column("messages", "{:,}"), Column("bytes", "{:,}"))
    folded = [Table("links", "Bytes by link", columns, links)] if links else []
    if kinds:
        said = (Column("kind"), Column("messages", "{:,}"), Column("what it brings"))
        tables.append(Table("kinds", "Messages by kind", said, kinds))
    facts = [
        ("Messages", f"{cost.messages:,}"),
        ("Bytes", size(cost.bytes)),
        ("Rounds", f"{cost.rounds}"),
    ]
    if cost.wall_seconds:  # one party's own result has none
        facts.append(("Time", duration(cost.wall_seconds)))
    words = []
    if len(cost.course) == NOTED:
        words.append(f"Links and the course show the first {NOTED:,} messages; the sums are of all.")
    charts = _sent(result, cost)
    return Section("traffic", "What travelled", words, (), facts, tables, charts, folded)


def _kinds_in_words(result: Result) -> dict[str, str]:
    """What each kind of message is, as its own code says it."""
    study = result.study
    kinds = with_helpers(protocol_of(study.protocol), study).all_messages(study)
    said = {kind.__name__: inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0] for kind in kinds}
    return {
        name: " ".join(words.split()).replace("->", "→").replace("``", "") for name, words in said.items()
    }


def _sent(result: Result, cost: Transcript) -> list[Chart]:
    sent = {name: one.bytes_sent for name, one in cost.roles.items()}
    received = {name: one.bytes_received for name, one in cost.roles.items()}
    if not sum(sent.values()) + sum(received.values()):
        return []

    def draw() -> Any:
        from atoll.report.plots import shortened
        from atoll.report.traffic_plots import sent_figure

        return sent_figure(sent, received, f"{shortened(result.study.name)}: bytes")

    def draw_course() -> Any:
        from atoll.report.plots import shortened
        from atoll.report.traffic_plots import course_figure

        return course_figure(cost.course, f"{shortened(result.study.name)}: messages")

    charts = [
        Chart("bytes", "Bytes by role", "What each role sent and was sent, all messages together.", draw)
    ]
    if len(cost.course) > 1:
        words = "Every mark is a message on the line of its sender; a larger mark has more bytes."
        charts.append(Chart("course", "Messages one after the other", words, draw_course))
    return charts
