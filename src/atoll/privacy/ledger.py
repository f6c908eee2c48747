"""The privacy ledger of one island: what was spent on each of its data sets, and what may still be.

A data set is whatever its owner declares to be one. The fingerprint of the rows is written beside each
debit, not used as the key: a changed row, column or file does not give a fresh budget. It is an HMAC under
a secret of this ledger: equal rows have equal fingerprints here, and who reads an export, even one who
knows all rows but one, cannot try out the last.

``debit`` commits before it returns, so that a release made after it can never be without its debit;
a crash in between costs budget, never privacy. It runs in one immediate transaction: two processes
on one file cannot both see the same remainder. A debit carries a release id: asked again with the
same id, as a resumed role does, it is not charged twice.

Budgets are (epsilon, delta) per data set; spending is composed by the accountant, so two releases of
epsilon 1 cost less than 2. Releases for different neighbours are brought to replace-one, where an
add/remove release counts for two rows.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import shlex
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from atoll.errors import BudgetExceeded, ParameterError, PrivacyError
from atoll.privacy.accountant import Spent, in_words
from atoll.privacy.calibration import check_delta, check_epsilon
from atoll.privacy.mechanisms import Cost
from atoll.privacy.sensitivity import Neighbours, check_neighbours
from atoll.randomness import fresh_seed

_BUSY_SECONDS = 30.0
_RETRY_SECONDS = 0.01
# Rounding of sums of squares must not refuse a budget that is spent exactly.
_TOLERANCE = 1e-9
# Spending without a budget is shown at this delta.
_REPORT_DELTA = 1e-6
# Suggested where an owner allowed none.
_USUAL_DELTA = "1e-5"
_VERSION = 2
_EARLIER_VERSIONS = (0, 1)  # an empty file; fingerprints without a secret

_SCHEMA = """
CREATE TABLE IF NOT EXISTS data_set (
    identity TEXT PRIMARY KEY,
    epsilon  REAL NOT NULL,
    delta    REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS debit (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    release_id  TEXT NOT NULL UNIQUE,
    identity    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    study       TEXT NOT NULL,
    neighbours  TEXT NOT NULL,
    mu          REAL NOT NULL,
    pure        TEXT NOT NULL,
    made_at     REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS debit_of_identity ON debit (identity);
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
"""


@dataclass(frozen=True)
class Budget:
    """How much may be spent on a data set in all; delta 0 means pure releases only."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Debit:
    """One release: its id, what it was made from and for, and what it cost."""

    release_id: str
    identity: str
    fingerprint: str
    study: str
    neighbours: Neighbours
    spent: Spent
    made_at: float = 0.0


@dataclass(frozen=True)
class Account:
    """Where a data set stands. ``epsilon`` is what was spent, at ``delta``: the budget's, if there is one."""

    identity: str
    budget: Budget | None
    neighbours: Neighbours
    spent: Spent
    epsilon: float
    delta: float
    releases: int

    def in_words(self, delta: float) -> str:
        """What was spent, for the person who answers for the data set."""
        epsilon = self.spent.epsilon(delta)
        if epsilon == 0.0:
            return "nothing was spent on it"
        if math.isinf(epsilon):
            return (
                "no epsilon holds at delta 0: a release with a delta is among these, and the budget allows "
                f"pure releases only (set-budget --delta {_USUAL_DELTA} allows both)"
            )
        return in_words(epsilon, delta, self.neighbours)


class Ledger:
    """A ledger file, or one in memory when no path is given."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.RLock()
        if self.path is not None:
            _make_private(self.path)
        self._connection = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # A ledger that its user forgets is closed when it goes, not left to the interpreter to complain of.
        weakref.finalize(self, self._connection.close)
        self._prepare()

    def _prepare(self) -> None:
        run = self._connection.execute
        run(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")
        self._use_write_ahead_log()
        # A debit is on the disk when its transaction ends, not merely in the page cache.
        run("PRAGMA synchronous = FULL")
        if self._read_version() != _VERSION:
            self._create()

    def _use_write_ahead_log(self) -> None:
        """The busy timeout does not cover this change, so processes that meet here take turns by hand."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def _read_version(self) -> int:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version not in (*_EARLIER_VERSIONS, _VERSION):
            raise PrivacyError(
                f"the ledger was written by another version ({version}, this one reads {_VERSION})",
                hint="use the version of Atoll that wrote it",
            )
        return version

    def _create(self) -> None:
        """Tables and secret; fingerprints that an earlier version wrote without one are put under it."""
        with self._transaction():
            if self._read_version() == _VERSION:  # another process was faster
                return
            run = self._connection.execute
            for statement in filter(str.strip, _SCHEMA.split(";")):
                run(statement)
            run("INSERT INTO meta VALUES ('secret', ?)", (fresh_seed(),))
            for number, plain in run("SELECT number, fingerprint FROM debit").fetchall():
                run("UPDATE debit SET fingerprint = ? WHERE number = ?", (self._under_secret(plain), number))
            run(f"PRAGMA user_version = {_VERSION}")

    def _under_secret(self, fingerprint: str) -> str:
        if not fingerprint:
            return ""
        (secret,) = self._connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
        return hmac.digest(secret, fingerprint.encode(), "sha256").hex()

    def __repr__(self) -> str:
        return f"Ledger({'in memory' if self.path is None else str(self.path)!r})"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    # --- budgets -----------------------------------------------------------------------------------------

    def set_budget(self, identity: str, epsilon: float, delta: float = 0.0) -> None:
        """From now on; what was spent before stays spent."""
        _check_identity(identity)
        check_epsilon(epsilon)
        if delta != 0.0:
            check_delta(delta)
        with self._transaction():
            self._connection.execute(
                "INSERT INTO data_set VALUES (?, ?, ?) ON CONFLICT (identity) "
                "DO UPDATE SET epsilon = excluded.epsilon, delta = excluded.delta",
                (identity, epsilon, delta),
            )

    def budget(self, identity: str) -> Budget | None:
        """None while the owner has set none: releases are then recorded without a limit."""
        with self._lock:
            row = self._connection.execute(
                "SELECT epsilon, delta FROM data_set WHERE identity = ?", (identity,)
            ).fetchone()
        return None if row is None else Budget(*row)

    # --- spending ----------------------------------------------------------------------------------------

    def debit(
        self,
        identity: str,
        release_id: str,
        costs: Sequence[Cost],
        *,
        neighbours: Neighbours = "add-remove",
        fingerprint: str = "",
        study: str = "",
    ) -> Account:
        """Write a release down before it is made, or refuse it. Returns the account after it.

        ``fingerprint``: a digest of the rows; what is written is its HMAC.
        """
        _check_identity(identity)
        check_neighbours(neighbours)
        spent = Spent.of(costs)
        with self._transaction():
            keyed = self._under_secret(fingerprint)
            wanted = Debit(release_id, identity, keyed, study, neighbours, spent, time.time())
            earlier = self._find(release_id)
            if earlier is None:
                self._refuse_over_budget(wanted)
                self._write(wanted)
            else:
                self._refuse_another(earlier, wanted)
            return self.account(identity)

    def _refuse_another(self, earlier: Debit, wanted: Debit) -> None:
        """A release may be resumed: as it was, from the rows that its noise was drawn for."""
        if not _same_release(earlier, wanted):
            raise PrivacyError(
                f"release {wanted.release_id} was debited before, for another data set or cost",
                hint="a new release needs a new id",
            )
        if earlier.fingerprint != wanted.fingerprint:
            cost = _account(earlier.identity, self.budget(earlier.identity), [earlier])
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(earlier.made_at))
            raise PrivacyError(
                f"data set {earlier.identity!r}: its rows are not those that this release was debited for "
                f"({when} UTC, epsilon {cost.epsilon:.4g} at delta {cost.delta:g}); the same noise on other "
                "rows would show what changed",
                hint="bring the table back as it was, or start a new run, which is a new debit",
            )

    def check(
        self, identity: str, release_id: str, costs: Sequence[Cost], neighbours: Neighbours = "add-remove"
    ) -> None:
        """Refuse what ``debit`` would refuse now, and write nothing."""
        _check_identity(identity)
        check_neighbours(neighbours)
        with self._transaction():
            if self._find(release_id) is None:
                self._refuse_over_budget(Debit(release_id, identity, "", "", neighbours, Spent.of(costs)))

    def _refuse_over_budget(self, wanted: Debit) -> None:
        budget = self.budget(wanted.identity)
        if budget is None:
            return
        debits = self.debits(wanted.identity)
        _, before = _compose(debits)
        _, after = _compose([*debits, wanted])
        if budget.delta == 0.0 and after.mu > 0.0:
            raise self._pure_only(wanted, budget)
        reached = after.epsilon(budget.delta)
        if reached > budget.epsilon * (1.0 + _TOLERANCE):
            raise BudgetExceeded(
                f"data set {wanted.identity!r}: this release would bring the epsilon spent from "
                f"{before.epsilon(budget.delta):.4g} to {reached:.4g}, "
                f"over its budget of {budget.epsilon:.4g} (at delta {budget.delta:g})",
                hint="ask for a smaller epsilon, or let the data set's owner raise the budget",
            )

    def _pure_only(self, wanted: Debit, budget: Budget) -> BudgetExceeded:
        which = "this release has a delta" if wanted.spent.mu > 0.0 else "earlier ones have a delta"
        words = ["atoll", "ledger", "set-budget", str(self.path or "LEDGER"), wanted.identity]
        words += ["--epsilon", f"{budget.epsilon:g}", "--delta", _USUAL_DELTA]
        return BudgetExceeded(
            f"data set {wanted.identity!r}: its budget of {budget.epsilon:.4g} is at delta 0, which allows "
            f"pure releases only, and {which}",
            hint=f"let the data set's owner allow a delta: {shlex.join(words)}",
        )

    def _write(self, debit: Debit) -> None:
        self._connection.execute(
            "INSERT INTO debit (release_id, identity, fingerprint, study, neighbours, mu, pure, made_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                debit.release_id,
                debit.identity,
                debit.fingerprint,
                debit.study,
                debit.neighbours,
                debit.spent.mu,
                json.dumps(debit.spent.pure),
                debit.made_at,
            ),
        )

    # --- looking -----------------------------------------------------------------------------------------

    def account(self, identity: str) -> Account:
        budget = self.budget(identity)
        return _account(identity, budget, self.debits(identity))

    def preview(
        self, identity: str, costs: Sequence[Cost], neighbours: Neighbours = "add-remove"
    ) -> tuple[Account, Account]:
        """The account before and after a release, without making it: what a review prints."""
        before = self.account(identity)
        planned = Debit("", identity, "", "", neighbours, Spent.of(costs))
        return before, _account(identity, before.budget, [*self.debits(identity), planned])

    def show(self) -> list[Account]:
        """Every data set that has a budget or a debit."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT identity FROM data_set UNION SELECT identity FROM debit ORDER BY identity"
            ).fetchall()
        return [self.account(identity) for (identity,) in rows]

    def debits(self, identity: str | None = None) -> list[Debit]:
        """In the order in which they were made."""
        where, arguments = ("", ()) if identity is None else ("WHERE identity = ?", (identity,))
        with self._lock:
            rows = self._connection.execute(f"{_SELECT_DEBIT} {where} ORDER BY number", arguments).fetchall()
        return [_read_debit(row) for row in rows]

    def _find(self, release_id: str) -> Debit | None:
        row = self._connection.execute(f"{_SELECT_DEBIT} WHERE release_id = ?", (release_id,)).fetchone()
        return None if row is None else _read_debit(row)

    def export(self) -> str:
        """Budgets and debits as JSON, for an auditor."""
        with self._lock:
            budgets = self._connection.execute("SELECT * FROM data_set ORDER BY identity").fetchall()
        document = {
            "version": _VERSION,
            "budgets": [{"identity": i, "epsilon": e, "delta": d} for i, e, d in budgets],
            "debits": [
                {
                    "release_id": debit.release_id,
                    "identity": debit.identity,
                    "fingerprint": debit.fingerprint,
                    "study": debit.study,
                    "neighbours": debit.neighbours,
                    "mu": debit.spent.mu,
                    "pure_epsilons": list(debit.spent.pure),
                    "made_at": debit.made_at,
                }
                for debit in self.debits()
            ],
        }
        return json.dumps(document, indent=2)


_SELECT_DEBIT = "SELECT release_id, identity, fingerprint, study, neighbours, mu, pure, made_at FROM debit"

_Row = tuple[str, str, str, str, Neighbours, float, str, float]


def _read_debit(row: _Row) -> Debit:
    release_id, identity, fingerprint, study, neighbours, mu, pure, made_at = row
    spent = Spent(mu, tuple(json.loads(pure)))
    return Debit(release_id, identity, fingerprint, study, neighbours, spent, made_at)


def _compose(debits: Sequence[Debit]) -> tuple[Neighbours, Spent]:
    mixed = len({debit.neighbours for debit in debits}) > 1
    total = Spent.total(
        debit.spent.for_pairs() if mixed and debit.neighbours == "add-remove" else debit.spent
        for debit in debits
    )
    if mixed:
        return "replace", total
    return (debits[0].neighbours if debits else "add-remove"), total


def _account(identity: str, budget: Budget | None, debits: Sequence[Debit]) -> Account:
    neighbours, spent = _compose(debits)
    without_budget = _REPORT_DELTA if spent.mu > 0 else 0.0
    delta = without_budget if budget is None else budget.delta
    return Account(identity, budget, neighbours, spent, spent.epsilon(delta), delta, len(debits))


def _same_release(one: Debit, other: Debit) -> bool:
    return (one.identity, one.study, one.neighbours, one.spent) == (
        other.identity,
        other.study,
        other.neighbours,
        other.spent,
    )


def _check_identity(identity: str) -> None:
    if not identity or identity != identity.strip():  # a stray blank must not give a fresh budget
        raise ParameterError(
            "a private release needs the identity of the data set it is made from",
            hint="name the data set as its owner knows it; a new file of the same people is no new data set",
        )


def _make_private(path: Path) -> None:
    """Nobody but the owner reads or writes the ledger; its side files inherit the mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise ParameterError(f"cannot open the ledger {path}: {error.strerror}") from error
    path.chmod(0o600)
