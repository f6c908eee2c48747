"""``atoll.align``: the rows of an inner join, in one order, and fits that check it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import atoll
from atoll.data.ids import fingerprint
from atoll.errors import AtollError, DataError, SchemaError


def people(n_islands: int, seed: int = 3, rows: int = 60) -> dict[str, pd.DataFrame]:
    """Tables of some of 90 people each, in any order, with columns of their own."""
    draw = np.random.default_rng(seed)
    return {
        f"island-{i}": pd.DataFrame(
            {"person": draw.permutation(90)[:rows], **{f"x{i}{j}": draw.normal(size=rows) for j in range(2)}}
        )
        for i in range(n_islands)
    }


@pytest.mark.parametrize("n_islands", [2, 3, 5])
def test_it_is_the_inner_join(n_islands: int) -> None:
    tables = people(n_islands)
    aligned = atoll.align(tables, on="person")
    ids = [tables[name]["person"].to_numpy()[aligned.rows[name]] for name in tables]
    joined = set.intersection(*(set(table["person"]) for table in tables.values()))
    assert set(ids[0]) == joined
    assert aligned.common == len(joined) == len(ids[0])
    assert all((other == ids[0]).all() for other in ids)
    for name, table in tables.items():
        expected = table.iloc[aligned.rows[name]].drop(columns="person").to_numpy()
        assert (aligned[name].frame().to_numpy() == expected).all()


def test_the_order_says_nothing_of_ids_or_tables() -> None:
    tables = people(2)
    first, second = (atoll.align(tables, on="person") for _ in range(2))
    ids = [tables["island-0"]["person"].to_numpy()[a.rows["island-0"]].tolist() for a in (first, second)]
    assert sorted(ids[0]) == sorted(ids[1])
    assert ids[0] != ids[1]  # secrets are drawn anew
    assert ids[0] != sorted(ids[0])
    assert first.order != second.order


def test_a_pca_of_aligned_columns_is_that_of_the_joined_table() -> None:
    tables = people(3, rows=80)
    aligned = atoll.align(tables, on="person")
    fitted = atoll.PCA(2, protocol="sfpca", partition="vertical", accept_determined=True).fit(aligned)
    joined = tables["island-0"]
    for name in ("island-1", "island-2"):
        joined = joined.merge(tables[name], on="person")
    expected = PCA(2).fit(joined.drop(columns="person").to_numpy())
    np.testing.assert_allclose(fitted.explained_variance_, expected.explained_variance_, rtol=1e-5)
    cosines = np.abs(np.sum(fitted.components_ * expected.components_, axis=1))
    np.testing.assert_allclose(cosines, 1.0, atol=1e-5)


def test_rows_of_two_alignments_or_of_none_are_not_put_side_by_side() -> None:
    tables = people(2)
    first, second = (atoll.align(tables, on="person") for _ in range(2))
    pca = atoll.PCA(1, protocol="sfpca", partition="vertical")
    with pytest.raises(SchemaError, match="two different alignments"):
        pca.fit({"island-0": first["island-0"], "island-1": second["island-1"]})
    plain = second["island-1"].frame()
    with pytest.raises(SchemaError, match="island-0 were aligned, those of island-1 were not"):
        pca.fit({"island-0": first["island-0"], "island-1": plain})


def test_a_regression_on_aligned_columns_is_that_of_the_joined_table() -> None:
    tables = people(3, rows=80)
    draw = np.random.default_rng(1)
    tables["island-2"]["stay"] = draw.normal(size=80)
    first, second = (atoll.align(tables, on="person") for _ in range(2))
    model = atoll.Ridge(
        alpha=1.0,
        partition="vertical",
        y_holder="island-2",
        accept_scores=True,
        solver="scores",
        share_model=True,
    )
    model.fit(first, target="stay")
    joined = tables["island-0"]
    for name in ("island-1", "island-2"):
        joined = joined.merge(tables[name], on="person")
    expected = Ridge(alpha=1.0).fit(joined.drop(columns=["person", "stay"]), joined["stay"])
    np.testing.assert_allclose(np.ravel(model.coef_), expected.coef_, atol=1e-8)
    with pytest.raises(SchemaError, match="two different alignments"):
        model.fit({**first, "island-1": second["island-1"]}, target="stay")


@pytest.mark.parametrize(
    ("rules", "ids"),
    [
        ("trim", [" a-1", "b-2\t"]),
        (("trim", "case"), ["A-1 ", "B-2"]),
        (("case", "spaces"), ["A - 1", "b -2"]),
        ("trim", ["ａ-1", "b-2"]),  # full width, as some systems write
    ],
)
def test_ids_are_made_alike_by_the_rule(rules: str | tuple[str, ...], ids: list[str]) -> None:
    tables = [
        pd.DataFrame({"id": ["a-1", "b-2", "c-3"], "x": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"id": ids, "y": [1.0, 2.0]}),
    ]
    assert atoll.align(tables, on="id", normalise=rules).common == 2


def test_numbers_and_text_are_one_id() -> None:
    tables = [
        pd.DataFrame({"id": [17.0, 18.0], "x": [1.0, 2.0]}),
        pd.DataFrame({"id": ["0-17", "0-18"], "y": [1.0, 2.0]}),
        pd.DataFrame({"id": [18, 17], "z": [1.0, 2.0]}),
    ]
    with pytest.raises(DataError, match="no row in common"):
        atoll.align(tables, on="id")
    tables[1]["id"] = ["17", "18"]
    assert atoll.align(tables, on="id").common == 2


def _with(change: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[str, pd.DataFrame]:
    tables = people(2)
    tables["island-1"]["person"] = tables["island-1"]["person"].map("secret-{}".format)
    tables["island-0"]["person"] = tables["island-0"]["person"].map("secret-{}".format)
    return {**tables, "island-1": change(tables["island-1"])}


def _twice(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(person=[table.person[9].upper(), *table.person[1:]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.assign(person=[None, *t.person[1:]]), "island-1: the id 'person' is missing at row 0"),
        (lambda t: t.rename(columns={"person": "who"}), "island-1: there is no column of ids 'person'"),
        (_twice, "island-1: the ids 'person' at row 0 and row 9 are the same"),
        (lambda t: t.assign(person=["  ", *t.person[1:]]), "nothing is left of the id 'person' at row 0"),
        (lambda t: t.iloc[:0], "island-1: there are no rows to align"),
    ],
)
def test_bad_ids_are_named_by_place_and_never_shown(
    change: Callable[[pd.DataFrame], pd.DataFrame], words: str
) -> None:
    with pytest.raises(AtollError) as caught:
        atoll.align(_with(change), on="person", normalise=("trim", "case"))
    assert words in str(caught.value)
    assert "secret" not in str(caught.value).lower()


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(AtollError, match="no rule for ids called 'lower'"):
        atoll.align(people(2), on="person", normalise="lower")


def test_errors_name_rows_of_the_file_after_alignment(tmp_path: Path) -> None:
    tables = people(2)
    paths = {name: tmp_path / f"{name}.csv" for name in tables}
    tables["island-1"].loc[:, "x10"] = np.nan
    for name, table in tables.items():
        table.to_csv(paths[name], index=False)
    aligned = atoll.align(paths, on="person")
    row = int(aligned.rows["island-1"][0])
    with pytest.raises(DataError, match=rf"line {row + 2}\b"):
        atoll.PCA(1, protocol="sfpca", partition="vertical").fit(aligned)


def test_lists_of_ids_have_one_fingerprint_only_if_they_are_the_same() -> None:
    """Where one id ends and the next begins counts, and so does their order."""
    lists = [("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("ab", "c", ""), ("ab",), ()]
    assert len({fingerprint(ids) for ids in lists}) == len(lists)
    assert fingerprint(("ab", "c")) == fingerprint(["ab", "c"])
