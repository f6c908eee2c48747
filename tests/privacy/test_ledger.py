"""The ledger: debit before release, once, never over budget, whatever happens to the process."""

import json
import math
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from atoll.errors import BudgetExceeded, ParameterError, PrivacyError
from atoll.privacy.accountant import Spent
from atoll.privacy.calibration import gdp_epsilon, gdp_mu
from atoll.privacy.ledger import Budget, Ledger, Release, iso_time
from atoll.privacy.mechanisms import GaussianCost, PureCost
from atoll.protocols.booking import fingerprint

ONE = [GaussianCost(gdp_mu(1.0, 1e-5))]


def unlimited(*identities, path=None, delta=1e-5):
    """A ledger whose data sets have all the budget that a test could spend."""
    ledger = Ledger() if path is None else Ledger.create(path)
    for identity in identities:
        ledger.set_budget(identity, 1e6, delta)
    return ledger


def test_debits_compose_and_stop_at_the_budget():
    ledger = Ledger()
    ledger.set_budget("patients", 1.5, 1e-5)
    after = ledger.debit("patients", "r1", ONE)
    assert after.epsilon == pytest.approx(1.0)
    assert ledger.debit("patients", "r2", ONE).epsilon == pytest.approx(
        gdp_epsilon(ONE[0].mu * math.sqrt(2), 1e-5)
    )
    with pytest.raises(
        BudgetExceeded, match=r"from 1\.4\d+ to 1\.8\d+, over its budget of 1\.5 \(at delta 1e-05\)"
    ):
        ledger.debit("patients", "r3", ONE)
    assert ledger.account("patients").releases == 2
    ledger.set_budget("others", 1.0, 1e-5)
    assert ledger.debit("others", "r3", ONE).releases == 1


def test_a_debit_is_on_the_disk_when_it_returns(tmp_path):
    """Not merely in the page cache, which a power cut takes along: SQLite's 2 is FULL."""
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ask = ledger._connection.execute
        assert ask("PRAGMA synchronous").fetchone() == (2,)
        assert ask("PRAGMA journal_mode").fetchone() == ("wal",)


