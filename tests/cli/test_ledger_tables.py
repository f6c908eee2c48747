"""Every cell and field that ``atoll ledger`` shows, of a ledger in which no two numbers are the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.running import atoll

from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import Stated
from atoll.privacy.history import Joined
from atoll.privacy.ledger import Ledger, Release
from atoll.privacy.mechanisms import GaussianCost, PureCost

LEDGER = ("--ledger", "ledger.db")
DIGEST = "0123456789abcdef" * 4
ICU = "no useful bound: an attacker who knows all other rows may be nearly sure about one row"
EXACT = "; 3 exact releases were made of it, and what they show no epsilon bounds"
WARD = (
    "an attacker who knows all other rows improves a 50:50 guess about one row to at most 62% "
    "(whether it is in the data at all)"
)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two releases made, two reserved, three exact and refused from now on; and a pure account."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 86_400.0)
    with Ledger.create("ledger.db") as book:
        book.set_budget("icu", 30.0, 1e-6)
        for number in range(2):
            book.debit("icu", f"made {number}", [GaussianCost(1.0)])
        for number in range(2):
            stages = {"a": Spent(0.5), "b": Spent(0.25)}
            book.reserve(Release("icu", f"later {number}", stages, stated=Stated(2.0, 1e-5)))
        for number in range(3):
            exact = Release.exactly("icu", f"exact {number}", DIGEST)
            book.history.reserve(
                "icu",
                f"{number}",
                DIGEST,
                Joined("pca", ("x", "y"), 1234, 5, "{}", np.arange(3, dtype=np.uint64)),
            )
            book.reserve(exact)
            book.settle(exact, "exact", "rows")
        book.set_budget("icu", 30.0, 1e-6, exact=False)
        book.set_budget("ward", 2.0)
        book.debit("ward", "pure", [PureCost(0.5)], neighbours="replace", study="a study")


def cells(text: str, first: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(first))
    return line.replace("3, refused", "3,refused").split()


def test_every_cell_of_the_table(ledger: None) -> None:
    shown = atoll("ledger", "show", *LEDGER).out
    assert cells(shown, "icu") == ["icu", "8.549", "1e-06", "30", "1e-06", "4", "2", "3,refused"]
    assert cells(shown, "ward") == ["ward", "0.5", "0", "2", "0", "1", "0", "0"]
    titles = "data set  spent  at delta  budget  its delta  releases  reserved       exact"
    assert titles in shown
    assert f"• icu: {ICU}{EXACT}" in " ".join(shown.split())


def test_every_field_for_programs(ledger: None) -> None:
    icu, ward = json.loads(atoll("ledger", "show", *LEDGER, "--json").out)
    assert icu.pop("epsilon") == icu.pop("epsilon_at_budget_delta") == pytest.approx(8.549, abs=1e-3)
    stated = {"epsilon": 2.0, "delta": 1e-5}
    assert icu == {
        "identity": "icu",
        "delta": 1e-6,
        "budget": 30.0,
        "budget_delta": 1e-6,
        "stated": [None, None, stated, stated],
        "method": "gdp",
        "neighbours": "add-remove",
        "releases": 4,
        "reserved": 2,
        "exact": 3,
        "exact_allowed": False,
        "in_words": ICU + EXACT,
        "explained": [],
    }
    assert (ward["method"], ward["neighbours"], ward["exact_allowed"]) == ("pure", "replace", True)
    assert (ward["epsilon"], ward["delta"], ward["budget"], ward["budget_delta"]) == (0.5, 0.0, 2.0, 0.0)


def test_the_history_of_exact_studies(ledger: None) -> None:
    shown = atoll("ledger", "history", "icu", *LEDGER).out
    due = ["1970-01-02T00:00:00Z", DIGEST[:12], "pca", "1,234", "2", "5"]
    assert [line.split() for line in shown.splitlines() if DIGEST[:12] in line] == [due] * 3
    known = {
        "study": DIGEST,
        "made_at": 86_400.0,
        "analysis": "pca",
        "rows": 1234,
        "columns": 2,
        "components": 5,
    }
    assert json.loads(atoll("ledger", "history", "icu", *LEDGER, "--json").out) == [known] * 3


def test_every_field_of_the_export(ledger: None) -> None:
    told = json.loads(atoll("ledger", "export", *LEDGER).out)
    assert list(told) == ["version", "budgets", "debits"]
    assert told["version"] == 4
    assert told["budgets"] == [
        {"identity": "icu", "epsilon": 30.0, "delta": 1e-6, "method": "gdp", "exact": "refused"},
        {"identity": "ward", "epsilon": 2.0, "delta": 0.0, "method": "pure", "exact": "booked"},
    ]
    debits = {(one["release_id"], one["stage"]): one for one in told["debits"]}
    assert len(debits) == len(told["debits"]) == 10
    common: dict[str, Any] = {
        "identity": "icu",
        "kind": "private",
        "state": "settled",
        "fingerprint": "",
        "study": "",
        "neighbours": "add-remove",
        "mu": 1.0,
        "pure_epsilons": [],
        "epsilon": None,
        "delta": None,
        "made_at": "1970-01-02T00:00:00Z",
    }
    assert debits["made 1", ""] == {"release_id": "made 1", "stage": "", **common}
    later = {"state": "reserved", "mu": 0.25, "epsilon": 2.0, "delta": 1e-5}
    assert debits["later 0", "b"] == {"release_id": "later 0", "stage": "b", **common, **later}
    exact = debits["exact 2", "exact"]
    assert len(exact["fingerprint"]) == 64
    exact["fingerprint"] = ""
    kind = {"kind": "exact", "study": DIGEST, "mu": 0.0}
    assert exact == {"release_id": "exact 2", "stage": "exact", **common, **kind}
    pure = {
        "identity": "ward",
        "study": "a study",
        "neighbours": "replace",
        "mu": 0.0,
        "pure_epsilons": [0.5],
    }
    assert debits["pure", ""] == {"release_id": "pure", "stage": "", **common, **pure}
