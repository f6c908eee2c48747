"""What a renderer gives: tables, figures, files, and words about a result of one analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import Review
    from atoll.runtime.execute import Run
    from atoll.runtime.result import Result


class Column(NamedTuple):
    """A column of a table: its name, and the form in which its values are shown."""

    name: str
    form: str = "{}"

    @property
    def is_number(self) -> bool:
        return self.form != "{}"


class Table(NamedTuple):
    """A short table, to be looked at."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[Any, ...]]

    def shown(self) -> Iterator[tuple[str, ...]]:
        """Its rows as text."""
        for row in self.rows:
            yield tuple(column.form.format(value) for column, value in zip(self.columns, row, strict=True))


class Analysis:
    """How results of one analysis are shown. This one, for analyses that bring no renderer, shows nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def words(self) -> str:
        """What the analysis is, after "the organisations compute"."""
        return f"the analysis “{self.name}”"

    # ---- a result ----

    def tables(self, result: Result) -> list[Table]:
        """Short tables, for the screen and for reports."""
        del result
        return []

    def notes(self, result: Result) -> list[str]:
        """What is to be read beside the tables."""
        del result
        return []

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        """Long tables by name, for files."""
        del result
        return {}

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        """What a report shows; ``own``: the table of whoever makes it, for what needs rows."""
        del result, own
        return []

    def long_tables(self, result: Result) -> list[Table]:
        """Tables for a report that are too long for a screen."""
        del result
        return []

    def missing(self, result: Result) -> list[str]:
        """What a reader would look for, and why it is not there."""
        del result
        return []

    def figures(self, result: Result) -> dict[str, bytes]:
        """Pictures by name, as PNG bytes."""
        del result
        return {}

    def files(self, result: Result) -> Iterator[tuple[str, bytes]]:
        """Long tables as CSV and pictures, by the ending of a file's name; a table before its picture."""
        frames, figures = self.frames(result), self.figures(result)
        for name in dict.fromkeys((*figures, *frames)):
            if name in frames:
                yield f"-{name}.csv", frames[name].to_csv(index=False).encode()
            if name in figures:
                yield f"-{name}.png", figures[name]

    def facts(self, result: Result) -> dict[str, Any]:
        """The few figures that programs want, as plain data."""
        del result
        return {}

    def summary(self, result: Result) -> str:
        """The result in a few words."""
        return f"{result.study.name}: {', '.join(result.outputs) or 'nothing'}."

    def warnings(self, finished: Run) -> list[str]:
        """What the owner of a finished run should know."""
        del finished
        return []

    # ---- a review ----

    def about_records(self, review: Review) -> str:
        """Whether any message is about a single record."""
        del review
        return "No message is about a single record, unless an island has very few."

    def risks(self, review: Review) -> list[str]:
        """What remains to be said of the outputs' risks."""
        del review
        return []
