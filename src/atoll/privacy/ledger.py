"""The privacy ledger of a site: what was spent on each of its data sets, and what may still be.

A data set is whatever its owner declares to be one (``identities`` says how names are compared). The
fingerprint of the rows is written beside each debit, not used as the key: a changed row, column or file does
not give a fresh budget. It is an HMAC under a secret of this ledger: equal rows have equal fingerprints here,
and who reads an export, even one who knows all rows but one, cannot try out the last.

It fails closed. A ledger is made on purpose and never by opening one; a private release from a data set
without a budget is refused. A release is *reserved* whole before anything leaves, so that two runs cannot
both count on the same remainder, and *settled* stage by stage, each before its noisy value leaves; what is
not settled when a run ends is given back. Every step commits before it returns, in one immediate
transaction: whatever happens to the process, nothing was released that is not settled here. A release has
an id, and is charged once however often its steps are repeated.

Budgets are (epsilon, delta) per data set; ``accountant`` says how releases add up. The method is fixed at the
first debit: ``gdp`` if the budget has a delta, else ``pure``. A study never changes it. An owner may give a
pure account a delta later: its releases then count as Gaussian ones, and a release that was counted so never
counts as pure again. (Sound at one delta: until then no release had any.) Releases for different neighbours
are brought to replace-one, where an add/remove release counts for two rows.

An exact release, of a study without an epsilon, has no cost that could be added. It is booked as what it is,
and refused where the owner's policy for the data set says so.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import unicodedata
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from atoll.errors import BudgetExceeded, ParameterError, PrivacyError
from atoll.privacy import ledger_file
from atoll.privacy.accountant import Method, Spent, method_at
from atoll.privacy.accounts import (
    COLUMNS,
    USUAL_DELTA,
    Account,
    Budget,
    Debit,
    Release,
    compose,
    count_releases,
    read_debit,
    same_release,
    stated_by,
)
from atoll.privacy.calibration import check_delta, check_epsilon
from atoll.privacy.history import History
from atoll.privacy.identities import canonical
from atoll.privacy.ledger_file import command, site_ledger
from atoll.privacy.mechanisms import Cost
from atoll.privacy.sensitivity import Neighbours, check_neighbours

__all__ = ["Account", "Budget", "Debit", "Ledger", "Release", "site_ledger"]

# Rounding of sums of squares must not refuse a budget that is spent exactly.
_TOLERANCE = 1e-9
# Spending without a budget, of studies that say no delta, is shown at this one.
_REPORT_DELTA = 1e-6


def iso_time(seconds: float) -> str:
    """A time as ISO 8601 has it, in UTC and to the second: 2026-11-18T00:30:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Ledger:
    """A ledger file that is there, or one in memory when no path is given."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.RLock()
        if self.path is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            ledger_file.write_schema(self._connection)
        else:
            self._connection = ledger_file.open_file(self.path)
        self.history = History(self._connection, self._transaction)
        """Which exact studies were made of each data set."""
        # A ledger that its user forgets is closed when it goes, not left to the interpreter to complain of.
        weakref.finalize(self, self._connection.close)

    @classmethod
    def create(cls, path: str | os.PathLike[str] | None = None) -> Ledger:
        """Make a new ledger, at the site's place unless another is named, and open it."""
        place = site_ledger() if path is None else Path(path)
        ledger_file.create(place)
        return cls(place)

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

    # --- budgets and policies ----------------------------------------------------------------------------

    def set_budget(
        self, identity: str, epsilon: float, delta: float = 0.0, *, exact: bool | None = None
    ) -> None:
        """From now on; what was spent before stays spent. ``exact``: whether exact releases are allowed."""
        key = canonical(identity)
        check_epsilon(epsilon)
        if delta != 0.0:
            check_delta(delta)
        with self._transaction():
            self._know(identity)
            method = self._method(key)
            if method == "gdp" and delta == 0.0:
                raise ParameterError(
                    f"data set {identity!r}: its releases are counted with a delta, and a budget with "
                    "delta 0 would allow none of them",
                    hint=f"--delta {USUAL_DELTA}, for example",
                )
            run = self._connection.execute
            run("UPDATE data_set SET epsilon = ?, delta = ? WHERE identity = ?", (epsilon, delta, key))
            if method is not None:
                run("UPDATE data_set SET method = ? WHERE identity = ?", (method_at(delta), key))
            if exact is not None:
                policy = "booked" if exact else "refused"
                run("UPDATE data_set SET exact = ? WHERE identity = ?", (policy, key))

    def budget(self, identity: str) -> Budget | None:
        """None while the owner has set none: private releases are then refused."""
        row = self._data_set(canonical(identity))
        return None if row is None or row[1] is None else Budget(row[1], row[2])

    def _know(self, identity: str) -> None:
        """A data set's name as its owner first wrote it."""
        self._connection.execute(
            "INSERT OR IGNORE INTO data_set (identity, name) VALUES (?, ?)",
            (canonical(identity), unicodedata.normalize("NFKC", identity)),
        )

    def _data_set(self, key: str) -> tuple[str, float | None, float, Method | None, str] | None:
        with self._lock:
            row: tuple[str, float | None, float, Method | None, str] | None = self._connection.execute(
                "SELECT name, epsilon, delta, method, exact FROM data_set WHERE identity = ?", (key,)
            ).fetchone()
        return row

    def _method(self, key: str) -> Method | None:
        row = self._data_set(key)
        return None if row is None else row[3]

    # --- spending ----------------------------------------------------------------------------------------

    def reserve(self, release: Release) -> None:
        """Set a whole release aside before anything leaves, or refuse it; repeated, it changes nothing."""
        with self._transaction():
            self._reserve(release)

    def settle(self, release: Release, stage: str, fingerprint: str = "") -> None:
        """Write a stage down for good, before its value leaves. ``fingerprint``: a digest of the rows.

        A stage that was given back meanwhile is reserved again first, or refused.
        """
        with self._transaction():
            self._reserve(replace(release, stages={stage: release.stages[stage]}))
            self._settle(release, stage, fingerprint)

    def give_back(self, release: Release) -> None:
        """What is reserved for the release and not settled: it was not made, so it costs nothing."""
        with self._transaction():
            self._give_back("release_id", release.release_id, canonical(release.identity))

    def give_back_all(self, identity: str) -> int:
        """The same for every release from a data set whose run was killed; how many stages. A run that is
        still alive has to reserve again."""
        with self._transaction():
            return self._give_back("identity", canonical(identity), canonical(identity))

    def _give_back(self, column: str, value: str, key: str) -> int:
        run = self._connection.execute
        stages = run(f"DELETE FROM debit WHERE {column} = ? AND state = 'reserved'", (value,)).rowcount
        run(  # what was never debited has no method yet
            "UPDATE data_set SET method = NULL WHERE identity = ? "
            "AND NOT EXISTS (SELECT 1 FROM debit WHERE identity = ? AND kind = 'private')",
            (key, key),
        )
        return stages

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
        """Reserve and settle a release of one stage at once. Returns the account after it."""
        release = Release(identity, release_id, {"": Spent.of(costs)}, neighbours, study)
        with self._transaction():
            self._reserve(release)
            self._settle(release, "", fingerprint)
            return self.account(identity)

    def refusal(self, release: Release) -> PrivacyError | None:
        """Why ``reserve`` would refuse the release now; nothing is written."""
        try:
            self._refuse(release, self._planned(release))
        except PrivacyError as error:
            return error
        return None

    def _planned(self, release: Release) -> list[Debit]:
        check_neighbours(release.neighbours)
        return [
            Debit(
                release.release_id,
                canonical(release.identity),
                "",
                release.study,
                release.neighbours,
                spent,
                time.time(),
                stage,
                "exact" if release.exact else "private",
                "reserved",
                release.stated,
            )
            for stage, spent in release.stages.items()
        ]

    def _reserve(self, release: Release) -> None:
        new = []
        for wanted in self._planned(release):
            earlier = self._find(wanted.release_id, wanted.stage)
            if earlier is None:
                new.append(wanted)
            elif not same_release(earlier, wanted):
                raise PrivacyError(
                    f"release {wanted.release_id} was debited before, for another data set or cost",
                    hint="a new release needs a new id",
                )
        if not new:
            return
        self._refuse(release, new)
        self._know(release.identity)
        self._fix_method(release)
        for debit in new:
            self._write(debit)

    def _fix_method(self, release: Release) -> None:
        budget = self.budget(release.identity)
        if budget is not None and not release.exact:
            self._connection.execute(
                "UPDATE data_set SET method = ? WHERE identity = ? AND method IS NULL",
                (method_at(budget.delta), canonical(release.identity)),
            )

    def _settle(self, release: Release, stage: str, fingerprint: str) -> None:
        keyed = ledger_file.under_secret(self._connection, fingerprint)
        for earlier in self._settled(release.release_id):
            if earlier.fingerprint != keyed:
                self._refuse_other_rows(earlier)
        self._connection.execute(
            "UPDATE debit SET state = 'settled', fingerprint = ? WHERE release_id = ? AND stage = ?",
            (keyed, release.release_id, stage),
        )
        if release.exact:
            self.history.settle(canonical(release.identity), release.study)

    def _refuse_other_rows(self, earlier: Debit) -> None:
        """A release may be resumed: as it was, from the rows that its noise was drawn for."""
        cost = self._account(earlier.identity, self._settled(earlier.release_id))
        raise PrivacyError(
            f"data set {cost.identity!r}: its rows are not those that this release was debited for "
            f"({iso_time(earlier.made_at)}, epsilon {cost.epsilon:.4g} at delta {cost.delta:g}); the same "
            "noise on other rows would show what changed",
            hint="bring the table back as it was, or start a new run, which is a new debit",
        )

    def _refuse(self, release: Release, new: Sequence[Debit]) -> None:
        if release.exact:
            self._refuse_exact(release)
        else:
            self._refuse_over_budget(release, new)

    def _refuse_exact(self, release: Release) -> None:
        row = self._data_set(canonical(release.identity))
        if row is not None and row[4] == "refused":
            raise PrivacyError(
                f"data set {release.identity!r}: its owner allows no exact release of it",
                hint="give the study an epsilon, or let the owner allow it: set-budget ... --exact",
            )

    def _refuse_over_budget(self, release: Release, new: Sequence[Debit]) -> None:
        budget = self.budget(release.identity)
        if budget is None:
            example = ("set-budget", release.identity, "--epsilon", "1", "--delta", USUAL_DELTA)
            raise PrivacyError(
                f"data set {release.identity!r} has no budget: nothing private is released of it without one",
                hint=f"let its owner set one: {command(self.path, *example)}",
            )
        debits = self._private(release.identity)
        _, before = compose(debits)
        _, after = compose([*debits, *new])
        if budget.delta == 0.0 and after.mu > 0.0:
            raise self._pure_only(release, new, budget)
        reached = after.epsilon(budget.delta)
        if reached > budget.epsilon * (1.0 + _TOLERANCE):
            raise BudgetExceeded(
                f"data set {release.identity!r}: this release would bring the epsilon spent from "
                f"{before.epsilon(budget.delta):.4g} to {reached:.4g}, "
                f"over its budget of {budget.epsilon:.4g} (at delta {budget.delta:g})",
                hint="ask for a smaller epsilon, or let the data set's owner raise the budget",
            )

    def _pure_only(self, release: Release, new: Sequence[Debit], budget: Budget) -> BudgetExceeded:
        own = any(debit.spent.mu > 0.0 for debit in new)
        which = "this release has a delta" if own else "earlier ones have a delta"
        words = ("set-budget", release.identity, "--epsilon", f"{budget.epsilon:g}", "--delta", USUAL_DELTA)
        return BudgetExceeded(
            f"data set {release.identity!r}: its budget of {budget.epsilon:.4g} is at delta 0, which allows "
            f"pure releases only, and {which}",
            hint=f"let the data set's owner allow a delta: {command(self.path, *words)}",
        )

    def _write(self, debit: Debit) -> None:
        self._connection.execute(
            f"INSERT INTO debit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                debit.release_id,
                debit.identity,
                debit.fingerprint,
                debit.study,
                debit.neighbours,
                debit.spent.mu,
                json.dumps(debit.spent.pure),
                debit.made_at,
                debit.stage,
                debit.kind,
                debit.state,
                *(debit.stated or (None, None)),
            ),
        )

    # --- looking -----------------------------------------------------------------------------------------

    def account(self, identity: str) -> Account:
        return self._account(canonical(identity), self.debits(identity), identity)

    def preview(self, release: Release) -> tuple[Account, Account]:
        """The account before and after a release, without making it: what a review prints."""
        debits = self.debits(release.identity)
        key, name = canonical(release.identity), release.identity
        return (
            self._account(key, debits, name),
            self._account(key, [*debits, *self._planned(release)], name),
        )

    def around(self, study: str) -> list[tuple[Account, Account]]:
        """The accounts of every data set that a study was booked on, before its first debit and after its
        last; ``study``: its digest."""
        found = []
        for identity in dict.fromkeys(debit.identity for debit in self._select("WHERE study = ?", study)):
            debits = self._select("WHERE identity = ?", identity)
            its = [place for place, debit in enumerate(debits) if debit.study == study]
            before, after = debits[: its[0]], debits[: its[-1] + 1]
            found.append((self._account(identity, before), self._account(identity, after)))
        return found

    def _account(self, key: str, debits: Sequence[Debit], name: str | None = None) -> Account:
        row = self._data_set(key)
        known, epsilon, delta, method, exact = row or (name or key, None, 0.0, None, "booked")
        budget = None if epsilon is None else Budget(epsilon, delta)
        private = [debit for debit in debits if debit.kind == "private"]
        neighbours, spent = compose(private)
        without_budget = _REPORT_DELTA if spent.mu > 0 else 0.0
        at = without_budget if budget is None else budget.delta
        return Account(
            known,
            budget,
            neighbours,
            spent,
            spent.epsilon(at),
            at,
            count_releases(private),
            count_releases(debit for debit in debits if debit.kind == "exact"),
            count_releases(debit for debit in debits if debit.state == "reserved"),
            method,
            exact == "booked",
            stated_by(private),
        )

    def show(self) -> list[Account]:
        """Every data set that has a budget or a debit."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT identity FROM data_set WHERE epsilon IS NOT NULL "
                "OR EXISTS (SELECT 1 FROM debit WHERE debit.identity = data_set.identity) ORDER BY identity"
            ).fetchall()
        return [self._account(key, self._select("WHERE identity = ?", key)) for (key,) in rows]

    def debits(self, identity: str | None = None) -> list[Debit]:
        """Stage by stage, in the order in which they were reserved."""
        return self._select() if identity is None else self._select("WHERE identity = ?", canonical(identity))

    def _private(self, identity: str) -> list[Debit]:
        return [debit for debit in self.debits(identity) if debit.kind == "private"]

    def _settled(self, release_id: str) -> list[Debit]:
        return self._select("WHERE state = 'settled' AND release_id = ?", release_id)

    def _find(self, release_id: str, stage: str) -> Debit | None:
        found = self._select("WHERE release_id = ? AND stage = ?", release_id, stage)
        return found[0] if found else None

    def _select(self, where: str = "", *arguments: str) -> list[Debit]:
        with self._lock:
            rows = self._connection.execute(
                f"SELECT {COLUMNS} FROM debit {where} ORDER BY number", arguments
            ).fetchall()
        return [read_debit(row) for row in rows]

    def export(self) -> str:
        """Budgets and debits as JSON, for an auditor."""
        document = {
            "version": ledger_file.VERSION,
            "budgets": [
                {
                    "identity": account.identity,
                    "epsilon": account.budget.epsilon if account.budget else None,
                    "delta": account.budget.delta if account.budget else None,
                    "method": account.method,
                    "exact": "booked" if account.exact_allowed else "refused",
                }
                for account in self.show()
            ],
            "debits": [
                {
                    "release_id": debit.release_id,
                    "stage": debit.stage,
                    "identity": debit.identity,
                    "kind": debit.kind,
                    "state": debit.state,
                    "fingerprint": debit.fingerprint,
                    "study": debit.study,
                    "neighbours": debit.neighbours,
                    "mu": debit.spent.mu,
                    "pure_epsilons": list(debit.spent.pure),
                    "epsilon": debit.stated.epsilon if debit.stated else None,
                    "delta": debit.stated.delta if debit.stated else None,
                    "made_at": iso_time(debit.made_at),
                }
                for debit in self.debits()
            ],
        }
        return json.dumps(document, indent=2)
