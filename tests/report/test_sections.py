"""What a page says beside its pictures, to the letter: whose result, how it ran, what was spent."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from atoll.privacy.accounts import Release
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import GaussianCost
from atoll.protocols.synthesis.schema import Column
from atoll.report.html import sections
from atoll.report.html.beside import budget_table
from atoll.report.html.live import safe_json
from atoll.report.synthetic import compare

EVERYBODY = "all parties together (whoever ran the rehearsal)"


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (["north/provider"], "north (provider)"),
        (["office/server", "office/consumer"], "office (server, consumer)"),
        (["north/provider", "south/provider"], EVERYBODY),
        (["north/provider", "office/server", "lab/consumer"], EVERYBODY),
        ([], EVERYBODY),
    ],
)
def test_a_page_says_whose_result_it_is(roles: list[str], said: str) -> None:
    result: Any = SimpleNamespace(transcript=SimpleNamespace(roles=dict.fromkeys(roles)))
    assert sections._holder(result) == said


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        (True, "between machines: every party ran its own role where its table lies"),
        (False, "as a rehearsal: all roles in one process, on one machine that had every table"),
    ],
)
def test_a_page_says_how_it_ran(apart: bool, said: str) -> None:
    review: Any = SimpleNamespace(between_machines=apart)
    assert sections._way(review) == said


def test_the_budgets_row_is_of_before_and_after(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as book:
        book.set_budget("icu", 4.0, 1e-6)
        for name, study in (("one", "earlier"), ("two", "this"), ("three", "later")):
            exact = Release.exactly("icu", name, study)
            book.reserve(exact)
            book.settle(exact, "exact")
            book.debit("icu", f"noisy {name}", [GaussianCost(0.25)], study=study)
        table = budget_table(book, "this")
    assert table is not None
    assert [column.name for column in table.columns] == [
        "data set",
        "budget (epsilon)",
        "at delta",
        "spent before",
        "spent after",
        "exact releases",
    ]
    assert table.rows == [("icu", "4", "1e-06", "1.061", "1.544", "1 → 2")]


def test_no_text_ends_the_element_that_json_stands_in() -> None:
    told = {"</script><b>": "a & <!-- b -->"}
    text = safe_json(told)
    assert not set(text) & set("<>&")
    assert json.loads(text) == told
    with pytest.raises(ValueError, match="Out of range"):
        safe_json(float("nan"))


def test_distances_of_margins_are_the_shares_that_would_have_to_move() -> None:
    schema = (
        Column(name="sex", kind="category", levels=("f", "m")),
        Column(name="ill", kind="category", levels=("no", "yes")),
    )
    real = pd.DataFrame({"sex": ["f"] * 40, "ill": ["no", "yes"] * 20})
    drawn = pd.DataFrame({"sex": ["m"] * 40, "ill": ["no"] * 30 + ["yes"] * 10})
    found = compare(real, drawn, schema, 2)
    assert found.margins["distance"].tolist() == [1.0, 0.25]
    assert found.pairs["distance"].tolist() == [1.0]
