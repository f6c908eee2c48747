"""Attacks on one product of a round in which others travel beside it.

Whatever is wrong with one of them, no decryption share of any leaves: providers compare all of a round first.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.attacks import test_variants_sfpca as variants
from tests.attacks.test_sfpca_coordinator import honest, run, tables
from tests.support.examples import EXAMPLES
from tests.support.lying import lying
from tests.support.sfpca_runs import direct, encrypted, strict

from atoll.errors import MessageError
from atoll.protocols import protocol_of
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import roles
from atoll.secret_matrices.checks import Account

late = variants.late
"""The form that compared before openings alone."""


class DroppedAtOnce(variants.Dropped):
    """Of the covariance too. A rotation, of one part, travels beside it and is as it should be."""

    honest_in = ()


def test_a_part_left_out_was_found_out_after_two_decryption_shares(
    late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, tap = run(honest, monkeypatch, DroppedAtOnce)
    assert isinstance(error, MessageError)
    assert tap.count(mm.MaskedShare) >= 2


def test_a_part_left_out_keeps_back_the_shares_of_what_travels_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, tap = run(honest, monkeypatch, DroppedAtOnce)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.ProductPart) > 0
    assert tap.count(mm.MaskedShare) == tap.count(mm.OpenedShare) == 0


def test_a_wrong_sum_among_four_of_five_ends_the_run_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round later: what the first was compared for has left, and nothing of the second."""
    left, tap = variants.other_rotation(monkeypatch, 4)
    assert {name: len(steps) for name, steps in left.items()} == {"covariance of 5": 1, "rotation of 2": 2}
    assert tap.count(mm.OpenedShare) == 1


@pytest.mark.parametrize("policy", [None, "fast", "opened-sketch"])
def test_nothing_that_came_is_uncompared_when_a_share_leaves(
    policy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no round of a recipe, however many products travel in it beside each other."""
    rounds: set[int] = set()
    left: set[type] = set()

    class Strict(roles.Provider):
        async def _one_round(self, jobs: Any) -> Any:
            rounds.add(len(jobs))
            return await super()._one_round(jobs)

        async def _send(self, message: Any) -> None:
            if isinstance(message, mm.MaskedShare | mm.OpenedShare):
                assert self.checks is not None
                # What is open already is for the next round: digests, and no sum.
                fresh = [Account(account.seen) for account in self.checks.accounts.values()]
                assert [*self.checks.accounts.values()] == fresh
                assert self._settled == []
                assert not self._news
                left.add(type(message))
            await super()._send(message)

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        if policy is None:
            return await direct(machine, inputs, 1, receivers)
        return await strict(machine, inputs, 1, receivers, POLICIES[policy])

    monkeypatch.setattr(roles, "Provider", Strict)
    encrypted(program, tables(5))
    assert left == {mm.MaskedShare, mm.OpenedShare}
    assert max(rounds) >= 3


def everything_compared(machine: roles.Provider) -> bool:
    """No account of anything that came since, but for digests that are open already and wait for the next."""
    assert machine.checks is not None
    fresh = [Account(account.seen) for account in machine.checks.accounts.values()]
    return [*machine.checks.accounts.values()] == fresh and not machine._settled and not machine._news


SHARES = {
    "sfpca-scores": {mm.MaskedShare, mm.OpenedShare, mm.ReleasedShare},
    "sfpca-columns-scores": {mm.MaskedShare, mm.OpenedShare, mm.ReleasedShare},
    "sfpca-threshold-encrypted": {mm.MaskedShare, mm.OpenedShare, mm.DealtShare},
    "sfpca-later-both": {mm.MaskedShare, mm.ReleasedShare},
    "least-squares-encrypted": {mm.MaskedShare, mm.OpenedShare, mm.ReleasedShare},
    "least-squares-encrypted-rows": {mm.MaskedShare, mm.OpenedShare, mm.ReleasedShare},
}


@pytest.mark.parametrize("name", SHARES)
def test_nothing_that_came_is_uncompared_when_an_output_leaves(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole studies: what is released, dealt or opened is a share as well, and cannot be taken back."""
    example, machines, left = EXAMPLES[name](), dict[str, roles.Provider](), set[type]()

    class Known(roles.Provider):
        async def set_up(self, *args: Any, **options: Any) -> None:
            await super().set_up(*args, **options)
            machines[str(self.net.me)] = self

    def look(sender: Any, receiver: Any, message: Any) -> Any:
        if type(message) in SHARES[name] and str(sender) in machines:
            machine = machines[str(sender)]
            assert everything_compared(machine)
            # What was made of a masked total, too, where nothing comes after that could be withheld.
            assert isinstance(message, mm.MaskedShare | mm.OpenedShare) or not machine._pending
            left.add(type(message))
        return message

    monkeypatch.setattr(roles, "Provider", Known)
    lying(monkeypatch, look)
    LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
    assert left == SHARES[name]
