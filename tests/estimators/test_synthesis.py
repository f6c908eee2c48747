"""Synthetic rows: what they look like, what they are drawn from, what is refused before anything is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.example_tables import cut_frame
from tests.support.synthesis_examples import people

import atoll
from atoll.errors import AtollError, DataError, ParameterError, SchemaError
from atoll.privacy.ledger import Ledger

COLUMNS: dict[str, Any] = {"age": (18, 90), "sex": ["F", "M"], "weight": (40.0, 140.0), "ill": bool}
ROWS = 6000


def islands(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {f"clinic-{i}": part for i, part in enumerate(cut_frame(frame, 3))}


def synthesizer(**options: Any) -> atoll.PPCASynthesizer:
    said = {"epsilon": 3.0, "delta": 1e-5, "columns": COLUMNS, "bins": 8, "random_state": 1} | options
    return atoll.PPCASynthesizer(**said)


@pytest.fixture(scope="module")
def real() -> pd.DataFrame:
    frame = people(ROWS)
    frame["sex"] = pd.Categorical(frame["sex"], categories=["F", "M"])
    return frame.astype({"age": "int32"})


@pytest.fixture(scope="module", params=["maximum-entropy", "latent-classes", "gaussian", "tree"])
def fitted(request: pytest.FixtureRequest, real: pd.DataFrame) -> Any:
    if request.param == "tree":
        return atoll.MarginalSynthesizer(3.0, 1e-5, columns=COLUMNS, bins=8, random_state=1).fit(
            islands(real)
        )
    return synthesizer(decoder=request.param).fit(islands(real))


def test_rows_look_like_the_input(fitted: atoll.PPCASynthesizer, real: pd.DataFrame) -> None:
    drawn = fitted.sample(4000)
    assert list(drawn.columns) == list(real.columns)
    assert dict(drawn.dtypes) == dict(real.dtypes)
    assert drawn["age"].between(18, 90).all()
    assert drawn["weight"].between(40.0, 140.0).all()
    assert len(fitted.sample()) == fitted.n_samples_ == pytest.approx(ROWS, abs=100)


def test_rows_keep_margins_and_dependence(fitted: atoll.PPCASynthesizer, real: pd.DataFrame) -> None:
    drawn = fitted.sample(20_000)
    assert drawn["ill"].mean() == pytest.approx(real["ill"].mean(), abs=0.03)
    assert drawn["age"].mean() == pytest.approx(real["age"].mean(), abs=2.5)
    # Thresholds of a Gaussian keep less of the dependence, whatever the noise.
    least = 0.4 if fitted.decoder == "gaussian" else 0.85
    for rows, by, number in ((drawn, "ill", "age"), (drawn, "sex", "weight")):
        gap, kept = (np.diff(f.groupby(by, observed=True)[number].mean())[0] for f in (real, rows))
        assert least * gap < kept < 1.2 * gap


def test_conditions_are_met_exactly(fitted: atoll.PPCASynthesizer) -> None:
    drawn = fitted.sample(500, where={"sex": "F", "age": (40, 52), "ill": True})
    assert set(drawn["sex"]) == {"F"}
    assert drawn["ill"].all()
    assert drawn["age"].between(40, 52).all()
    assert len(fitted.sample(50, where={"sex": ["F", "M"], "weight": (60.0, 61.0)})) == 50
    for where, words in (
        ({"sex": "X"}, "no level 'X'"),
        ({"height": 1}, "no column 'height'"),
        ({"age": (1, 5)}, "between 18 and 90"),
    ):
        with pytest.raises(DataError, match=words):
            fitted.sample(5, where=where)


def test_conditions_follow_the_dependence(real: pd.DataFrame) -> None:
    model = synthesizer().fit(islands(real))
    old, young = (model.sample(4000, where={"age": ends})["ill"].mean() for ends in ((75, 90), (18, 30)))
    assert old > young + 0.4


def test_random_state_repeats_a_draw_and_a_file_draws_the_same(
    fitted: atoll.PPCASynthesizer, tmp_path: Path
) -> None:
    again = type(fitted).load(fitted.save(tmp_path / "model.atoll"))
    assert fitted.sample(50).equals(fitted.sample(50))
    assert fitted.sample(50, random_state=7).equals(again.sample(50, random_state=7))
    assert not fitted.sample(50, random_state=7).equals(fitted.sample(50, random_state=8))
    assert set(again.result_.outputs) == {"model", "moments"}


def test_components_are_those_of_probabilistic_pca(real: pd.DataFrame) -> None:
    model = synthesizer(n_components=3, epsilon=50.0).fit(islands(real))
    assert model.components_.shape == (3, sum(model.model_["sizes"]) - 4)
    gram = model.components_ @ model.components_.T
    assert gram == pytest.approx(np.diag(model.explained_variance_ - model.noise_variance_), abs=1e-9)
    rest = float(model.model_["total_variance"]) - model.explained_variance_.sum()
    assert model.noise_variance_ == pytest.approx(rest / (model.components_.shape[1] - 3))


def _with(frame: pd.DataFrame, row: int, column: str, value: Any) -> pd.DataFrame:
    changed = frame.astype({column: object})
    changed.loc[row, column] = value
    return changed


BAD: list[tuple[str, Any, type[AtollError], str]] = [
    ("sex", "X", DataError, r"clinic-2: the value of 'sex' at row \d+ is not one of its public levels"),
    ("sex", None, DataError, "clinic-2: the value of 'sex' at row .* is missing"),
    ("age", 17, DataError, "clinic-2: the value of 'age' at row .* lies outside its public bounds, 18 to 90"),
    ("age", 40.5, DataError, "'age' at row .* is not a whole number"),
    ("weight", float("nan"), DataError, "'weight' at row .* is missing"),
    ("weight", "heavy", DataError, "clinic-2: column 'weight' holds text"),
    ("ill", "perhaps", DataError, "'ill' at row .* is not one of its public levels"),
]


@pytest.mark.parametrize(("column", "value", "kind", "words"), BAD)
def test_one_bad_table_costs_nobody_anything(
    tmp_path: Path, column: str, value: Any, kind: type[AtollError], words: str
) -> None:
    tables = islands(people(90))
    tables["clinic-2"] = _with(tables["clinic-2"], 75, column, value)
    with Ledger() as ledger:
        for name in tables:
            ledger.set_budget(name, 10.0, 1e-5)
        with pytest.raises(kind, match=words):
            synthesizer(ledger=ledger).fit(tables)
        assert [ledger.account(name).spent.mu for name in tables] == [0.0, 0.0, 0.0]
        synthesizer(ledger=ledger).fit(islands(people(90)))
        assert all(ledger.account(name).epsilon == pytest.approx(3.0, abs=0.01) for name in tables)


def test_a_missing_column_is_named() -> None:
    tables = islands(people(90))
    tables["clinic-1"] = tables["clinic-1"].drop(columns="ill")
    with pytest.raises(SchemaError, match="clinic-1: there is no column 'ill'"):
        synthesizer().fit(tables)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be a positive number"),
        ({"epsilon": -1.0}, "epsilon must be a positive number"),
        ({"epsilon": "1"}, "must be a number"),
        ({"columns": None}, "needs to be told its columns"),
        ({"columns": {"age": (90, 18), "sex": ["F", "M"]}}, "low below high"),
        ({"columns": {"age": (18, 90), "sex": []}}, "1 to 1000 public levels"),
        ({"columns": {"age": 3, "sex": ["F"]}}, "is described by 3"),
        ({"contribution": 1.5}, "contribution=1.5"),
        ({"n_components": 0}, "n_components=0"),
        ({"colluders": 0}, "at least 1"),
        ({"edges": {"height": [1]}}, "'height', which is no column"),
        ({"decoder": "best"}, "decoder"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(AtollError, match=words):
        synthesizer(**options).fit(islands(people(60)))


def test_numbers_outside_are_clipped_where_the_study_says_so() -> None:
    tables = islands(people(90))
    tables["clinic-0"] = tables["clinic-0"].assign(age=200)
    drawn = synthesizer(outside="clip", epsilon=1000.0).fit(tables).sample(3000)
    assert (drawn["age"] > 81).mean() > 0.25


def test_an_owner_with_one_row_and_a_constant_column_are_no_bad_input() -> None:
    """Noise covers both: nothing is computed from one owner's rows alone."""
    tables = islands(people(90))
    tables["clinic-0"] = tables["clinic-0"].iloc[:1]
    tables["clinic-1"] = tables["clinic-1"].assign(ill=True)
    assert len(synthesizer().fit(tables).sample(10)) == 10


def test_the_tree_holds_what_depends_and_both_stages_are_paid(real: pd.DataFrame) -> None:
    tables = islands(real)
    with Ledger() as ledger:
        for name in tables:
            ledger.set_budget(name, 10.0, 1e-5)
        model = atoll.MarginalSynthesizer(1.0, 1e-5, columns=COLUMNS, bins=8, ledger=ledger).fit(tables)
        assert all(ledger.account(name).epsilon == pytest.approx(1.0, abs=0.01) for name in tables)
        stages = {debit.stage for debit in ledger.debits("clinic-0")}
    assert stages == {"moments", "tables"}
    pairs = [set(edge) for edge in model.tree_]
    assert {"age", "ill"} in pairs
    assert {"sex", "weight"} in pairs
    assert len(pairs) == 3


def test_one_island_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least 2 islands"):
        synthesizer().fit([people(20)])
