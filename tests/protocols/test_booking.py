"""In which ledger a release is booked, and when."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.support.examples import (
    Example,
    description,
    dpdpca,
    pppca,
    private_pppca,
    private_sfpca,
    privatelocal,
    sfpca,
    synthesis,
)

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import PrivacyError
from atoll.estimators.privacy_options import accounts, booked
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
from atoll.protocols import protocol_of
from atoll.protocols.booking import fingerprint, refuse_few_colluders, refuse_ledger
from atoll.protocols.own import Own, owned
from atoll.protocols.pca.privatelocal import Subspace
from atoll.protocols.pca.released import Model
from atoll.runtime.engine import Observer
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.messages import EncryptedShare
from atoll.secure_sums.shares import ShareSum
from atoll.study.address import Address


def test_an_islands_own_ledger_comes_before_the_fits() -> None:
    """Whoever fits must not be able to book an owner's release somewhere else."""
    tables = as_islands({"north": np.ones((2, 2)), "south": np.ones((2, 2))})
    own, named = Ledger(), Ledger()
    own.set_budget("north", 1.0)
    with booked(tables, named, named=True, brought={"north": Own(ledger=own)}) as brought:
        assert brought["north"].ledger is own
        assert brought["south"].ledger is named
        own.debit("north", "r1", [PureCost(0.25)])
        spent = accounts(private_pppca().study, brought)
        assert spent["north"].epsilon == 0.25
        assert spent["south"].epsilon == 0.0
    assert named.debits() == []


def test_without_a_ledger_nothing_is_booked_and_what_the_fit_spent_is_said() -> None:
    tables = as_islands([np.ones((2, 2)), np.ones((2, 2))])
    study = private_pppca().study
    with booked(tables, None, named=False) as own:
        assert [mine.ledger for mine in own.values()] == [None, None]
        spent = accounts(study, own)
    assert {name: account.budget for name, account in spent.items()} == {"island-0": None, "island-1": None}
    promised = pytest.approx(study.parameters["epsilon"])
    assert [account.epsilon for account in spent.values()] == [promised, promised]


def test_where_one_island_has_a_ledger_the_others_are_named() -> None:
    example = private_pppca()
    with Ledger() as ledger:
        ledger.set_budget("hospital-1", 9.0, 1e-5)
        own = example.own | {"hospital-1": Own(example.islands["hospital-1"], ledger)}
        result = run_study(example.study, own).result
        assert ledger.account("hospital-1").releases == 1
    assert result.booked == "no ledger of hospital-0, hospital-2, hospital-3: nothing booked"


def test_a_ledger_that_a_fit_opened_is_closed_with_it_and_no_other(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.db").close()
    tables = as_islands({"north": np.ones((2, 2))})
    with booked(tables, tmp_path / "ledger.db", named=True) as brought:
        opened = brought["north"].ledger
        assert opened is not None
        assert opened.account("north").releases == 0
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened.account("north")
    tables, own = as_islands({"north": np.ones((2, 2))}), Ledger()
    with booked(tables, own, named=True):
        pass
    assert own.account("north").releases == 0


class Books(Observer):
    """At every message with noise in it: whether its stage is settled in its island's ledger."""

    def __init__(self, example: Example) -> None:
        self._decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
        self._islands, self._ledgers = example.islands, example.ledgers
        self.released: dict[str, set[str]] = {name: set() for name in example.islands}
        self.early: list[tuple[str, str]] = []

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        island = self._islands.get(sender.party)
        message = self._decoder.decode(data)
        if island is None or not isinstance(message, ShareSum | Subspace | Model | EncryptedShare):
            return
        debits = self._ledgers[sender.party].debits()
        settled = {debit.stage for debit in debits if debit.state == "settled"}
        # A sum's round is called like its stage; anything else is made of all stages.
        one = isinstance(message, ShareSum)
        stages = {message.block.partition("#")[0]} if one else {debit.stage for debit in debits}
        self.released[island.name] |= stages
        self.early += [(island.name, stage) for stage in stages - settled]


@pytest.mark.parametrize(
    ("build", "stages"), [(private_pppca, 3), (dpdpca, 3), (privatelocal, 2), (private_sfpca, 3)]
)
def test_nothing_with_noise_leaves_before_it_is_debited(build: Callable[[], Example], stages: int) -> None:
    """A run that is killed at any moment has released nothing that its ledger does not know."""
    example = build()
    for name, island in example.islands.items():
        island.identity = name
    example = example._replace(ledgers={name: Ledger() for name in example.islands})
    for name, ledger in example.ledgers.items():
        ledger.set_budget(name, 50.0, 1e-5)
    books = Books(example)
    LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own, observer=books)
    assert books.early == []
    assert {name: len(found) for name, found in books.released.items()} == dict.fromkeys(
        example.islands, stages
    )


def test_an_owner_asks_for_more_noise_than_the_study_and_is_heard() -> None:
    """The study's noise is for one colluding owner; this owner shares its data with two others only."""
    own = Own(as_islands({"north": np.ones((2, 2))})["north"], min_colluders=2)
    refuse_few_colluders(own, 2)
    with pytest.raises(PrivacyError, match=r"for 1 colluding owner.*asks for at least 2"):
        refuse_few_colluders(own, 1)


def test_a_published_form_releases_nothing_of_an_owner_that_asks_for_noise_or_has_a_ledger() -> None:
    table = as_islands({"north": np.ones((2, 2))})["north"]
    refuse_ledger(Own(table))
    for own in (Own(table, min_colluders=1), Own(table, ledger=Ledger())):
        with pytest.raises(PrivacyError, match="keeps no privacy promise"):
            refuse_ledger(own)


def test_the_fingerprint_of_rows_is_of_every_row_in_its_place() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    whole = fingerprint([rows])
    assert whole == fingerprint([rows[:1], rows[1:]]) == fingerprint([rows.astype(np.float32)])
    for other in (rows[:2], rows[::-1], rows + 2**-40, np.vstack([rows, rows[:1]])):
        assert fingerprint([other]) != whole


@pytest.mark.parametrize("build", [pppca, sfpca, description, dpdpca, privatelocal, private_sfpca, synthesis])
def test_a_release_is_booked_with_the_rows_that_it_is_made_from(build: Callable[[], Example]) -> None:
    """Without them a run that goes on with other rows would be the same release, and cost nothing."""
    example = build()
    for name, island in example.islands.items():
        island.identity = name
    with Ledger() as ledger:
        for name in example.islands:
            ledger.set_budget(name, 90.0, 1e-5)
        run_study(example.study, owned(example.islands, ledger))
        debits = ledger.debits()
    assert {debit.identity for debit in debits} == set(example.islands)
    assert all(len(debit.fingerprint) == 64 for debit in debits)
    # Every island's own, the same at all of its stages.
    assert len({debit.fingerprint for debit in debits}) == len(example.islands)
