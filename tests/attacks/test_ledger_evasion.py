"""Ways around the ledger that 0.1.0 left open, by accident or on purpose; none gives a fresh budget."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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
from atoll.privacy.ledger import Budget, Ledger, Release
from atoll.privacy.mechanisms import GaussianCost, PureCost
from atoll.protocols import booking, protocol_of, resolve
from atoll.protocols.own import Own
from atoll.protocols.pca import private_release
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord

ONE = [GaussianCost(gdp_mu(1.0, 1e-5))]


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
