"""Ways around the ledger that 0.1.0 left open, by accident or on purpose; none gives a fresh budget."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import (
    Example,
    dpdpca,
    meta,
    pppca,
    private_pppca,
    private_sfpca,
    privatelocal,
    sfpca,
)
from tests.support.taps import Tap

import atoll
from atoll.errors import BudgetExceeded, ParameterError, PrivacyError
from atoll.privacy.accountant import Spent
from atoll.privacy.calibration import gdp_epsilon, gdp_mu, zcdp_epsilon
from atoll.privacy.identities import canonical
from atoll.privacy.ledger import Budget, Ledger, Release
from atoll.privacy.mechanisms import GaussianCost, PureCost
from atoll.protocols import booking, protocol_of, resolve
from atoll.protocols.own import Own
from atoll.protocols.pca import private_release
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord

ONE = [GaussianCost(gdp_mu(1.0, 1e-5))]


# ---- another name for the same people ----


def accepted_before(identity: str) -> bool:
    """0.1.0 compared identities as they were typed, and refused a blank at their ends only."""
    return bool(identity) and identity == identity.strip()


@pytest.mark.parametrize(
    ("disguise", "unicode_name"),
    [
        ("Co\u200bhort", "ZERO WIDTH SPACE (U+200B)"),
        ("Cohort\u200d", "ZERO WIDTH JOINER"),
        ("\ufeffCohort", "ZERO WIDTH NO-BREAK SPACE"),
        ("Co\u00adhort", "SOFT HYPHEN"),
        ("\u202eCohort", "RIGHT-TO-LEFT OVERRIDE"),
        ("Cohort\u2066", "LEFT-TO-RIGHT ISOLATE"),
        ("Coh\u034fort", "COMBINING GRAPHEME JOINER"),
        ("Cohort\ufe0f", "VARIATION SELECTOR-16"),
        ("Co\u3164hort", "HANGUL FILLER"),
        ("Co\thort", "control character (U+0009)"),
        ("C\u043ehort", "CYRILLIC SMALL LETTER O"),
        ("\u0421ohort", "CYRILLIC CAPITAL LETTER ES"),
        ("C\u03bfhort", "GREEK SMALL LETTER OMICRON"),
        ("Coh\u0585rt", "ARMENIAN SMALL LETTER OH"),
        ("\u1d04ohort", "LATIN LETTER SMALL CAPITAL C"),
        ("C\u0251hort", "LATIN SMALL LETTER ALPHA"),
        ("Cohort\u2010a", "HYPHEN (U+2010)"),
        ("Cohort\u0329", "COMBINING VERTICAL LINE BELOW"),
        ("\u0441\u043e\u0441\u043e", "CYRILLIC SMALL LETTER ES"),  # all of it Cyrillic, and reads "coco"
        ("\u0441\u043e\u0451", "CYRILLIC SMALL LETTER ES"),  # with an accent, and reads "coë"
        ("\u03bf\u03af\u03bf", "GREEK SMALL LETTER OMICRON"),  # "oío"
        ("\u0570\u0585\u057d\u0578", "ARMENIAN SMALL LETTER HO"),  # "houn"
        ("\ua4da\ua4f3\ua4e7\ua4f3\ua4e3\ua4d4", "LISU LETTER CA"),  # "COHORT"
        ("\u13a0\u13a0", "CHEROKEE LETTER A"),  # "DD"
        ("Cohort \u01c0", "LATIN LETTER DENTAL CLICK"),  # "Cohort l"
        ("Co\u0138", "LATIN SMALL LETTER KRA"),
        ("\u0237", "LATIN SMALL LETTER DOTLESS J"),
    ],
)
def test_what_only_looks_like_the_name_was_a_new_account_and_is_refused(
    disguise: str, unicode_name: str
) -> None:
    assert accepted_before(disguise)
    with Ledger() as ledger:
        ledger.set_budget("Cohort", 1.0, 1e-5)
        for attempt in (
            lambda: ledger.set_budget(disguise, 1.0, 1e-5),
            lambda: ledger.debit(disguise, "r", ONE),
            lambda: ledger.account(disguise),
            lambda: ledger.reserve(Release.exactly(disguise, "r")),
        ):
            with pytest.raises(ParameterError) as refused:
                attempt()
            assert unicode_name in refused.value.message
        assert [account.identity for account in ledger.show()] == ["Cohort"]


@pytest.mark.parametrize(
    "same",
    [
        "cohort 7",
        "COHORT 7",
        "Cohort  7",
        "Cohort\u00a07",
        "Ｃｏｈｏｒｔ 7",
        "𝐂ohort 7",
        "Cohort ７",
        "Cohort ⑦",
    ],
)
def test_another_way_to_write_the_name_is_the_same_account(same: str) -> None:
    assert accepted_before(same)
    assert same != "Cohort 7"
    with Ledger() as ledger:
        ledger.set_budget("Cohort 7", 1.0, 1e-5)
        ledger.debit(same, "r", ONE)
        with pytest.raises(BudgetExceeded):
            ledger.debit("Cohort 7", "r2", ONE)
        assert [account.identity for account in ledger.show()] == ["Cohort 7"]


@pytest.mark.parametrize(
    "name",
    [
        "Straße-Süd",
        "Ελληνικός",
        "рак лёгких",
        "Кардиология 2024",
        "東京コホート",
        "환자군",
        "दिल्ली",
        "Bệnh nhân ung thư",
        "Łódź",
        "Iași",
        "Երևան",
        "ירושלים",
    ],
)
def test_names_of_other_scripts_are_fine(name: str) -> None:
    assert canonical(name) == canonical(name.upper())
    assert canonical("strasse-süd") == canonical("Straße-Süd")


def test_capital_eth_and_d_with_a_stroke_are_one_letter() -> None:
    assert canonical("\u00d0ATA") == canonical("\u0110ATA") == canonical("\u0111ata")


@given(st.text(max_size=12))
def test_a_key_is_its_own_key(text: str) -> None:
    """However it is typed again, what was accepted once is the same account."""
    try:
        key = canonical(text)
    except ParameterError:
        return
    assert canonical(key) == key


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


# ---- no budget, exact releases ----


def with_ledger(example: Example, ledger: Ledger, epsilon: float | None = 9.0) -> Example:
    for name, island in example.islands.items():
        island.identity = name
        if epsilon is not None:
            ledger.set_budget(name, epsilon, 1e-5)
    return example.booked(ledger)


def run(example: Example, tap: Tap | None = None) -> None:
    LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own, observer=tap)


@pytest.mark.parametrize("build", [dpdpca, private_pppca, private_sfpca, privatelocal])
def test_without_a_budget_nothing_leaves(build: Callable[[], Example]) -> None:
    with Ledger() as ledger:
        example, tap = with_ledger(build(), ledger, None), Tap()
        with pytest.raises(PrivacyError, match="has no budget"):
            run(example, tap)
        first = next(iter(example.islands))
        assert [sent for a, sent in tap.outboxes.items() if a.party == first] == []
        assert ledger.debits() == []


@pytest.mark.parametrize("build", [pppca, sfpca, meta])
def test_an_exact_study_is_booked_before_it_releases_or_refused(build: Callable[[], Example]) -> None:
    with Ledger() as ledger:
        example = with_ledger(build(), ledger)
        run(example)
        for name in example.islands:
            account = ledger.account(name)
            assert (account.exact, account.releases, account.reserved) == (1, 0, 0)
            assert "1 exact release was made of it" in account.in_words(account.delta)
        (debit,) = ledger.debits(next(iter(example.islands)))
        assert debit.fingerprint
        assert debit.study == resolve(example.study).digest
        refusing = next(iter(example.islands))
        ledger.set_budget(refusing, 9.0, 1e-5, exact=False)
        tap = Tap()
        with pytest.raises(PrivacyError, match=rf"{refusing}: .* allows no exact release"):
            run(example, tap)
        assert [sent for a, sent in tap.outboxes.items() if a.party == refusing] == []
        assert all(ledger.account(name).exact == 1 for name in example.islands)


# ---- one way to count ----


def smaller_of_two(spent: Spent, delta: float) -> float:
    """0.1.0: a mixture costs the smaller of two bounds, whichever that is after the fact."""
    rho = spent.mu**2 / 2 + sum(epsilon**2 / 2 for epsilon in spent.pure)
    return min(sum(spent.pure) + gdp_epsilon(spent.mu, delta), zcdp_epsilon(rho, delta))


def test_a_budget_is_not_overdrawn_by_choosing_the_bound_afterwards() -> None:
    """From one beginning, one release by the first bound or many by the second: each may fail by delta, and
    which one is chosen can depend on what the beginning showed."""
    beginning, delta, budget = [GaussianCost(0.5)], 1e-5, 3.2
    one_large, many_small = [PureCost(1.0)], [PureCost(0.05)] * 60
    assert smaller_of_two(Spent.of([*beginning, *one_large]), delta) < budget
    assert smaller_of_two(Spent.of([*beginning, *many_small]), delta) < budget
    assert sum(cost.epsilon for cost in many_small) + gdp_epsilon(0.5, delta) > budget  # the first says no
    assert zcdp_epsilon(0.5**2 / 2 + 0.5, delta) > budget  # and here the second does
    with Ledger() as ledger:
        ledger.set_budget("d", budget, delta)
        ledger.debit("d", "beginning", beginning)
        assert ledger.account("d").method == "gdp"
        with pytest.raises(BudgetExceeded):
            ledger.debit("d", "large", one_large)
        ledger.debit("d", "small", many_small)  # 60 x 0.05 are mu 0.485: within by the one bound there is
        assert ledger.account("d").epsilon == pytest.approx(2.895, abs=0.001)


def test_the_method_is_fixed_at_the_first_debit_and_no_study_changes_it() -> None:
    with Ledger() as ledger:
        ledger.set_budget("d", 1.0)
        assert ledger.account("d").method is None
        ledger.debit("d", "a", [PureCost(0.5)])
        assert ledger.account("d").method == "pure"
        with pytest.raises(BudgetExceeded, match="allows pure releases only"):
            ledger.debit("d", "b", [GaussianCost(0.01)])
        assert ledger.account("d").method == "pure"
        # Its owner may change it once, in the direction in which nothing is forgotten.
        ledger.set_budget("d", 3.0, 1e-5)
        account = ledger.account("d")
        assert account.method == "gdp"
        assert account.epsilon > 2.0  # 0.5 pure counts as the Gaussian release that is no more private
        with pytest.raises(ParameterError, match="counted with a delta"):
            ledger.set_budget("d", 3.0)
        assert ledger.budget("d") == Budget(3.0, 1e-5)


def test_an_exact_release_fixes_no_method() -> None:
    with Ledger() as ledger:
        ledger.set_budget("d", 1.0, 1e-5)
        exact = Release.exactly("d", "a")
        ledger.settle(exact, "exact")
        assert ledger.account("d").method is None
        ledger.set_budget("d", 1.0)  # nothing was counted as Gaussian yet
        assert ledger.account("d").in_words(0.0) == (
            "nothing private was spent on it; 1 exact release was made of it, and what they show no epsilon "
            "bounds"
        )
        ledger.settle(Release.exactly("d", "b"), "exact")
        assert "; 2 exact releases were made of it" in ledger.account("d").in_words(0.0)


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


# ---- reserved, then settled ----


def test_an_abort_before_a_stage_costs_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = private_release.finish

    def finish(plan: Any, stage: str, *rest: Any) -> Any:
        if stage == "second mean":
            raise RuntimeError("the data user fails")
        return honest(plan, stage, *rest)

    monkeypatch.setattr(private_release, "finish", finish)
    with Ledger() as ledger:
        example = with_ledger(dpdpca(), ledger)
        with pytest.raises(atoll.errors.RoleFailed):
            run(example)
        for name in example.islands:
            assert {(d.stage, d.state) for d in ledger.debits(name)} == {
                ("first mean", "settled"),
                ("second mean", "settled"),
            }
            account = ledger.account(name)
            # mu^2 of two stages of a tenth each; 0.1.0 had debited all of it
            assert account.epsilon == pytest.approx(gdp_epsilon(gdp_mu(5.0, 1e-5) * 0.2**0.5, 1e-5))
            assert account.reserved == 0


def test_two_runs_cannot_count_on_the_same_remainder() -> None:
    with Ledger() as ledger:
        ledger.set_budget("d", 1.0, 1e-5)
        first, second = (Release("d", name, {"only": Spent.of(ONE)}) for name in ("first", "second"))
        ledger.reserve(first)
        assert isinstance(ledger.refusal(second), BudgetExceeded)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(second)
        ledger.give_back(first)
        ledger.reserve(second)
        with pytest.raises(BudgetExceeded):  # what was given back is not settled any more
            ledger.settle(first, "only", "rows")
        ledger.settle(second, "only", "rows")
        ledger.give_back(second)
        assert ledger.account("d").releases == 1


class PowerCut(MemoryRecord):
    """A record whose draws reach the disk when it is synced, and are lost otherwise."""

    def __init__(self, disk: dict[str, bytes]) -> None:
        super().__init__(disk)
        self.disk = disk

    def sync(self) -> None:
        self.disk.update(self.drawn)


@pytest.mark.parametrize("synced", [True, False])
def test_a_power_cut_does_not_charge_twice(synced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the release id on disk before the debit, the resumed role is another release (0.1.0)."""
    if not synced:
        monkeypatch.setattr(PowerCut, "sync", lambda _: None)
    example, disk = dpdpca(), dict[str, bytes]()
    island = example.islands["island-0"]
    with Ledger() as ledger:
        ledger.set_budget("island-0", 9.0, 1e-5)
        for _ in range(2):
            own = Own(island, ledger)
            booked = booking.Booking(example.study, own, PowerCut(disk), {"stage": GaussianCost(0.1)})
            booked.__enter__()
            booked.settle("stage")  # and here the power goes
        assert ledger.account("island-0").releases == (1 if synced else 2)


