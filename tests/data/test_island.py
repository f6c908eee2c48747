"""Islands: tables are read as they are named, and never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atoll.data.island import Island, as_islands
from atoll.errors import DataError
from atoll.privacy.ledger import Ledger


def test_columns_come_in_the_order_in_which_they_are_asked_for() -> None:
    frame = pd.DataFrame({"weight": [1.0, 2.0], "age": [3.0, 4.0], "dose": [5.0, 6.0]})
    array = Island.from_array(frame.to_numpy(), columns=["weight", "age", "dose"])
    for island in (Island.from_frame(frame), array):
        np.testing.assert_array_equal(island.features(("dose", "weight")), [[5.0, 1.0], [6.0, 2.0]])
        np.testing.assert_array_equal(island.features(("weight", "age", "dose")), frame.to_numpy())


class Runs:
    """What a pickle may do when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_an_archive_with_objects_is_refused_and_nothing_of_it_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    np.savez(tmp_path / "table.npz", X=np.array([[Runs(mark)]], dtype=object))
    with pytest.raises(DataError, match=r"table\.npz cannot be read"):
        Island.from_npz(tmp_path / "table.npz")
    assert not mark.exists()


def test_an_island_under_another_name_keeps_what_its_owner_asks_for() -> None:
    with Ledger() as ledger:
        given = Island(
            np.ones((3, 2)), name="north", identity="icu", ledger=ledger, capacity=8, min_colluders=2
        )
        (island,) = as_islands({"ward": given}).values()
        assert island.name == "ward"
        assert island.identity == "icu"
        assert island.ledger is ledger
        assert island.capacity == 8
        assert island.min_colluders == 2
