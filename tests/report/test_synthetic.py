"""Synthetic rows beside an owner's own: figures that are right, and a page that loads nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.synthesis_examples import SCHEMA, people

import atoll
from atoll.errors import DataError, ParameterError
from atoll.protocols.synthesis.schema import Column
from atoll.report.synthetic import compare

COLUMNS = tuple(
    Column(**{k: tuple(v) if isinstance(v, list) else v for k, v in one.items()}) for one in SCHEMA
)


def test_rows_beside_themselves_differ_in_nothing_and_are_close() -> None:
    rows, other = people(1500), people(1500, seed=9)
    found = compare(rows, rows, COLUMNS, 8, holdout=other, target="ill")
    assert found.margins["distance"].max() == 0.0
    assert found.pairs["distance"].max() == 0.0
    assert found.pairs["real"].to_numpy() == pytest.approx(found.pairs["synthetic"].to_numpy())
    strongest = found.pairs.loc[found.pairs["real"].idxmax()]
    assert {strongest["column"], strongest["with"]} in ({"age", "ill"}, {"sex", "weight"})
    # Rows that were copied are found out, and learning from them is learning from real rows.
    assert found.closeness["rows that occur exactly, used rows"] == 1.0
    assert found.closeness["membership inference (0.5: none)"] > 0.5
    assert found.utility["learned from synthetic rows"] == found.utility["learned from real rows"]


def test_rows_without_dependence_are_told_from_real_ones() -> None:
    rows = people(2000)
    rng = np.random.default_rng(0)
    shuffled = pd.DataFrame({name: rng.permutation(rows[name].to_numpy()) for name in rows})
    found = compare(rows, shuffled, COLUMNS, 8, holdout=people(1000, seed=8), target="ill")
    assert found.margins["distance"].max() == 0.0
    assert found.pairs["synthetic"].max() < 0.2 < found.pairs["real"].max()
    learned, real = (found.utility[f"learned from {kind} rows"] for kind in ("synthetic", "real"))
    assert real > learned + 0.05
    assert found.closeness["membership inference (0.5: none)"] == pytest.approx(0.5, abs=0.05)


def test_a_synthesizers_report_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    tables = [people(800, seed).rename(columns={"ill": "<ill>"}) for seed in range(3)]
    columns = {"age": (18, 90), "sex": ["F", "M"], "weight": (40.0, 140.0), "<ill>": bool}
    synthesizer = atoll.PPCASynthesizer(3.0, 1e-5, columns=columns, bins=4).fit(tables)
    beyond = people(500, 7).rename(columns={"ill": "<ill>"})
    found = synthesizer.report(tables[0], holdout=beyond, target="<ill>")
    assert found.margins["distance"].max() < 0.15
    assert abs(found.closeness["membership inference (0.5: none)"] - 0.5) < 0.1
    page = found.save(tmp_path / "report.html").read_text()
    assert "<ill>" not in page
    assert page.count("<svg") == 3
    assert "hold-out" in page
    assert "src=" not in page
    assert "is no release" in page
    assert "membership inference" in page
    with pytest.raises(ParameterError, match="is no column"):
        synthesizer.report(tables[0], target="height")
    with pytest.raises(DataError, match="too few"):
        synthesizer.report(tables[0].iloc[:5])