KILLED = """
import os, signal, sys
from pathlib import Path
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.shares import Shares
from tests.support.examples import dpdpca

def run(at, book, log):
    left = at
    def step():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def stepped(method):
        def wrapped(self, *args, **kwargs):
            step()
            found = method(self, *args, **kwargs)
            step()
            return found
        return wrapped

    for name in ("reserve", "settle", "give_back"):
        setattr(Ledger, name, stepped(getattr(Ledger, name)))
    honest = Shares.contribute

    async def contribute(self, stage, values):
        with open(log, "a") as released:  # from here on it may have left
            released.write(f"{self.net.me.party}/{stage}\\n")
        step()
        await honest(self, stage, values)

    Shares.contribute = contribute
    example, ledger = dpdpca(n_islands=2), Ledger(book)
    for name, island in example.islands.items():
        island.identity = name
    LocalEngine().run(protocol_of("dpdpca"), example.study, example.booked(ledger).own)

for line in sys.stdin:
    at, book, log = line.split()
    child = os.fork()
    if child == 0:
        try:
            run(int(at), book, log)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status), flush=True)
"""


def test_a_run_killed_between_any_two_steps_released_nothing_that_is_not_settled(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    nursery = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    killed, cut_short = 0, 0
    for at in range(1, 40):
        book, log = tmp_path / f"{at}.db", tmp_path / f"{at}.log"
        with Ledger.create(book) as ledger:
            for name in ("island-0", "island-1"):
                ledger.set_budget(name, 9.0, 1e-5)
        nursery.stdin.write(f"{at} {book} {log}\n")
        nursery.stdin.flush()
        if int(nursery.stdout.readline()) != signal.SIGKILL:
            break
        killed += 1
        released = set(log.read_text().split("\n")) - {""} if log.exists() else set()
        with Ledger(book) as ledger:
            settled = {f"{d.identity}/{d.stage}" for d in ledger.debits() if d.state == "settled"}
            for name in ("island-0", "island-1"):
                mine = {place for place in settled - released if place.startswith(name)}
                assert len(mine) <= 1  # what a kill may cost at most
                cut_short += len(mine)
                ledger.give_back_all(name)
            assert {d.state for d in ledger.debits()} <= {"settled"}
        assert released <= settled
    nursery.communicate(timeout=30)
    assert killed >= 22  # 2 islands: 2 x reserve, 3 x 2 x settle, 3 x release, give-back
    assert cut_short > 0


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
