"""Islands: tables are read as they are named, and never run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atoll.data.island import Island, Matrix, as_island, as_islands
from atoll.errors import DataError


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
    given = Island(np.ones((3, 2)), name="north", identity="icu", capacity=8)
    (island,) = as_islands({"ward": given}).values()
    assert island.name == "ward"
    assert island.identity == "icu"
    assert island.capacity == 8


@pytest.mark.parametrize("kind", ["array", "other order", "frame", "nullable"])
def test_blocks_are_the_rows_in_order(kind: str) -> None:
    X = np.arange(44.0).reshape(11, 4)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    island = {
        "array": Island.from_array(X, columns=names),
        "other order": Island.from_array(X, columns=names),
        "frame": Island.from_frame(frame),
        "nullable": Island.from_frame(frame.convert_dtypes()),
    }[kind]
    wanted = names if kind == "array" else ["c", "a"]
    expected = frame[wanted].to_numpy()
    blocks = list(island.blocks(wanted, 4))
    assert [block.shape for block in blocks] == [(4, len(wanted)), (4, len(wanted)), (3, len(wanted))]
    assert all(block.dtype == np.float64 for block in blocks)
    assert np.array_equal(np.vstack(blocks), expected)
    assert np.array_equal(island.features(wanted), expected)
    chosen = island.chosen(wanted)._replace(units=lambda block: -block)
    assert np.array_equal(chosen.whole(), -expected)
    assert np.array_equal(chosen.largest(), expected.max(axis=0))


def test_blocks_of_an_array_are_no_copies_and_bounded_in_bytes() -> None:
    X = np.zeros((50_000, 13))
    island = Island.from_array(X)
    blocks = list(island.blocks(island.columns))
    assert max(block.nbytes for block in blocks) <= 1 << 21
    assert len(blocks) == 3
    assert all(np.shares_memory(block, X) for block in blocks)


def test_an_empty_table_is_one_empty_block() -> None:
    assert [block.shape for block in Island.from_array(np.empty((0, 3))).blocks(["x0", "x1"])] == [(0, 2)]


def test_text_in_a_later_block_is_named_by_its_place() -> None:
    frame = pd.DataFrame({"a": [1.0] * 9, "b": [*range(8), "Jane"]}, dtype=object)
    island = Island.from_frame(frame, name="north")
    with pytest.raises(DataError, match="north: column 'b' holds text at row 8"):
        list(island.blocks(["a", "b"], 2))


def test_a_ledger_is_not_put_on_an_island() -> None:
    """Put there it would book nothing; it is handed in beside the island."""
    with pytest.raises(AttributeError):
        Island.from_array(np.eye(2)).ledger = object()  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, lambda X: X[:, ::2], lambda X: X > 0.5])
@pytest.mark.parametrize("shape", [(1, 5000), (300, 6), (1, 1)])
def test_the_digest_is_of_every_columns_type_and_values(
    make: Callable[[Matrix], Matrix], shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it would be column by column: journals of runs that began with an earlier version have it so."""
    monkeypatch.setattr("atoll.data.tables.arrays._WRITTEN_BYTES", 9000)  # several blocks of columns
    table = make(np.random.default_rng(3).random(shape))
    island = as_island("a", table)
    due = hashlib.sha256(repr((island.columns, island.n_rows, island.capacity)).encode())
    for column in table.T:
        due.update(str(column.dtype).encode() + np.ascontiguousarray(column).tobytes())
    assert island.digest() == due.hexdigest()
    changed = table.copy()
    changed[-1, -1] = not changed[-1, -1]
    assert as_island("a", changed).digest() != island.digest()
