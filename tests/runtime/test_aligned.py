"""Rows that an earlier alignment put in order: the table's own, as they were then, or none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atoll.data.ids import fingerprint, normalised
from atoll.data.island import Island
from atoll.errors import DataError
from atoll.runtime import aligned as module
from atoll.runtime.aligned import aligned

PEOPLE = ["Ann", "bob", "cem", "dan"]


def island(people: list[str], name: str = "north") -> Island:
    frame = pd.DataFrame(
        {"person": people, "age": [float(len(one) * 10 + i) for i, one in enumerate(people)]}
    )
    return Island.from_frame(frame, name=name)


class Kept(dict[str, Any]):
    """A result of an alignment, as it is read."""

    def __init__(self, places: list[int], of: Island) -> None:
        ids = normalised(of, "person", ("trim", "case"))
        super().__init__(
            fingerprint={of.name: fingerprint([ids[place] for place in places])}, order="an order"
        )
        self.outputs = {"rows": {of.name: np.array(places, dtype=np.int64)}}
        self.study = SimpleNamespace(parameters={"on": "person", "normalise": ["trim", "case"]})


def in_order(kept: Kept, table: Island, monkeypatch: pytest.MonkeyPatch) -> Island:
    monkeypatch.setattr(module, "load_result", lambda _: kept)
    return aligned(table, "rows.atoll")


def test_rows_stand_in_the_common_order(monkeypatch: pytest.MonkeyPatch) -> None:
    table = island(PEOPLE)
    found = in_order(Kept([2, 0], table), table, monkeypatch)
    assert found.features(["age"]).ravel().tolist() == [32.0, 30.0]


@pytest.mark.parametrize(
    "people",
    [
        ["Ann", "bob", "dan", "cem"],  # another in the place of one
        ["zoe", "Ann", "bob", "cem", "dan"],  # one came, and moved all others
        ["Ann", "bob"],  # one went
        [],
    ],
)
def test_a_table_that_changed_is_refused(people: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept([2, 0], island(PEOPLE))
    with pytest.raises(DataError, match="the table has changed since its rows were aligned"):
        in_order(kept, island(people), monkeypatch)


def test_an_order_of_nobody_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    table = island(PEOPLE)
    with pytest.raises(DataError, match="the table has changed"):
        in_order(Kept([], table), table, monkeypatch)


def test_another_islands_order_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, table = Kept([2, 0], island(PEOPLE, "south")), island(PEOPLE)
    with pytest.raises(DataError, match="is not this island's result of an alignment"):
        in_order(kept, table, monkeypatch)
    mine = Kept([2, 0], table)
    mine.outputs = {"rows": "scores"}  # type: ignore[dict-item]
    with pytest.raises(DataError, match="is not this island's result"):
        in_order(mine, table, monkeypatch)
    del (mine := Kept([2, 0], table))["fingerprint"]
    with pytest.raises(DataError, match="is not this island's result"):
        in_order(mine, table, monkeypatch)
