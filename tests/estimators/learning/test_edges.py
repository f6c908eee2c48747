"""Corners of learning: parameters that would be ignored, tables of categories only, blocks without a complete
row, weights, and what a ledger and a list of levels must notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from sklearn.linear_model import LogisticRegression
from tests.support.examples import Example, description, learning

import atoll
from atoll.data.island import as_islands
from atoll.errors import AtollError, DataError, ParameterError, SchemaError, StudyError
from atoll.privacy.ledger import Ledger
from atoll.protocols import resolve
from atoll.protocols.booking import fingerprint
from atoll.protocols.fields import AgreedFields, FieldParameters
from atoll.protocols.learning import design as design_module
from atoll.protocols.learning.design import Design
from atoll.protocols.learning.suppression import bridges, suppressed_list, suppressed_table
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study


def changed(example: Example, drop: tuple[str, ...] = (), **parameters: Any) -> Any:
    kept = {k: v for k, v in example.study.parameters.items() if k not in drop}
    return structs.replace(example.study, parameters={**kept, **parameters})


@pytest.mark.parametrize(
    ("protocol", "parameters", "wrong"),
    [
        ("least-squares", {"offset": "dose", "columns": ("age",)}, "this model has no offset"),
        ("classifier", {"offset": "dose", "columns": ("age",)}, "this model has no offset"),
        ("kmeans", {"offset": "dose", "columns": ("age",)}, "clusters have no target, weights or offset"),
        ("kmeans", {"categorical": ("age",)}, "a category has no mean"),
        ("kmeans", {"n_clusters": 2, "init": ((1.0, 2.0), (1.0,))}, "different lengths"),
        ("kmeans", {"n_clusters": 1, "init": ((float("inf"),) * 4,)}, "not finite"),
        ("glm", {"max_iter": 0}, "max_iter=0 must be 1 or more"),
        ("glm", {"tol": -1.0}, "tol=-1.0 must be 0 or more"),
        ("glm", {"tol": float("nan")}, "tol=nan must be 0 or more"),
        ("classifier", {"intercept_scaling": 0.0}, "intercept_scaling=0.0 must be above 0"),
        ("classifier", {"C": None, "loss": "hinge"}, "support vectors need C"),
        ("glm", {"categorical": ("stay",)}, "categorical names the target"),
    ],
)
def test_what_a_model_would_ignore_or_cannot_do_is_refused(
    protocol: str, parameters: dict[str, Any], wrong: str
) -> None:
    with pytest.raises((StudyError, ParameterError), match=wrong):
        resolve(changed(learning(protocol), **parameters))


@pytest.mark.parametrize("protocol", ["glm", "least-squares", "classifier"])
def test_a_model_needs_a_target(protocol: str) -> None:
    with pytest.raises(StudyError, match=f"{protocol} needs a target") as refused:
        resolve(changed(learning(protocol), drop=("target",)))
    assert "fit(tables, targets)" in str(refused.value.hint)


@pytest.mark.parametrize("example", [lambda: learning("glm"), description])
def test_no_island_may_leave_between_sums_over_the_same_rows(example: Any) -> None:
    study = structs.replace(example().study, secure_sum="masks", sum_options={"dropouts": 1})
    with pytest.raises(StudyError, match="no island can leave in between") as refused:
        resolve(study)
    assert refused.value.hint == "dropouts = 0"


def test_first_centres_of_another_width_are_refused() -> None:
    X = np.arange(40.0).reshape(10, 4)
    with pytest.raises(DataError, match="centres of 3 numbers for 4 columns"):
        atoll.KMeans(2, init=X[:2, :3]).fit([X, X])


def of_words(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], n), "site": rng.choice(["x", "y", "z"], n)})
    frame["ill"] = np.where(rng.random(n) < 0.3 + 0.3 * (frame["sex"] == "M"), "yes", "no")
    return frame


def test_tables_of_categories_only_are_described_and_explained() -> None:
    frame = of_words()
    parts = {"a": frame[:100], "b": frame[100:]}
    model = atoll.LogisticRegression(categorical=["sex", "site"]).fit(parts, target="ill")
    dummies = pd.get_dummies(frame[["sex", "site"]], drop_first=True).astype(float)
    pooled = LogisticRegression(tol=1e-12).fit(dummies, frame["ill"])
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    told = atoll.describe(parts, categorical=["sex", "site", "ill"])
    assert told.levels["ill"]["count"]["yes"] == (frame["ill"] == "yes").sum()
    islands = as_islands(parts)
    study = changed(description(), drop=("levels", "ranges", "columns"), categorical=("sex", "site", "ill"))
    study = structs.replace(study, parties=(*_providers(islands), *study.parties[4:]))
    ledger = Ledger()  # which reads every value that counts
    run_study(study, owned(islands, ledger))
    assert len(ledger.debits("a")) == 1


def _providers(islands: Any) -> tuple[Any, ...]:
    from atoll.study.model import Party

    return tuple(Party(name=name, roles=("provider",)) for name in islands)


def test_blocks_without_a_complete_row_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Design, "_step", lambda _: 10)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = rng.integers(0, 3, 200)
    holes = X.copy()
    holes[20:50] = np.nan  # three whole blocks, and parts of none
    parts = [pd.DataFrame(part, columns=list("abc")) for part in (holes[:100], holes[100:])]
    model = atoll.LogisticRegression(missing="drop").fit(parts, [y[:100], y[100:]])
    keep = ~np.isnan(holes).any(axis=1)
    pooled = LogisticRegression(tol=1e-12, max_iter=10_000).fit(X[keep], y[keep])
    np.testing.assert_allclose(model.predict_proba(X), pooled.predict_proba(X), atol=1e-6)
    assert (model.n_samples_, model.n_dropped_) == (170, 30)
    clusters = atoll.KMeans(2, init=X[:2], missing="drop").fit(parts)
    assert clusters.result_["fit"]["counts"].sum() == 170


def test_a_row_without_a_class_is_left_out() -> None:
    frame = of_words()
    frame.loc[[3, 150], "ill"] = None
    model = atoll.LogisticRegression(categorical=["sex", "site"], missing="drop")
    model.fit({"a": frame[:100], "b": frame[100:]}, target="ill")
    assert (model.n_samples_, model.n_dropped_) == (238, 2)


def test_weights_count_rows_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    frame["w"] = rng.uniform(0.2, 3.0, 150)
    frame["y"] = np.where(frame["a"] + rng.normal(size=150) > 0, "u", "v")
    islands = as_islands({f"hospital-{i}": frame[50 * i : 50 * (i + 1)] for i in range(3)})
    example = learning("classifier")
    study = changed(example, columns=("a", "b", "c"), target="y", weights="w")
    study = structs.replace(study, parties=(*_providers(islands), *study.parties[4:]))
    model = run_study(study, owned(islands)).result["model"]
    pooled = LogisticRegression(tol=1e-12).fit(frame[["a", "b", "c"]], frame["y"], sample_weight=frame["w"])
    np.testing.assert_allclose(model["coefficients"][0, 1:], pooled.coef_[0], atol=1e-5)


def test_a_ledgers_fingerprint_is_of_categories_and_classes_as_well() -> None:
    """Numbers alone would let a resumed release be of another target."""
    found = set()
    for turned in (False, True):
        frame = pd.DataFrame({"x": np.arange(6.0), "k": list("ababab"), "y": list("uuvvuv")})
        if turned:
            frame["y"] = frame["y"].to_numpy()[::-1]
        island = as_islands({"a": frame})["a"]
        agreed = AgreedFields(("x", "k"), True, {"k": ("a", "b"), "y": ("u", "v")})
        p = FieldParameters(target="y", categorical=("k",))
        design = Design(island, agreed, p, classes=True, intercept=True)
        found.add(fingerprint(design.read.blocks()))
    assert len(found) == 2


def test_rows_held_in_memory_and_rows_read_again_give_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit: which of the two it is depends on the size of a table alone."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    frame["k"] = rng.choice(list("uvw"), 90)
    frame["ill"] = (frame["a"] + rng.normal(size=90) > 0).astype(int)
    frame.loc[7, "b"] = np.nan
    frame.loc[50, "k"] = None
    found = []
    for kept in (design_module.KEPT_BYTES, 0):
        monkeypatch.setattr(design_module, "KEPT_BYTES", kept)
        glm = atoll.GLM("binomial", categorical=["k"], missing="drop")
        model = glm.fit([frame[:30], frame[30:]], target="ill")
        assert model.n_samples_ == 88
        found.append(model.result_["model"]["coefficients"])
    np.testing.assert_array_equal(*found)


def test_a_category_that_an_island_lacks_and_a_range_of_no_column_are_named() -> None:
    frame = of_words(40)
    with pytest.raises(SchemaError, match="there is no column 'ward'"):
        atoll.describe([frame[:20], frame[20:]], categorical=["sex", "site", "ill", "ward"])
    numbers = pd.DataFrame({"age": np.arange(40.0)})
    with pytest.raises(SchemaError, match="a range for 'agee', which is no column of numbers"):
        atoll.describe([numbers[:20], numbers[20:]], ranges={"agee": (0.0, 1.0)})


# ---- small cells ----


def test_means_of_very_few_values_and_outer_quantiles_are_left_out() -> None:
    frame = pd.DataFrame({"age": np.arange(60.0), "rare": [np.nan] * 57 + [1.0, 2.0, 3.0]})
    told = atoll.describe([frame[:30], frame[30:]], ranges={"age": (0.0, 100.0)})
    assert np.isnan(told.numbers.loc["rare", "mean"])
    assert np.isnan(told.numbers.loc["rare", "std"])
    assert np.isnan(told.correlation.loc["age", "rare"])
    assert np.isnan(told.numbers.loc["age", "5%"])  # three rows lie beyond it
    assert told.numbers.loc["age", "50%"] == pytest.approx(29.5, abs=0.6)


def test_a_table_does_not_give_back_what_a_list_leaves_out() -> None:
    """The second level is left out of the list beside the first, which it would tell: so is its row here."""
    counts = np.array([[2, 1, 0], [20, 20, 0], [10, 10, 100]])
    assert suppressed_list(counts.sum(axis=1).tolist(), 5) == [None, None, 120]
    assert suppressed_table(counts, 5)[1] == [20, 20, 0]  # 40, and so 3 = 163 - 120 - 40
    assert None in suppressed_table(counts, 5, [True, True, False])[1]
    columns = suppressed_table(counts.T, 5, None, [True, True, False])
    assert None in [row[1] for row in columns]
    assert [row[1] for row in suppressed_table(counts.T, 5)] == [20, 20, 0]


def test_two_left_out_in_every_line_are_not_always_enough() -> None:
    """Two squares joined by one cell: that cell is a difference of totals, whatever is in the squares."""
    out = np.zeros((4, 4), dtype=bool)
    out[:2, :2] = out[2:, 2:] = out[1, 2] = True
    assert bridges(out) == [(1, 2)]
    counts = np.array([[6, 7, 90, 80], [8, 9, 4, 70], [90, 80, 7, 9], [70, 95, 8, 6]])
    hidden = np.array([[cell is None for cell in row] for row in suppressed_table(counts, 5)])
    assert hidden[1, 2]
    assert bridges(hidden) == []


@pytest.mark.parametrize("seed", range(20))
def test_nothing_left_out_follows_from_lists_and_table_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.choice([1, 4, 20], size=(5, 4)))
    rows = [c is None for c in suppressed_list(counts.sum(axis=1).tolist(), 5)]
    columns = [c is None for c in suppressed_list(counts.sum(axis=0).tolist(), 5)]
    told = suppressed_table(counts, 5, rows, columns)
    hidden = np.zeros((6, 5), dtype=bool)
    hidden[:5, :4] = [[cell is None for cell in row] for row in told]
    hidden[:5, 4], hidden[5, :4] = rows, columns
    assert bridges(hidden) == []
    assert hidden[:5, :4][(counts > 0) & (counts < 5)].all()


def test_both_targets_and_a_mix_of_kinds_are_refused_or_kept_as_words() -> None:
    X = np.arange(40.0).reshape(20, 2)
    with pytest.raises(AtollError, match="not both"):
        atoll.LinearRegression().fit([X, X], [X[:, 0], X[:, 0]], target="y")
    y = np.arange(20) % 2
    model = atoll.LogisticRegression().fit([X, X + 0.3], [y.astype(bool), y])
    assert set(model.classes_) <= {"True", "False", "0", "1"}
