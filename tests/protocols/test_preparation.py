"""Categories, missing values and flat columns, prepared by all islands together."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from sklearn import decomposition
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from tests.support.lying import lying
from tests.support.prepared_examples import PLAN, prepared, wards
from tests.support.taps import Tap

import atoll
from atoll.codec import Decoder, Message
from atoll.data.island import Island
from atoll.data.levels import codes
from atoll.data.prepared import Survey
from atoll.errors import AtollError, DataError, MessageError, SchemaError, StudyError
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of, resolve
from atoll.protocols.base import Circumstances, with_helpers
from atoll.protocols.fields import Fields
from atoll.protocols.preparation.joint import _check_flat, _check_wanted
from atoll.protocols.preparation.messages import Flat, Means, Wanted
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Party, TablePlan


def parts(frame: pd.DataFrame, n: int = 3) -> dict[str, pd.DataFrame]:
    return {
        f"island-{i}": part
        for i, part in enumerate(np.array_split(np.arange(len(frame)), n))
        for part in [frame.iloc[part]]
    }


def pooled(frame: pd.DataFrame, numbers: list[str], groups: list[str]) -> np.ndarray:
    """The same steps of scikit-learn: one indicator for each level, then means for what is missing."""
    indicators = []
    for name in groups:
        known = frame[name].notna()
        coded = OneHotEncoder(sparse_output=False).fit(frame.loc[known, [name]])
        X = np.full((len(frame), len(coded.categories_[0])), np.nan)
        X[known.to_numpy()] = coded.transform(frame.loc[known, [name]])
        indicators.append(X)
    whole = np.hstack([frame[numbers].to_numpy(float), *indicators])
    return SimpleImputer().fit_transform(whole)


def assert_same_pca(fitted: atoll.PCA, X: np.ndarray, tolerance: float = 1e-8) -> None:
    expected = decomposition.PCA(fitted.n_components_).fit(X)
    aligned = np.sign((expected.components_ * fitted.components_).sum(axis=1))[:, None]
    assert np.abs(expected.components_ * aligned - fitted.components_).max() < tolerance
    assert np.allclose(fitted.explained_variance_, expected.explained_variance_, rtol=tolerance, atol=0)


# ---- against scikit-learn on the pooled table ----


def test_joint_means_and_indicators_are_those_of_scikit_learn() -> None:
    frame = wards(200)
    fitted = atoll.PCA(
        3,
        categorical=["ward", "smokes"],
        missing="mean",
        flat="drop",
        label="outcome",
        accept_determined=True,
    ).fit(parts(frame))
    names = ["age", "dose", "ward[a]", "ward[b]", "ward[c]", "smokes[no]", "smokes[yes]"]
    assert list(fitted.feature_names_in_) == names
    X = pooled(frame, ["age", "dose"], ["ward", "smokes"])
    assert_same_pca(fitted, X)
    assert np.allclose(fitted.mean_, X.mean(axis=0), rtol=1e-12)
    assert fitted.table_["flat"] == ("site", "note")
    assert fitted.table_["fill"]["age"] == pytest.approx(frame["age"].mean(), rel=1e-12)


def test_a_level_that_one_island_lacks_is_a_column_of_zeros_there() -> None:
    frame = wards(120).dropna(subset=["age", "ward"]).sort_values("ward")
    fitted = atoll.PCA(2, columns=["age", "dose", "ward"], categorical=["ward"], accept_determined=True).fit(
        parts(frame)
    )
    assert_same_pca(fitted, pooled(frame, ["age", "dose"], ["ward"]))


def test_dropped_rows_are_those_that_pandas_drops() -> None:
    frame = wards(150)
    used = ["age", "dose", "ward"]
    fitted = atoll.PCA(2, columns=used, categorical=["ward"], missing="drop", accept_determined=True).fit(
        parts(frame)
    )
    left = frame[used].dropna()
    assert fitted.n_samples_ == len(left)
    assert_same_pca(fitted, pooled(left, ["age", "dose"], ["ward"]))


def test_sfpca_prepares_in_the_same_way() -> None:
    frame = wards(150)
    fitted = atoll.PCA(
        2,
        protocol="sfpca",
        columns=["age", "dose", "ward"],
        categorical=["ward"],
        missing="mean",
        bounds=128.0,
        digits="full",
        accept_determined=True,
    ).fit(parts(frame))
    assert_same_pca(fitted, pooled(frame, ["age", "dose"], ["ward"]), 1e-6)


def test_genotypes_are_filled_in_by_the_joint_allele_frequency() -> None:
    draw = np.random.default_rng(5)
    G = draw.binomial(2, [0.1, 0.4, 0.5, 0.25], (120, 4)).astype(float)
    G[draw.random(G.shape) < 0.07] = np.nan
    fitted = atoll.PCA(2, missing="allele frequency", accept_determined=True).fit([G[:50], G[50:90], G[90:]])
    frequency = np.nanmean(G, axis=0) / 2
    assert_same_pca(fitted, np.where(np.isnan(G), 2 * frequency, G))
    G[3, 2] = 1.5
    with pytest.raises(DataError, match=r"island-0: column 'x2' holds no genotype at row 3"):
        atoll.PCA(2, missing="allele frequency").fit([G[:50], G[50:]])


def test_a_private_fit_encodes_public_levels_and_drops_rows() -> None:
    frame = wards(400)
    for protocol in ("pppca", "dpdpca"):
        fitted = atoll.PCA(
            2,
            protocol=protocol,
            epsilon=50.0,
            delta=1e-5,
            row_norm=80.0,
            rows="clip",
            columns=["age", "dose", "ward"],
            categorical=["ward"],
            levels={"ward": ["a", "b", "c", "d"]},
            missing="drop",
        ).fit(parts(frame))
        assert list(fitted.feature_names_in_) == ["age", "dose", "ward[a]", "ward[b]", "ward[c]", "ward[d]"]
        assert abs(fitted.n_samples_ - len(frame[["age", "ward"]].dropna())) < 40
        assert fitted.transform(frame[["age", "dose", "ward"]].dropna()).shape[1] == 2


def test_new_rows_are_prepared_as_those_of_the_fit() -> None:
    frame = wards(90)
    fitted = atoll.PCA(
        2,
        categorical=["ward", "smokes"],
        missing="mean",
        flat="zeros",
        label="outcome",
        accept_determined=True,
    )
    scores = fitted.fit_transform(parts(frame))
    one = fitted.transform(frame)
    assert np.allclose(np.vstack(list(scores.values())), one, atol=1e-10)
    X = pooled(frame, ["age", "dose"], ["ward", "smokes"])
    assert np.allclose(one, (X - X.mean(axis=0)) @ _components(fitted).T, atol=1e-8)
    assert fitted.score(frame.drop(columns="outcome")) == pytest.approx(fitted.score(parts(frame)))
    strange = frame.assign(ward="z")
    with pytest.raises(DataError, match="holds a level that the study does not name"):
        fitted.transform(strange)
    with pytest.raises(SchemaError, match="lacks 'ward'"):
        fitted.transform(frame.drop(columns="ward"))


def test_an_unknown_level_is_not_quoted_in_the_traceback_either() -> None:
    values = np.array(["a", "a rare diagnosis"], dtype=object)
    with pytest.raises(DataError, match="holds a level that the study does not name") as caught:
        codes(values, ["a", "b"], "north", "ward")
    assert "rare" not in "".join(traceback.format_exception(caught.value))


def _components(fitted: atoll.PCA) -> np.ndarray:
    kept = [i for i, name in enumerate(fitted.feature_names_in_) if name not in ("site", "note")]
    names = [fitted.feature_names_in_[i] for i in kept]
    order = sorted(range(len(names)), key=lambda i: (not names[i].startswith(("age", "dose")), i))
    return fitted.components_[:, [kept[i] for i in order]]


# ---- flat columns ----


def test_a_constant_that_differs_from_island_to_island_is_not_flat() -> None:
    frame = wards(60)[["age", "dose"]].fillna(1.0)
    tables = {
        name: part.assign(site=float(i), place=7.0) for i, (name, part) in enumerate(parts(frame).items())
    }
    fitted = atoll.PCA(2, flat="drop", accept_determined=True).fit(tables)
    assert list(fitted.feature_names_in_) == ["age", "dose", "site"]
    assert fitted.table_["flat"] == ("place",)
    kept = atoll.PCA(2, flat="zeros", accept_determined=True).fit(tables)
    assert list(kept.feature_names_in_) == ["age", "dose", "site", "place"]
    assert np.abs(kept.components_[:, 3]).max() < 1e-12


def test_a_column_without_a_value_is_named_and_refused_unless_the_study_says_what_to_do() -> None:
    tables = parts(wards()[["age", "dose", "note"]])
    with pytest.raises(SchemaError, match="no value on any island in 'note'"):
        atoll.PCA(2, missing="mean").fit(tables)
    fitted = atoll.PCA(2, missing="mean", flat="zeros", accept_determined=True).fit(tables)
    assert fitted.table_["fill"]["note"] == 0.0
    with pytest.raises(SchemaError, match="every column is flat"):
        atoll.PCA(1, missing="mean", flat="drop", columns=["note"]).fit(tables)


def test_missing_values_are_refused_with_column_row_and_count() -> None:
    frame = wards()[["age", "dose"]]
    first = int(np.flatnonzero(frame["age"].isna())[0])
    tables = {"north": frame, "south": frame.fillna(0.0)}
    count = int(frame["age"].isna().sum())
    with pytest.raises(
        DataError,
        match=rf"north: column 'age' holds a missing value \(NaN\) at row {first} \(the first of {count}\)",
    ):
        atoll.PCA(1).fit(tables)


# ---- what reaches whom ----


def test_only_sums_and_the_means_of_incomplete_columns_reach_anybody() -> None:
    example, tap = prepared(), Tap()
    study = resolve(example.study)
    protocol = protocol_of("pppca")
    LocalEngine().run(protocol, study, example.own, observer=tap)
    decoder = Decoder[Message](with_helpers(protocol, study).all_messages(study))
    for address in study.who("provider"):
        told = [decoder.decode(data) for _, data in tap.received(address)]
        wanted = next(one for one in told if isinstance(one, Wanted))
        assert wanted.fill == (0, 2, 3, 4)  # age and the levels of ward; dose and smokes are complete
        means = next(one for one in told if isinstance(one, Means))
        assert len(means.values) == len(wanted.fill) + len(wanted.flat)
    server = [decoder.decode(data) for _, data in tap.received(study.the("server"))]
    for fields in (one for one in server if isinstance(one, Fields)):
        assert set(fields.levels) == {"ward", "smokes"}


def test_the_review_says_that_levels_and_means_are_told() -> None:
    study = resolve(prepared().study)
    said = " ".join(one.learns for one in with_helpers(protocol_of("pppca"), study).learns(study))
    assert "the names of all levels of ward, smokes" in said
    assert "the joint means of these columns, exactly" in said


def test_with_two_islands_the_review_says_what_one_has_of_the_other() -> None:
    study = prepared().study
    for gone, said in ((0, False), (1, True)):
        parties = tuple(party for party in study.parties if party.name != "island-2" or not gone)
        two = resolve(structs.replace(study, parties=parties))
        words = [one.learns for one in with_helpers(protocol_of("pppca"), two).learns(two)]
        assert any("figures of the other's columns" in one for one in words) == said


def test_what_is_determined_counts_a_column_for_each_level() -> None:
    levels = {"ward": tuple("abcdefghijkl")}
    study = prepared(plan=TablePlan(categorical=("ward",), levels=levels, missing="drop")).study
    protocol, known = with_helpers(protocol_of("pppca"), study), Circumstances(5, rows=(100, 100, 100))
    sixteen = protocol_of("pppca").determines(study, known._replace(columns=16))
    assert protocol.determines(study, known) == sixteen
    assert sixteen != protocol_of("pppca").determines(study, known)


def test_what_the_preparation_opens_is_booked_before_it_leaves(tmp_path: Any) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        example = prepared().booked(ledger)
        run_study(example.study, example.own)
        assert len(ledger.debits("island-0")) == 2  # the preparation, and the analysis


# ---- a leader that lies ----


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (Wanted, lambda _: Wanted((99,), ()), "places of columns that cannot be"),
        (Wanted, lambda m: Wanted((), m.flat), "no wish for the mean"),
        (Wanted, lambda m: Wanted(m.fill, (1,)), "not constant here"),
        (Means, lambda m: Means(m.values[:-1]), "joint means of shape"),
        (Means, lambda m: Means(m.values * np.nan), "missing or infinite"),
        (Flat, lambda _: Flat((1,)), "columns as flat that are not"),
    ],
)
def test_a_leader_that_lies_is_refused(
    kind: type[Message], change: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = prepared()
    lying(monkeypatch, lambda _, __, message: change(message) if isinstance(message, kind) else message)
    with pytest.raises(MessageError, match=words):
        run_study(example.study, example.own)


# ---- studies that cannot be ----


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (TablePlan(columns=()), "at least one column"),
        (TablePlan(columns=("a", "a")), "twice"),
        (TablePlan(columns=("a",), exclude=("b",)), "exclude is for a study without columns"),
        (TablePlan(columns=("a",), categorical=("b",)), "not used"),
        (TablePlan(levels={"a": ("x",)}), "levels names a column without categories"),
        (TablePlan(categorical=("a",), levels={"a": ("x", "x")}), "none twice"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: TablePlan, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        resolve(structs.replace(prepared().study, table=plan))


def test_nobody_can_leave_while_tables_are_prepared_together() -> None:
    """Sums over two sets of islands, one less the other, are those of the island that left."""
    study = structs.replace(prepared().study, secure_sum="masks", sum_options={"dropouts": 1})
    with pytest.raises(StudyError, match="no island can leave while tables are prepared together") as caught:
        resolve(study)
    assert caught.value.path == ("sum", "dropouts")
    helped = structs.replace(study, sum_options={}, parties=(*study.parties, Party("broker", ("mediator",))))
    with pytest.raises(StudyError, match="where the secure sum 'mix' has helpers"):
        resolve(structs.replace(helped, secure_sum="mix"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"missing": "mean"}, "joint means would be exact"),
        ({"flat": "drop"}, "looking for flat columns would be exact"),
        ({"categorical": ["ward"]}, "must name the levels"),
    ],
)
def test_an_epsilon_allows_nothing_that_is_exact(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        atoll.PCA(2, epsilon=1.0, delta=1e-5, row_norm=1.0, **options).fit(parts(wards()))


def test_protocols_that_prepare_nothing_say_so() -> None:
    with pytest.raises(AtollError, match="missing='mean' cannot be used with protocol='meta'"):
        atoll.PCA(2, protocol="meta", missing="mean").fit(parts(wards()))
    study = structs.replace(prepared().study, protocol="meta", parameters={"n_components": 2})
    with pytest.raises(StudyError, match="meta prepares no tables"):
        resolve(study)


def test_a_study_without_a_table_has_the_digest_that_it_always_had() -> None:
    study = structs.replace(prepared().study, table=TablePlan(), release={})
    assert b'"table"' not in study.canonical()
    assert b'"table"' in structs.replace(study, table=PLAN).canonical()


def test_rows_that_go_along_are_dropped_with_their_labels() -> None:
    example = prepared(plan=TablePlan(columns=("age", "dose"), missing="drop"))
    release = {"scores": ("consumer",), "components": ("consumer",)}
    study = structs.replace(example.study, release=release)
    result = run_study(study, example.own).result
    frame = wards()
    due = frame.dropna(subset=["age"])["outcome"].tolist()
    assert [one for labels in result["labels"].values() for one in labels] == due
    assert sum(len(scores) for scores in result["scores"].values()) == len(due)


def test_a_row_is_named_where_its_owner_finds_it() -> None:
    frame = wards(40)[["age", "dose"]]
    frame.loc[[1, 2], "age"] = np.nan
    frame.loc[5, "dose"] = np.inf
    with pytest.raises(DataError, match=r"infinite value \(inf\) at row 5"):
        atoll.PCA(1, missing="drop").fit(
            {"north": Island.from_frame(frame), "south": wards(40)[["age", "dose"]]}
        )


LEADER = Address("hub", "server")
SURVEY = Survey(
    rows=4,
    present=np.array([4, 3, 4, 0]),
    total=np.zeros(4),
    varies=np.array([True, True, False, False]),
    first=np.array([1.0, 2.0, 3.0, np.nan]),
)
FILLS = TablePlan(missing="mean", flat="drop")


def test_an_island_gives_the_sums_that_the_study_asks_for_and_no_others() -> None:
    """Column 1 is incomplete here, 2 constant, 3 empty."""
    _check_wanted(Wanted((1,), (2,)), SURVEY, FILLS, LEADER)
    _check_wanted(Wanted((1, 3), (2, 3)), SURVEY, FILLS, LEADER)
    for wanted, plan, words in (
        (Wanted((1, 1), ()), FILLS, "places of columns that cannot be"),
        (Wanted((3, 1), ()), FILLS, "places of columns that cannot be"),
        (Wanted((1,), (-1,)), FILLS, "places of columns that cannot be"),
        (Wanted((1, 4), ()), FILLS, "places of columns that cannot be"),
        (Wanted((1,), ()), TablePlan(flat="drop"), "a wish for means that the study does not give"),
        (Wanted((), (2,)), TablePlan(missing="mean"), "a wish for means that the study does not give"),
        (Wanted((1,), (0,)), FILLS, "not constant here"),
        (Wanted((), (2,)), FILLS, "no wish for the mean"),
    ):
        with pytest.raises(MessageError, match=words):
            _check_wanted(wanted, SURVEY, plan, LEADER)


def test_an_island_drops_no_column_that_differs_here() -> None:
    wanted, differs = Wanted((1,), (2,)), np.zeros(4)
    for flat in ((), (2,), (3,), (2, 3)):
        _check_flat(flat, wanted, SURVEY, differs, LEADER)
    for flat in ((1,), (0, 2), (2, 2), (3, 2)):
        with pytest.raises(MessageError, match="columns as flat that are not"):
            _check_flat(flat, wanted, SURVEY, differs, LEADER)
    with pytest.raises(MessageError, match="a column as constant that has another value here"):
        _check_flat((2,), wanted, SURVEY, np.array([0.0, 0.0, 1.0, 0.0]), LEADER)
