"""In which ledger a release is booked, and when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.examples import Example, dpdpca, private_pppca, private_sfpca, privatelocal

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.estimators.privacy_options import accounts, booked
from atoll.network import Address
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
from atoll.protocols import protocol_of
from atoll.protocols.privatelocal import Subspace
from atoll.protocols.released import Model
from atoll.runtime.local import LocalEngine, Observer
from atoll.secure_sums.shares import ShareSum


def test_an_islands_own_ledger_comes_before_the_fits() -> None:
    """Whoever fits must not be able to book an owner's release somewhere else."""
    tables = as_islands({"north": np.ones((2, 2)), "south": np.ones((2, 2))})
    own, named = Ledger(), Ledger()
    tables["north"].ledger = own
    with booked(tables, named, named=True) as book:
        assert book is named
        assert tables["north"].ledger is own
        assert tables["south"].ledger is named
        own.debit("north", "r1", [PureCost(0.25)])
        assert accounts(tables)["north"].epsilon == 0.25
        assert accounts(tables)["south"].epsilon == 0.0
    assert named.debits() == []


def test_a_ledger_that_nobody_named_ends_with_the_fit() -> None:
    tables = as_islands([np.ones((2, 2)), np.ones((2, 2))])
    with booked(tables, None, named=False) as book:
        assert book.path is None
        assert {table.ledger for table in tables.values()} == {book}
        assert [table.identity for table in tables.values()] == ["island-0", "island-1"]


class Books(Observer):
    """At every island's first message with noise in it: how many debits its ledger has."""

    def __init__(self, example: Example) -> None:
        self._decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
        self._islands = example.islands
        self.debits: dict[str, int] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        island = self._islands.get(sender.party)
        if island is not None and isinstance(self._decoder.decode(data), ShareSum | Subspace | Model):
            assert island.ledger is not None
            self.debits.setdefault(island.name, len(island.ledger.debits()))


@pytest.mark.parametrize("build", [private_pppca, dpdpca, privatelocal, private_sfpca])
def test_nothing_with_noise_leaves_before_it_is_debited(build: Callable[[], Example]) -> None:
    """A run that is killed at any moment has released nothing that its ledger does not know."""
    example = build()
    for name, island in example.islands.items():
        island.identity, island.ledger = name, Ledger()
        island.ledger.set_budget(name, 50.0, 1e-5)
    books = Books(example)
    LocalEngine().run(protocol_of(example.study.protocol), example.study, example.islands, observer=books)
    assert set(books.debits) == set(example.islands)
    assert all(count > 0 for count in books.debits.values())
