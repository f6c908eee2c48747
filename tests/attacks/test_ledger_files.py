"""Copied, moved and emptied ledger files, and those of 0.1.0: none gives a fresh budget."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atoll
from atoll.errors import BudgetExceeded, ParameterError, PrivacyError
from atoll.privacy.calibration import gdp_mu
from atoll.privacy.ledger import Budget, Ledger
from atoll.privacy.mechanisms import GaussianCost

ONE = [GaussianCost(gdp_mu(1.0, 1e-5))]


# ---- a fresh ledger ----


def spent_folder(place: Path) -> Path:
    """A folder whose ledger has nothing left for the data set."""
    place.mkdir()
    with Ledger.create(place / "ledger.db") as ledger:
        ledger.set_budget("cohort", 1.0, 1e-5)
        ledger.debit("cohort", "r", ONE)
    return place


def test_a_copied_folder_has_no_fresh_ledger(tmp_path: Path) -> None:
    original = spent_folder(tmp_path / "study")
    without = tmp_path / "without"
    without.mkdir()
    with pytest.raises(PrivacyError, match="there is no ledger") as refused:
        Ledger(without / "ledger.db")
    assert f"atoll ledger init --ledger {without}/ledger.db" in refused.value.hint
    assert list(without.iterdir()) == []
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    for _ in range(2):  # the refusal does not wear off
        with pytest.raises(PrivacyError, match="is a copy of") as refused:
            Ledger(copy / "ledger.db")
    assert str(original / "ledger.db") in refused.value.hint
    with pytest.raises(PrivacyError, match="is still at"):
        atoll_moved(copy / "ledger.db")
    with Ledger(original / "ledger.db") as ledger, pytest.raises(BudgetExceeded):
        ledger.debit("cohort", "r2", ONE)


def atoll_moved(path: Path) -> None:
    from atoll.privacy import ledger_file

    ledger_file.moved(path)


def test_a_second_name_of_the_file_is_no_second_account(tmp_path: Path) -> None:
    """Under another name SQLite has another write-ahead log: what is in the first one is not seen."""
    folder = spent_folder(tmp_path / "study")
    with Ledger(folder / "ledger.db") as ledger:
        ledger.set_budget("cohort", 2.0, 1e-5)
        ledger.debit("cohort", "r2", ONE)
        os.link(folder / "ledger.db", folder / "second.db")
        count = "import sqlite3; print(*sqlite3.connect('second.db').execute('SELECT count(*) FROM debit'))"
        seen = subprocess.run([sys.executable, "-c", count], cwd=folder, capture_output=True, check=True)
        assert seen.stdout == b"(1,)\n"  # another process sees one debit of two
        with pytest.raises(PrivacyError, match="has a second name"):
            Ledger(folder / "second.db")
        assert ledger.account("cohort").releases == 2
    (folder / "second.db").unlink()
    (folder / "linked.db").symlink_to(folder / "ledger.db")
    with Ledger(folder / "ledger.db") as ledger, Ledger(folder / "linked.db") as linked:
        ledger.set_budget("cohort", 3.0, 1e-5)
        ledger.debit("cohort", "r3", ONE)
        assert linked.account("cohort").releases == 3


def test_a_copy_on_another_disk_with_the_same_number_is_a_copy(tmp_path: Path) -> None:
    """Files of two disks may have one number (an inode); the original, which is still there, tells."""
    folder = spent_folder(tmp_path / "study")
    copy = Path(shutil.copy(folder / "ledger.db", tmp_path / "copy.db"))
    with closing(sqlite3.connect(copy)) as connection:
        place = json.dumps((str(folder / "ledger.db"), copy.stat().st_ino)).encode()
        connection.execute("UPDATE meta SET value = ? WHERE name = 'place'", (place,))
        connection.commit()
    with pytest.raises(PrivacyError, match="is a copy of"):
        Ledger(copy)


def test_a_ledger_that_was_moved_keeps_what_was_spent(tmp_path: Path) -> None:
    original = spent_folder(tmp_path / "study")
    original.rename(tmp_path / "renamed")  # the same file under another name
    with Ledger(tmp_path / "renamed" / "ledger.db") as ledger:
        assert ledger.account("cohort").releases == 1
    shutil.copytree(tmp_path / "renamed", tmp_path / "elsewhere")  # as a move to another disk does
    shutil.rmtree(tmp_path / "renamed")
    with pytest.raises(PrivacyError, match="is a copy of"):
        Ledger(tmp_path / "elsewhere" / "ledger.db")
    atoll_moved(tmp_path / "elsewhere" / "ledger.db")
    with Ledger(tmp_path / "elsewhere" / "ledger.db") as ledger, pytest.raises(BudgetExceeded):
        ledger.debit("cohort", "r2", ONE)


@pytest.mark.parametrize("content", [b"", b"no ledger at all, but long enough to have a header" * 40])
def test_an_empty_or_other_file_is_no_ledger(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(content)
    with pytest.raises(PrivacyError, match="is not a ledger"):
        Ledger(tmp_path / "ledger.db")
    with pytest.raises(ParameterError, match="already"):
        Ledger.create(tmp_path / "ledger.db")
    assert (tmp_path / "ledger.db").read_bytes() == content


def test_python_makes_no_ledger_either_and_says_where_nothing_is_booked(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(40, 3))
    tables = {"a": rows[:20], "b": rows[20:]}
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "row_norm": 3.0}
    with pytest.raises(PrivacyError, match="there is no ledger"):
        atoll.PCA(2, **options, ledger=tmp_path / "ledger.db").fit(tables)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PrivacyError, match="there is no ledger"):
        atoll.PCA(2, **options, ledger=True).fit(tables)
    fitted = atoll.PCA(2, **options).fit(tables)
    assert fitted.result_.booked == "no ledger: nothing booked"
    assert "no ledger: nothing booked" in repr(fitted.result_)
    assert fitted.privacy_spent_["a"].epsilon == pytest.approx(1.0)
    saved = fitted.result_.save(tmp_path / "r.atoll")
    assert atoll.load_result(saved).booked == "no ledger: nothing booked"


@pytest.mark.parametrize("table", ["mu = -1.0", "pure = '[-0.5]'", "pure = '[NaN]'"])
def test_a_negative_cost_in_the_file_is_no_budget(table: str, tmp_path: Path) -> None:
    place = spent_folder(tmp_path / "study") / "ledger.db"
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE debit SET {table}")
    connection.commit()
    connection.close()
    with Ledger(place) as ledger, pytest.raises(ParameterError, match="a release cannot cost"):
        ledger.debit("cohort", "r2", ONE)


# ---- ledgers of 0.1.0 ----

FIRST_LAYOUT = """
CREATE TABLE data_set (identity TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL) STRICT;
CREATE TABLE debit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, release_id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL,
    fingerprint TEXT NOT NULL, study TEXT NOT NULL, neighbours TEXT NOT NULL, mu REAL NOT NULL,
    pure TEXT NOT NULL, made_at REAL NOT NULL
) STRICT;
CREATE INDEX debit_of_identity ON debit (identity);
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
INSERT INTO meta VALUES ('secret', zeroblob(32));
INSERT INTO data_set VALUES ('Cohort', 2.0, 1e-5);
INSERT INTO data_set VALUES ('cohort', 1.5, 1e-5);
INSERT INTO data_set VALUES ('pure', 1.0, 0.0);
INSERT INTO debit VALUES (1, 'r1', 'Cohort', 'keyed', 's', 'add-remove', 0.2, '[]', 1.0);
INSERT INTO debit VALUES (2, 'r2', 'Cohort' || char(8203), '', 's', 'add-remove', 0.2, '[]', 2.0);
INSERT INTO debit VALUES (3, 'r3', 'pure', '', 's', 'add-remove', 0.0, '[0.4]', 3.0);
INSERT INTO debit VALUES (4, 'r4', 'nobody', '', 's', 'replace', 0.3, '[]', 4.0);
PRAGMA user_version = 2;
"""


def test_a_ledger_of_the_first_version_keeps_budgets_and_debits_and_merges_evasions(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "l")
    connection.executescript(FIRST_LAYOUT)
    connection.close()
    for _ in range(2):
        with Ledger(tmp_path / "l") as ledger:
            account = ledger.account("COHORT")
            assert account.budget == Budget(1.5, 1e-5)  # the smaller of the two
            assert account.spent.mu == pytest.approx(0.08**0.5)  # with the one behind a zero-width space
            assert (account.releases, account.method) == (2, "gdp")
            assert ledger.debits("cohort")[0].fingerprint == "keyed"
            assert ledger.account("pure").epsilon == 0.4
            assert ledger.account("pure").method == "pure"
            assert ledger.account("nobody").releases == 1
            with pytest.raises(PrivacyError, match="'nobody' has no budget"):
                ledger.debit("nobody", "r5", ONE)
            assert [d.release_id for d in ledger.debits()] == ["r1", "r2", "r3", "r4"]


def test_a_ledger_of_the_first_version_counts_pure_releases_under_a_delta_as_it_did(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "l")
    connection.executescript(FIRST_LAYOUT)
    connection.execute("UPDATE data_set SET delta = 1e-5 WHERE identity = 'pure'")
    connection.commit()
    connection.close()
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.account("pure").method == "gdp"
        with pytest.raises(ParameterError, match="counted with a delta"):
            ledger.set_budget("pure", 1.0)