def test_times_are_utc_wherever_the_ledger_stands(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert iso_time(0.0) == "1970-01-01T00:00:00Z"
        assert iso_time(1_794_963_599.9) == "2026-11-18T00:59:59Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_without_a_budget_spending_is_shown_at_a_small_delta():
    before, after = Ledger().preview(Release("d", "r", {"": Spent(1.0)}))
    assert (before.delta, after.delta) == (0.0, 1e-6)
    assert after.epsilon == pytest.approx(gdp_epsilon(1.0, 1e-6))


def test_a_budget_is_as_large_as_its_owner_said():
    ledger = Ledger()
    ledger.set_budget("d", 1.0)
    ledger.debit("d", "r1", [PureCost(0.999)])
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", "r2", [PureCost(0.0011)])
    ledger.debit("d", "r3", [PureCost(0.001)])


def test_a_budget_can_be_spent_to_the_last_digit():
    ledger = Ledger()
    ledger.set_budget("d", 1.0, 1e-5)
    share = [GaussianCost(gdp_mu(1.0, 1e-5) / math.sqrt(10))]
    for number in range(10):
        ledger.debit("d", f"r{number}", share)
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", "r10", share)


def test_a_pure_budget_refuses_gaussian_noise():
    ledger = Ledger()
    ledger.set_budget("d", 1.0)
    ledger.debit("d", "a", [PureCost(0.6)])
    with pytest.raises(
        BudgetExceeded, match=r"budget of 1 is at delta 0, .* this release has a delta"
    ) as refused:
        ledger.debit("d", "b", [GaussianCost(1e-6)])
    assert refused.value.hint.endswith("atoll ledger set-budget d --epsilon 1 --delta 1e-5")
    ledger.debit("d", "c", [PureCost(0.4)])
    assert ledger.account("d").spent == Spent(0.0, (0.4, 0.6))


def test_a_pure_budget_is_not_set_after_gaussian_noise():
    with unlimited("d") as ledger:
        ledger.debit("d", "a", ONE)
        with pytest.raises(ParameterError, match="delta 0 would allow none of them") as refused:
            ledger.set_budget("d", 1.5)
        assert "--delta 1e-5" in refused.value.hint
        assert ledger.budget("d") == Budget(1e6, 1e-5)


def test_the_same_release_is_charged_once_and_no_other_takes_its_id():
    ledger = Ledger()
    ledger.set_budget("d", 1.0, 1e-5)
    ledger.debit("d", "r", ONE, study="s", fingerprint="f")
    again = ledger.debit("d", "r", ONE, study="s", fingerprint="f")
    assert again.releases == 1
    for change in (
        {"identity": "other"},
        {"costs": [PureCost(0.1)]},
        {"study": "t"},
        {"neighbours": "replace"},
    ):
        asked = {"identity": "d", "costs": ONE, "study": "s", "neighbours": "add-remove"} | change
        with pytest.raises(PrivacyError, match="debited before"):
            ledger.debit(asked.pop("identity"), "r", asked.pop("costs"), **asked)


def test_a_release_is_not_resumed_with_other_rows():
    ledger = Ledger()
    ledger.set_budget("d", 2.0, 1e-5)
    ledger.debit("d", "r", ONE, study="s", fingerprint="before")
    with pytest.raises(PrivacyError, match=r"not those that .* debited for \(.*epsilon 1 at delta 1e-05\)"):
        ledger.debit("d", "r", ONE, study="s", fingerprint="after")
    assert ledger.debit("d", "r", ONE, study="s", fingerprint="before").releases == 1


def test_changed_rows_keep_what_was_spent():
    ledger = Ledger()
    ledger.set_budget("d", 1.0, 1e-5)
    ledger.debit("d", "r1", ONE, fingerprint="before")
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", "r2", ONE, fingerprint="one row appended")
    assert len(ledger.debits("d")) == 1


def test_mixed_neighbours_count_added_rows_twice():
    ledger = unlimited("d")
    ledger.debit("d", "a", [GaussianCost(0.3)], neighbours="add-remove")
    assert ledger.account("d").neighbours == "add-remove"
    mixed = ledger.debit("d", "b", [GaussianCost(0.4)], neighbours="replace")
    assert mixed.neighbours == "replace"
    assert mixed.spent.mu == pytest.approx(math.hypot(0.6, 0.4))


def test_preview_shows_both_sides_and_spends_nothing():
    ledger = Ledger()
    ledger.set_budget("d", 3.0, 1e-5)
    before, after = ledger.preview(Release("d", "", {"": Spent.of(ONE)}))
    assert (before.epsilon, before.releases) == (0.0, 0)
    assert after.epsilon == pytest.approx(1.0)
    assert ledger.account("d") == before


def test_without_a_budget_nothing_is_released():
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="'d' has no budget") as refused:
        ledger.debit("d", "r", ONE)
    assert refused.value.hint.endswith("atoll ledger set-budget d --epsilon 1 --delta 1e-5")
    assert ledger.debits() == ledger.show() == []


def test_show_and_export(tmp_path):
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("b", 2.0, 1e-6)
        ledger.set_budget("b", 3.0, 1e-6, exact=False)
        ledger.set_budget("a", 9.0, 1e-5)
        ledger.debit("a", "r", [*ONE, PureCost(0.1)], study="digest", fingerprint="f")
    with Ledger(tmp_path / "ledger.db") as again:
        assert [account.identity for account in again.show()] == ["a", "b"]
        assert again.budget("b") == Budget(3.0, 1e-6)
        document = json.loads(again.export())
    assert document["budgets"] == [
        {"identity": "a", "epsilon": 9.0, "delta": 1e-5, "method": "gdp", "exact": "booked"},
        {"identity": "b", "epsilon": 3.0, "delta": 1e-6, "method": None, "exact": "refused"},
    ]
    (debit,) = document["debits"]
    assert debit["study"] == "digest"
    assert debit["mu"] == pytest.approx(ONE[0].mu)
    assert debit["pure_epsilons"] == [0.1]


