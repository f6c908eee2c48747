"""A part of a page, as plain data: words, facts, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.report.analyses.base import Table
from atoll.report.charts import Chart


class Section(NamedTuple):
    """One part, under a heading."""

    name: str
    title: str
    words: Sequence[str] = ()
    warnings: Sequence[str] = ()
    """Sentences that nobody should miss."""
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    folded: Sequence[Table] = ()
    """Long tables, shown when asked for."""
