"""Guard rails that every island keeps for itself: a forbidden study is refused before a byte leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

from atoll.data.island import Island, as_islands
from atoll.errors import AtollError, DataError, StudyError
from atoll.estimators.base import parties
from atoll.privacy.history import Joined, differs_by_few
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of, resolve
from atoll.protocols.guards import _used
from atoll.protocols.own import Own, owned
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Guards, Study, TablePlan

COLUMNS = [f"c{i}" for i in range(8)]


class Sent(Observer):
    """Everything that anybody sent."""

    def __init__(self) -> None:
        self.senders: list[str] = []

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.senders.append(sender.party)


def table(rows: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(draw.normal(size=(rows, 8)), columns=COLUMNS)


NORTH, SOUTH = table(60, 1), table(50, 2)
WITH_SEX = NORTH.assign(sex=["f", "m"] * 30)
SEX = TablePlan(categorical=("sex",), levels={"sex": ("f", "m")})


def study_of(islands: dict[str, Island], protocol: str = "pppca", **changes: Any) -> Study:
    study = Study(
        name="guarded",
        protocol=protocol,
        parties=parties(islands, "provider", "server", "consumer"),
        parameters={"n_components": 2},
        release={"components": ("consumer",)},
    )
    return structs.replace(study, **changes)


def run(north: pd.DataFrame, ledger: Ledger | None, **changes: Any) -> list[str]:
    """Only north keeps a ledger: what it refuses is its own decision. Returns who sent anything."""
    islands = as_islands(
        {"north": north, "south": SOUTH[north.columns] if set(north) <= set(SOUTH) else north}
    )
    study = study_of(islands, **changes)
    own = {name: Own(island, ledger if name == "north" else None) for name, island in islands.items()}
    sent = Sent()
    try:
        LocalEngine().run(protocol_of("pppca"), study, own, observer=sent)
    except AtollError as error:
        error.senders = sent.senders  # type: ignore[attr-defined]
        raise
    return sent.senders


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.db") as made:
        yield made


def refused(north: pd.DataFrame, ledger: Ledger | None, words: str, **changes: Any) -> str:
    with pytest.raises(AtollError, match=words) as caught:
        run(north, ledger, **changes)
    assert "north" not in caught.value.senders  # type: ignore[attr-defined]
    return str(caught.value.hint)


# ---- numbers ----


def test_an_island_with_fewer_rows_than_the_study_asks_for_sends_nothing() -> None:
    refused(
        NORTH[:20],
        None,
        "north: the table has 20 rows that count, and the study asks for 30",
        guards=Guards(min_rows=30),
    )
    assert "north" in run(NORTH, None, guards=Guards(min_rows=30))


def test_rows_that_the_study_drops_do_not_count() -> None:
    holes = NORTH.copy()
    holes.loc[holes.index[:35], "c0"] = np.nan
    plan = TablePlan(missing="drop")
    refused(holes, None, "25 rows that count", guards=Guards(min_rows=30), table=plan)


def test_rows_without_a_category_are_dropped_as_those_without_a_number() -> None:
    holes = WITH_SEX.copy()
    holes.loc[holes.index[:35], "sex"] = None
    plan = structs.replace(SEX, missing="drop")
    refused(holes, None, "25 rows that count", guards=Guards(min_rows=30), table=plan)
    assert "north" in run(holes, None, guards=Guards(min_rows=25), table=plan)


def test_a_study_with_fewer_islands_than_it_asks_for_is_none() -> None:
    islands = as_islands({"north": NORTH, "south": SOUTH})
    study = study_of(islands, guards=Guards(min_islands=3))
    with pytest.raises(StudyError, match="asks for 3 islands and names 2"):
        resolve(study)
    sent = Sent()
    with pytest.raises(StudyError):
        LocalEngine().run(protocol_of("pppca"), study, owned(islands), observer=sent)
    assert not sent.senders


# ---- differencing ----


def changed_row(frame: pd.DataFrame) -> pd.DataFrame:
    other = frame.copy()
    other.iloc[3, 2] += 1.0
    return other


@pytest.mark.parametrize(
    ("north", "changes", "words"),
    [
        (NORTH[1:], {}, r"1 row\(s\)"),
        (changed_row(NORTH), {}, r"2 row\(s\)"),
        (NORTH[COLUMNS[1:]], {}, r"1 column\(s\)"),
        (NORTH, {"parameters": {"n_components": 3}}, "the number of components"),
        (NORTH, {"table": TablePlan(missing="drop")}, r"what \[table\] does"),
        (NORTH[2:], {"table": TablePlan(exclude=("c7",))}, r"2 row\(s\) and 1 column\(s\)"),
    ],
)
def test_a_study_that_differs_by_a_few_is_refused(
    north: pd.DataFrame, changes: dict[str, Any], words: str, ledger: Ledger
) -> None:
    run(NORTH, ledger)
    hint = refused(
        north, ledger, f"differs by {words} from one that was run on the data set 'north'", **changes
    )
    assert "atoll ledger allow" in hint


def test_rows_that_differ_in_words_alone_differ(ledger: Ledger) -> None:
    run(WITH_SEX, ledger, table=SEX)
    other = WITH_SEX.copy()
    other.loc[other.index[0], "sex"] = "m"
    refused(other, ledger, r"differs by 2 row\(s\)", table=SEX)
    assert "north" in run(WITH_SEX, ledger, table=SEX)


@pytest.mark.parametrize(
    ("north", "changes"),
    [
        (NORTH, {}),  # the same again says nothing new
        (NORTH[30:], {}),
        (table(60, 9), {}),
        (NORTH[COLUMNS[:4]], {}),
        (NORTH, {"parameters": {"n_components": 6, "accept_determined": True}}),
    ],
)
def test_a_study_that_differs_by_nothing_or_by_much_is_run(
    north: pd.DataFrame, changes: dict[str, Any], ledger: Ledger
) -> None:
    run(NORTH, ledger)
    assert "north" in run(north, ledger, **changes)


def test_the_owner_may_allow_one_study_by_its_digest(ledger: Ledger) -> None:
    run(NORTH, ledger)
    refused(NORTH[1:], ledger, "differs by")
    islands = as_islands({"north": NORTH[1:], "south": SOUTH})
    ledger.history.allow("north", resolve(study_of(islands)).digest)
    assert "north" in run(NORTH[1:], ledger)
    refused(NORTH[2:], ledger, "differs by", parameters={"n_components": 3})  # no word for any other study


def test_a_run_that_released_nothing_is_not_held_against_the_next(ledger: Ledger) -> None:
    islands = as_islands({"north": NORTH, "south": SOUTH.rename(columns={"c7": "d"})})
    own = {name: Own(island, ledger if name == "north" else None) for name, island in islands.items()}
    with pytest.raises(DataError):
        LocalEngine().run(protocol_of("pppca"), study_of(islands), own)
    assert ledger.history.studies("north") == []
    assert "north" in run(NORTH[1:], ledger)


def test_a_study_with_an_epsilon_is_the_ledgers_business(ledger: Ledger) -> None:
    ledger.set_budget("north", 10.0, 1e-5)
    run(NORTH, ledger)
    private = {"n_components": 2, "epsilon": 1.0, "delta": 1e-6, "row_norm": 5.0}
    assert "north" in run(NORTH[1:], ledger, parameters=private)
    assert len(ledger.history.studies("north")) == 1


def test_other_analyses_and_other_data_sets_are_compared_apart(ledger: Ledger) -> None:
    run(NORTH, ledger)
    islands = as_islands({"north": Island.from_frame(NORTH[1:], identity="elsewhere"), "south": SOUTH})
    own = {name: Own(island, ledger if name == "north" else None) for name, island in islands.items()}
    LocalEngine().run(protocol_of("pppca"), study_of(islands), own)
    assert len(ledger.history.studies("elsewhere")) == 1


@pytest.mark.parametrize(
    ("named", "used"),
    [
        ({}, "abcdefg"),
        ({"label": "a"}, "bcdefg"),
        ({"row_ids": "b"}, "acdefg"),
        ({"on": "c"}, "abdefg"),
        ({"columns": ["a", "b"]}, "ab"),
        ({"columns": ["a", "b"], "target": "d"}, "abd"),
        ({"columns": ["a", "b"], "weights": "e"}, "abe"),
        ({"columns": ["a", "b"], "offset": "f", "row_ids": "g"}, "abf"),
        ({"columns": ["a", "z"]}, "a"),
    ],
)
def test_names_of_rows_are_no_column_of_a_study_and_what_it_fits_is_one(
    named: dict[str, Any], used: str
) -> None:
    """Rows that are called otherwise would be other rows, and one result less the other a result of few."""
    island = Island.from_frame(pd.DataFrame(np.eye(7), columns=list("abcdefg")), name="north")
    study = study_of({"north": island, "south": island}, parameters=named)
    assert "".join(_used(island, study)) == used
    without = structs.replace(study, table=TablePlan(exclude=("a", "g")))
    if "columns" not in named:
        assert "".join(_used(island, without)) == "".join(c for c in used if c not in "ag")


# ---- how many are a few ----


def made_of(rows: int = 60, columns: int = 8, components: float | None = 2, first: int = 0) -> Joined:
    sketch = np.arange(first, first + min(rows, 1024), dtype=np.uint64)
    return Joined("pca", tuple(COLUMNS[:columns]), rows, components, "{}", sketch)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (made_of(), made_of(50), "10 row(s)"),
        (made_of(), made_of(49), None),
        (made_of(), made_of(60, first=5), "10 row(s)"),
        (made_of(), made_of(60, first=6), None),
        (made_of(1024), made_of(1014), "10 row(s)"),
        (made_of(1024), made_of(1013), None),
        (made_of(), made_of(columns=5), "3 column(s)"),
        (made_of(), made_of(columns=4), None),
        (made_of(), made_of(components=5), "the number of components"),
        (made_of(), made_of(components=6), None),
        (made_of(), made_of(components=0.9), "the number of components"),
        (made_of(), made_of(components=None), "the number of components"),
        (made_of(), made_of(50, 5, 5), "10 row(s) and 3 column(s) and the number of components"),
        # Of many rows, one in 64 is a few: 16 hashes of 1,024. Of other columns rows count by their number.
        (made_of(100_000), made_of(100_000 - 1562, 7), "1,562 row(s) and 1 column(s)"),
        (made_of(100_000), made_of(100_000 - 1563, 7), None),
        (made_of(102_400), made_of(102_400, first=8), "800 row(s)"),
        (made_of(102_400), made_of(102_400, first=16), "1,600 row(s)"),
        (made_of(102_400), made_of(102_400, first=17), None),
        (made_of(), made_of(), None),
        (made_of(), made_of()._replace(analysis="sum", rows=59), None),
        (made_of(), made_of()._replace(filters="other"), "what [table] does"),
    ],
)
def test_ten_rows_three_columns_and_three_components_are_a_few(
    one: Joined, other: Joined, words: str | None
) -> None:
    assert differs_by_few(one, other) == words
    assert differs_by_few(other, one) == words


# ---- the sketch ----


def joined(ledger: Ledger, rows: np.ndarray, columns: tuple[str, ...] = ("a", "b")) -> Joined:
    sketch = ledger.history.sketch([np.ascontiguousarray(rows).view(np.uint64)])
    return Joined("pca", columns, len(rows), 2, "{}", sketch)


def test_large_tables_are_told_apart_by_their_sketches(ledger: Ledger) -> None:
    rows = np.random.default_rng(4).normal(size=(100_000, 2))
    whole = joined(ledger, rows)
    assert len(whole.sketch) == 1024
    assert differs_by_few(whole, joined(ledger, rows[::-1])) is None  # the same rows in another order
    assert differs_by_few(whole, joined(ledger, rows[5:])) is not None
    assert differs_by_few(whole, joined(ledger, np.vstack([rows[200:], rows[:200] + 1.0]))) is not None
    assert differs_by_few(whole, joined(ledger, rows[10_000:])) is None
    assert differs_by_few(whole, joined(ledger, rows + 1.0)) is None


def test_sketches_of_two_ledgers_say_nothing_together(ledger: Ledger, tmp_path: Path) -> None:
    rows = np.random.default_rng(4).normal(size=(500, 2))
    with Ledger.create(tmp_path / "other.db") as other:
        shared = set(joined(ledger, rows).sketch.tolist()) & set(joined(other, rows).sketch.tolist())
    assert not shared