def test_the_file_belongs_to_its_owner_alone(tmp_path):
    path = tmp_path / "ledger.db"
    old = os.umask(0)
    try:
        with unlimited("d", path=path) as ledger:
            ledger.debit("d", "r", ONE)
            files = list(tmp_path.iterdir())
            assert len(files) == 3  # the ledger, its log and the log's index
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            durable = ledger._connection.execute("PRAGMA synchronous").fetchone()[0]
            assert durable == 2
    finally:
        os.umask(old)


def test_bad_requests_are_refused(tmp_path):
    ledger = Ledger()
    for identity in ("", " ", "patients "):
        with pytest.raises(ParameterError, match="identity"):
            ledger.debit(identity, "r", ONE)
    with pytest.raises(ParameterError, match="epsilon"):
        ledger.set_budget("d", -1.0)
    with pytest.raises(ParameterError, match="delta"):
        ledger.set_budget("d", 1.0, 1.5)
    ledger.set_budget("d", 1.0, 1e-5)
    with pytest.raises(ParameterError, match="neighbours"):
        ledger.debit("d", "r", ONE, neighbours="any")
    with pytest.raises(ParameterError, match="cannot make"):
        Ledger.create(tmp_path / "nowhere" / "ledger.db")
    assert ledger.debits() == []


def test_a_ledger_of_another_version_is_not_touched(tmp_path):
    with Ledger.create(tmp_path / "l") as ledger:
        ledger._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(PrivacyError, match="99"):
        Ledger(tmp_path / "l")


# --- fingerprints ----------------------------------------------------------------------------------------


def fingerprints(ledger):
    return [debit["fingerprint"] for debit in json.loads(ledger.export())["debits"]]


def test_an_export_does_not_let_rows_be_guessed(tmp_path):
    """An auditor who knows all rows but the last, and that it is one of a few, tries them out."""
    candidates = [np.array([[37.0, 1.0], [52.0, 0.0], [61.0, last]]) for last in (0.0, 1.0)]
    with unlimited("d", path=tmp_path / "l") as ledger:
        ledger.debit("d", "r", ONE, fingerprint=fingerprint([candidates[1]]))
        (written,) = fingerprints(ledger)
    assert written not in [fingerprint([rows]) for rows in candidates]


@pytest.mark.parametrize("place", [None, "l"])
def test_equal_rows_have_equal_fingerprints_in_one_ledger_only(tmp_path, place):
    def path(name):
        return None if place is None else tmp_path / name

    with unlimited("d", path=path("one")) as one, unlimited("d", path=path("two")) as two:
        for number, rows in enumerate(("a", "b", "a")):
            one.debit("d", f"r{number}", ONE, fingerprint=rows)
        two.debit("d", "r", ONE, fingerprint="a")
        first, other, again = fingerprints(one)
        assert first == again != other
        assert fingerprints(two) != [first]


def test_the_secret_stays_in_the_file(tmp_path):
    with unlimited("d", path=tmp_path / "l") as ledger:
        ledger.debit("d", "r", ONE, fingerprint="a")
        query = "SELECT value FROM meta WHERE name = 'secret'"
        (secret,) = ledger._connection.execute(query).fetchone()
        said = ledger.export() + repr(ledger) + repr(ledger.debits()) + repr(vars(ledger))
    assert len(secret) == 32
    assert secret.hex() not in said
    assert repr(secret) not in said


EARLIER_LAYOUT = """
CREATE TABLE data_set (identity TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL) STRICT;
CREATE TABLE debit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, release_id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL,
    fingerprint TEXT NOT NULL, study TEXT NOT NULL, neighbours TEXT NOT NULL, mu REAL NOT NULL,
    pure TEXT NOT NULL, made_at REAL NOT NULL
) STRICT;
CREATE INDEX debit_of_identity ON debit (identity);
INSERT INTO data_set VALUES ('d', 3.0, 1e-5);
INSERT INTO debit VALUES (1, 'r1', 'd', 'plain', 's', 'add-remove', 0.2, '[]', 1.0);
INSERT INTO debit VALUES (2, 'r2', 'd', '', 's', 'add-remove', 0.2, '[]', 2.0);
PRAGMA user_version = 1;
"""


def write_earlier(path, layout):
    connection = sqlite3.connect(path)
    connection.executescript(layout)
    connection.close()


