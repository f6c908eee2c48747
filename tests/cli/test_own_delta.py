"""``atoll ledger show`` tells spending at the studies' own delta, and why epsilons do not add up."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from tests.cli.test_ledger import BOOKED, LEDGER
from tests.support.running import atoll

from atoll.privacy.calibration import gdp_delta, gdp_epsilon, gdp_mu
from atoll.privacy.ledger import Ledger


def ledger(delta: str) -> None:
    assert atoll("ledger", "init", *LEDGER).code == 0
    for name in ("north-icu", "south-icu"):
        done = atoll("ledger", "set-budget", name, "--epsilon", "9", "--delta", delta, *LEDGER)
        assert done.code == 0


def shown() -> dict[str, object]:
    rows = json.loads(atoll("ledger", "show", "--json", *LEDGER).out)
    return next(row for row in rows if row["identity"] == "north-icu")


def test_a_study_of_epsilon_one_is_shown_as_one_whatever_the_budgets_delta(folder: Path) -> None:
    (folder / "study.toml").write_text(BOOKED)
    ledger("1e-6")
    assert atoll("run", "study.toml", "--quiet").code == 0
    row = shown()
    assert (row["epsilon"], row["delta"]) == (pytest.approx(1.0, abs=1e-6), 1e-5)
    at_budget = gdp_epsilon(gdp_mu(1.0, 1e-5), 1e-6)
    assert at_budget == pytest.approx(1.144, abs=1e-3)
    assert row["epsilon_at_budget_delta"] == pytest.approx(at_budget, abs=2e-3)
    assert row["stated"] == [{"epsilon": 1.0, "delta": 1e-5}]
    said = " ".join(atoll("ledger", "show", *LEDGER).out.split())
    assert "the budget is kept at delta 1e-06, where the same noise counts as epsilon 1.14" in said


def test_two_releases_of_epsilon_one_are_explained(folder: Path) -> None:
    (folder / "study.toml").write_text(BOOKED)
    ledger("1e-5")
    for _ in range(2):
        assert atoll("run", "study.toml", "--quiet").code == 0
    row = shown()
    together = gdp_epsilon(2**0.5 * gdp_mu(1.0, 1e-5), 1e-5)
    assert together == pytest.approx(1.465, abs=1e-3)
    assert row["epsilon"] == pytest.approx(together, abs=1e-3)
    (sentence,) = row["explained"]  # type: ignore[misc]
    assert "epsilon 1, 1 each by itself, and 1.46" in sentence
    assert "not 2" in sentence
    # What the sentence says is the promise: at this epsilon the two together have the study's delta.
    assert gdp_delta(2**0.5 * gdp_mu(1.0, 1e-5), together) == pytest.approx(1e-5, rel=1e-6)


def test_times_are_iso_8601(folder: Path) -> None:
    (folder / "study.toml").write_text(BOOKED)
    ledger("1e-5")
    assert atoll("run", "study.toml", "--quiet").code == 0
    exported = json.loads(atoll("ledger", "export", *LEDGER).out)
    for debit in exported["debits"]:
        assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ", debit["made_at"])
        assert (debit["epsilon"], debit["delta"]) == (1.0, 1e-5)


def test_a_ledger_of_version_3_is_taken_over(folder: Path) -> None:
    (folder / "study.toml").write_text(BOOKED)
    ledger("1e-6")
    assert atoll("run", "study.toml", "--quiet").code == 0
    with sqlite3.connect("ledger.sqlite") as file:
        for column in ("epsilon", "delta"):
            file.execute(f"ALTER TABLE debit DROP COLUMN {column}")
        file.execute("PRAGMA user_version = 3")
    file.close()
    row = shown()
    assert row["releases"] == 1
    assert row["stated"] == [None]
    assert (row["epsilon"], row["delta"]) == (pytest.approx(1.144, abs=3e-3), 1e-6)  # at the budget's
    assert atoll("run", "study.toml", "--quiet").code == 0
    with Ledger("ledger.sqlite") as book:
        assert [one and one.epsilon for one in book.account("north-icu").stated] == [None, 1.0]
