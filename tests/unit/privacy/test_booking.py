"""In which ledger an estimator books what it releases."""

from __future__ import annotations

import numpy as np

from atoll.data.island import as_islands
from atoll.estimators.privacy_options import accounts, booked
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost


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
