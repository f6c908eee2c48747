"""All that reviews say, line by line, and of which studies: what ``said.txt`` holds.

    python -m tests.review.said        writes the file again

Whoever changes a sentence or a number runs that, and reads in the difference whether every line is true where
it now stands. Forecasts of time are left out: they are of the machine.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from msgspec import structs
from rich.console import Console
from tests.support.examples import EXAMPLES, dpdpca, pppca, private_pppca, privatelocal

from atoll.cli.review import show
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import GaussianCost
from atoll.protocols.base import Forecast
from atoll.report.assessment import as_markdown
from atoll.report.html.reviewed import review_sections
from atoll.review.study import Guess, Review, review_study
from atoll.study.model import Assessment, Guards, Local, Study, TablePlan

FILE = Path(__file__).with_name("said.txt")

FORESEEN = Forecast(
    seconds_together=3.0,
    seconds_apart=90.0,
    processor_provider=1.5,
    processor_server=7.0,
    memory_together=10**9,
    memory_provider=3 * 10**6,
    memory_server=5 * 10**7,
    course=("the course that was chosen",),
    assumes=("what is assumed",),
)


def all_said() -> str:
    """The file's text: lines that the same studies say stand together, under the names of these."""
    with mock.patch.dict(os.environ, ATOLL_HOME="/nowhere"):
        return _all_said()


def _all_said() -> str:
    studies: dict[str, list[str]] = {}
    for name, lines in _reviews():
        for line in dict.fromkeys(lines):
            studies.setdefault(line, []).append(name)
    groups: dict[tuple[str, ...], list[str]] = {}
    for line, names in studies.items():
        groups.setdefault(tuple(names), []).append(line)
    return "\n".join(f"== {' '.join(names)}\n" + "".join(f"{x}\n" for x in groups[names]) for names in groups)


def _reviews() -> Iterator[tuple[str, Iterable[str]]]:
    for name, example in EXAMPLES.items():
        yield name, list(_of_text(as_markdown(_timeless(review_study(example().study, 4)))))
    with tempfile.TemporaryDirectory() as folder:
        for name, review in _special(Path(folder) / "ledger.db"):
            text = [*_of_text(as_markdown(review)), *_of_screen(review), *_of_page(review)]
            yield f"({name})", [line.replace(folder, "FOLDER") for line in text]


def _timeless(review: Review) -> Review:
    return (
        review
        if review.cost is None
        else structs.replace(review, cost=structs.replace(review.cost, forecast=None))
    )


# ---- accounts, guard rails, prepared tables, and all that an example leaves out ----


def _special(ledger: Path) -> Iterator[tuple[str, Review]]:
    names = {f"hospital-{i}": f"data {i}" for i in range(3)}
    local = Local(identities=names, ledger=str(ledger))
    yield "private, no ledger", review_study(private_pppca().study, 4, local)
    yield "exact, no ledger", review_study(pppca().study, 4, local)
    _fill(ledger)
    yield "private, accounts", review_study(private_pppca().study, 4, local)
    yield "pure, accounts", review_study(private_pppca(delta=None, epsilon=20.0).study, 4, local)
    yield "exact, accounts", review_study(pppca().study, 4, local)
    strict = Local(ledger=str(ledger), min_colluders=3)
    yield "strict owner", review_study(dpdpca().study, 4, strict)
    yield "strict owner, published", review_study(EXAMPLES["dpdpca-paper"]().study, 4, strict)
    yield "little promised", review_study(dpdpca(epsilon=8.0, delta=0.01).study, 4)
    yield "rows known", review_study(pppca().study, 4, guess=Guess((1, 20, 30)))
    yield "whoever colludes", review_study(privatelocal().study, 4)
    yield "nothing known", review_study(_stated(pppca().study), local=Local(contact="a | person"))
    both = review_study(EXAMPLES["sfpca"]().study, 4)
    assert both.cost is not None
    yield "forecast", structs.replace(both, cost=structs.replace(both.cost, forecast=FORESEEN))
    yield "steps", review_study(EXAMPLES["glm"]().study, 4)


def _fill(path: Path) -> None:
    with Ledger.create(path) as book:
        book.set_budget("data 0", 50.0, 1e-5)
        book.set_budget("data 1", 5.5, 1e-6, exact=False)
        book.debit("data 0", "one", [GaussianCost(0.5)], neighbours="replace")
        book.debit("data 1", "two", [GaussianCost(0.5)])


def _stated(study: Study) -> Study:
    parties = tuple(structs.replace(p, fingerprint=f"{i:064x}") for i, p in enumerate(study.parties))
    said: Mapping[str, Any] = {
        "assessment": Assessment(
            "a <purpose>", "a basis", "a controller", ("one", "two"), ("kinds",), "a year"
        ),
        "table": TablePlan(exclude=("age",), categorical=("sex",), missing="mean", flat="drop"),
        "guards": Guards(min_rows=50, min_islands=3),
    }
    return structs.replace(study, parties=parties, **said)


# ---- a line, and where it stands ----


def _of_text(text: str) -> Iterator[str]:
    """``## Title`` and ``**Role** (parties) learns`` say where the lines after them stand."""
    place = ""
    for line in filter(None, text.splitlines()):
        if found := re.match(r"##? (.*)|\*\*(.*)\*\* \(", line):
            place = found[1] or f"Who learns what, {found[2]}"
        yield f"[{place}] {_undated(line)}"


def _of_screen(review: Review) -> Iterator[str]:
    screen = Console(file=io.StringIO(), width=1000, color_system=None, legacy_windows=False)
    show(review, screen)
    assert isinstance(screen.file, io.StringIO)
    for line in screen.file.getvalue().splitlines():
        yield re.sub(r"\s{2,}|[─━]{2,}", "  ", f"screen: {_undated(line)}").rstrip()


def _of_page(review: Review) -> Iterator[str]:
    for part in review_sections(review):
        lines = [*part.words, *(f"! {one}" for one in part.warnings), *(f"{a}: {b}" for a, b in part.facts)]
        for table in part.tables:
            lines.append(f"{table.title}: " + " | ".join(column.name for column in table.columns))
            lines += [" | ".join(map(str, row)) for row in table.rows]
        yield from (f"page, {part.title}: {_undated(line)}" for line in "\n".join(lines).splitlines())


def _undated(line: str) -> str:
    return re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", line)


if __name__ == "__main__":
    FILE.write_text(all_said(), encoding="utf-8")
    sys.stdout.write(f"wrote {FILE}\n")