def test_a_ledger_without_a_secret_gets_one_and_its_fingerprints_are_put_under_it(tmp_path):
    write_earlier(tmp_path / "l", EARLIER_LAYOUT)
    with Ledger(tmp_path / "l") as ledger:
        brought = fingerprints(ledger)
    assert "plain" not in brought
    with Ledger(tmp_path / "l") as ledger:
        account = ledger.debit("d", "r3", ONE, fingerprint="plain")
        assert fingerprints(ledger) == [*brought, brought[0]]  # the same rows as in r1
    assert brought[1] == ""  # nothing was known of these rows
    assert account.budget == Budget(3.0, 1e-5)
    assert account.releases == 3


# --- crashes and races -----------------------------------------------------------------------------------

# Imports once and forks a releaser for every line it reads, so that a hundred of them start quickly.
NURSERY = """
import os, signal, sys
from pathlib import Path
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
place = Path(sys.argv[1])

def release(worker):
    ledger = Ledger(place / "ledger.db")
    for number in range(8):
        name = f"{worker}-{number}"
        ledger.debit("d", name, [PureCost(1e-4)])
        (place / "released" / name).write_text(name)
    signal.pause()

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        release(line.strip())
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def test_a_killed_process_never_leaves_a_release_without_its_debit(tmp_path):
    (tmp_path / "released").mkdir()
    unlimited("d", path=tmp_path / "ledger.db", delta=0.0).close()
    chance = random.Random(5)
    nurseries = [_start(NURSERY, tmp_path) for _ in range(2)]
    for start in range(50):
        for nursery in nurseries:
            _say(nursery, f"{nursery.pid}-{start}")
        children = [int(nursery.stdout.readline()) for nursery in nurseries]
        for nursery, child in zip(nurseries, children, strict=True):
            _wait_for(tmp_path / "released", f"{nursery.pid}-{start}-*", chance.randrange(4))
            time.sleep(chance.random() * 0.05)
            os.kill(child, signal.SIGKILL)
        assert [nursery.stdout.readline() for nursery in nurseries] == ["gone\n"] * 2
    for nursery in nurseries:
        nursery.communicate(timeout=10)
    with Ledger(tmp_path / "ledger.db") as ledger:
        debited = {debit.release_id for debit in ledger.debits("d")}
    released = {file.name for file in (tmp_path / "released").iterdir()}
    assert released <= debited
    # The kills really fell between debit and release now and then; and most work went through.
    assert 0 < len(debited - released) <= 100
    assert len(released) > 100


def _wait_for(folder, pattern, many):
    """Until a worker has released so many: on a busy machine that takes its time."""
    deadline = time.monotonic() + 30
    while len(list(folder.glob(pattern))) < many and time.monotonic() < deadline:
        time.sleep(0.002)


SPENDER = """
import sys
from pathlib import Path
from atoll.errors import BudgetExceeded
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
place, worker = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
ledger = Ledger(place / "ledger.db")
done = 0
for number in range(int(sys.argv[3])):
    try:
        ledger.debit("d", f"{worker}-{number}", [PureCost(0.01)])
        done += 1
    except BudgetExceeded:
        pass
print(done)
"""


def test_processes_on_one_ledger_never_overspend(tmp_path):
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("d", 1.0)
    workers = [_start(SPENDER, tmp_path, number, 100) for number in range(3)]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        _say(worker, "go")
    done = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(done) == 100
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.account("d").epsilon == pytest.approx(1.0)


def test_processes_may_open_and_migrate_one_ledger_together(tmp_path):
    write_earlier(tmp_path / "ledger.db", EARLIER_LAYOUT.replace("3.0, 1e-5", "1e6, 1e-5"))
    workers = [_start(SPENDER, tmp_path, number, 20) for number in range(4)]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        _say(worker, "go")
    assert [int(worker.communicate(timeout=60)[0]) for worker in workers] == [20] * 4


def test_threads_share_a_ledger():
    ledger = Ledger()
    ledger.set_budget("d", 1.0)
    done = []

    def spend(worker):
        for number in range(50):
            try:
                ledger.debit("d", f"{worker}-{number}", [PureCost(0.01)])
                done.append(1)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=spend, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 100


def _say(worker, line):
    worker.stdin.write(line + "\n")
    worker.stdin.flush()


def _start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
