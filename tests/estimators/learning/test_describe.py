"""``atoll.describe`` against pandas on the pooled rows; small cells, and what would give them back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import atoll
from atoll.errors import DataError, SchemaError, StudyError
from atoll.protocols.learning.suppression import suppressed_list, suppressed_table


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    n = 900
    table = pd.DataFrame(
        {
            "age": rng.normal(1e6, 12, n),
            "dose": rng.exponential(size=n),
            "sex": rng.choice(["F", "M"], n),
            "site": rng.choice([1, 2, 3], n, p=[0.6, 0.398, 0.002]),
        }
    )
    table.loc[rng.choice(n, 40, replace=False), "dose"] = np.nan
    table.loc[rng.choice(n, 25, replace=False), "age"] = np.nan
    table.loc[5, "sex"] = None
    return table


def islands(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"a": table[:70], "b": table[70:500], "c": table[500:]}


def test_equals_pandas_on_the_pooled_rows() -> None:
    table = frame()
    told = atoll.describe(
        islands(table), categorical=["sex", "site"], ranges={"dose": (0.0, 10.0)}, bins=2000, min_count=1
    )
    numbers = table[["age", "dose"]]
    assert told.n_rows == len(table)
    np.testing.assert_allclose(told.numbers["count"], numbers.count())
    np.testing.assert_allclose(told.numbers["missing"], numbers.isna().sum())
    np.testing.assert_allclose(told.numbers["mean"], numbers.mean(), rtol=1e-9)
    np.testing.assert_allclose(told.numbers["std"], numbers.std(), rtol=1e-9)
    np.testing.assert_allclose(told.correlation, numbers.corr(), atol=1e-9)
    for q in ("5%", "25%", "50%", "75%", "95%"):
        exact = numbers["dose"].quantile(float(q[:-1]) / 100)
        assert told.numbers.loc["dose", q] == pytest.approx(exact, abs=2 * 10 / 2000)
    assert np.isnan(told.numbers["50%"].astype(float)["age"])
    assert told.levels["sex"]["count"].to_dict() == {
        **table["sex"].value_counts().to_dict(),
        "(missing)": 1,
    }
    assert told.levels["site"].index.tolist() == ["1", "2", "3", "(missing)"]


def test_a_two_way_table_leaves_out_small_cells_and_those_that_would_give_them_back() -> None:
    table = frame()
    options = {"categorical": ["sex", "site"], "columns": ["sex", "site"], "tables": [("sex", "site")]}
    whole = atoll.describe(islands(table), min_count=1, **options).tables["sex x site"]
    crossed = pd.crosstab(table["sex"], table["site"])
    assert (whole.to_numpy() == crossed.to_numpy()).all()
    told = atoll.describe(islands(table), **options).tables["sex x site"]
    assert told["3"].isna().all()
    assert told.isna().sum().sum() >= 4  # each row and each column lacks none, or two and more


def test_one_small_cell_is_never_alone_and_no_bound_below_the_least_remains() -> None:
    assert suppressed_list([100, 3, 40], 5) == [100, None, None]
    assert suppressed_list([100, 0, 40], 5) == [100, 0, 40]
    assert suppressed_list([100, 1, 1, 40], 5) == [100, None, None, None]
    assert suppressed_list([3], 5) == [None]


def determined(told: list[list[int | None]]) -> list[tuple[int, int]]:
    """The left-out cells that follow from the others and all totals: rows of a linear system."""
    places = [(i, j) for i, row in enumerate(told) for j, cell in enumerate(row) if cell is None]
    sums = [[float(i == r) for i, _ in places] for r in range(len(told))]
    sums += [[float(j == c) for _, j in places] for c in range(len(told[0]))]
    rank = np.linalg.matrix_rank(np.array(sums))
    return [
        place
        for k, place in enumerate(places)
        if np.linalg.matrix_rank(np.array([*sums, np.eye(len(places))[k]])) == rank
    ]


@pytest.mark.parametrize("seed", range(50))
def test_totals_of_rows_and_columns_do_not_give_a_left_out_cell_back(seed: int) -> None:
    counts = np.random.default_rng(seed).poisson(9, size=(4, 3))
    told = suppressed_table(counts, 5)
    for i, j in np.argwhere((counts > 0) & (counts < 5)):
        assert told[i][j] is None
    assert determined(told) == []


@pytest.mark.parametrize("across", [False, True])
def test_a_table_gives_back_no_count_that_the_list_beside_it_leaves_out(across: bool) -> None:
    """The level "b" has 40 rows, and is left out beside "a": a whole line of the table would add up to it."""
    counts = {"a": (2, 1, 0), "b": (20, 20, 0), "c": (10, 10, 100)}
    rows = [(one, str(j)) for one, line in counts.items() for j, n in enumerate(line) for _ in range(n)]
    table = pd.DataFrame(rows, columns=["ward", "arm"]).sample(frac=1, random_state=0)
    names = ["arm", "ward"] if across else ["ward", "arm"]
    told = atoll.describe(
        [table[:80], table[80:]], categorical=names, columns=names, tables=[tuple(names)], min_count=5
    )
    assert told.levels["ward"]["count"].isna().tolist()[:3] == [True, True, False]
    cells = told.tables[" x ".join(names)]
    assert (cells["b"] if across else cells.loc["b"]).isna().any()


def test_one_cell_alone_would_be_given_back() -> None:
    assert determined([[None, 7], [8, 9]]) == [(0, 0)]


def test_a_column_of_identifiers_is_no_category() -> None:
    table = pd.DataFrame({"id": [f"p{i}" for i in range(3000)], "age": 1.0})
    with pytest.raises(DataError, match=r"column 'id' holds 1,500 different values: that is no category"):
        atoll.describe([table[:1500], table[1500:]], categorical=["id"])


def test_islands_with_other_columns_and_wrong_ranges_are_refused() -> None:
    table = frame()
    with pytest.raises(SchemaError, match="'dose'"):
        atoll.describe([table[["age", "dose"]], table[["age"]]])
    with pytest.raises(StudyError, match="the range of 'age'"):
        atoll.describe([table[["age"]], table[["age"]]], ranges={"age": (3.0, 3.0)})
