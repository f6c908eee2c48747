"""Renderers: the same tables, figures and words for the command line, reviews and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.packages import install

from atoll.privacy.noise_statement import NoiseStatement
from atoll.protocols import PROTOCOLS
from atoll.report import plots
from atoll.report.analyses import RENDERERS, renderer_of
from atoll.runtime.execute import Run
from atoll.runtime.result import Result
from atoll.runtime.transcript import Transcript
from atoll.study.model import Study

VARIANCES = {"explained_variance": np.array([4.0, 3.0]), "total_variance": 10.0, "noise_variance": 1.0}
SCORES = {"scores": {"north": np.array([[1.0, 2.0], [3.0, 4.0]]), "south": np.array([[5.0, 6.0]])}}


def result(analysis: str, **outputs: Any) -> Result:
    study = Study(name="x", analysis=analysis, protocol=analysis, parties=())
    return Result(study, outputs, Transcript())


def test_every_analysis_has_a_renderer() -> None:
    assert set(RENDERERS) == {protocol.analysis for protocol in PROTOCOLS.values()}


def test_pca_gives_tables_figures_files_and_words() -> None:
    pca = renderer_of("pca")
    given = result("pca", n_samples=3, **VARIANCES, **SCORES)
    (table,) = pca.tables(given)
    assert table.name == "variance"
    assert list(table.shown()) == [("PC1", "4", "40.0%", "40.0%"), ("PC2", "3", "30.0%", "70.0%")]
    files = dict(pca.files(given))
    assert list(files) == ["-scree.png", "-projections.csv", "-projections.png"]
    assert files["-projections.csv"].decode().splitlines() == [
        "island,PC1,PC2",
        "north,1.0,2.0",
        "north,3.0,4.0",
        "south,5.0,6.0",
    ]
    assert all(data.startswith(b"\x89PNG") for name, data in files.items() if name.endswith("png"))
    assert pca.facts(given) == {"n_samples": 3, "explained_variance_ratio": [0.4, 0.3]}
    assert pca.summary(given) == "2 components explain 70.0% of the variance of 3 records."


def said_noise(typical: float) -> dict[str, Any]:
    angles = np.array([typical / 2, typical + 10])
    said = NoiseStatement((1, 2), angles, angles - 5, "normalise", 0.3, 0.1)
    return {"noise": structs.asdict(said)}


def test_pca_says_how_much_is_noise() -> None:
    pca = renderer_of("pca")
    given = result("pca", n_samples=3, **VARIANCES, **said_noise(20.0))
    _, table = pca.tables(given)
    assert list(table.shown()) == [("PC1", "10°", "5°"), ("PC1 to PC2", "30°", "25°")]
    assert pca.facts(given)["noise"]["angle_at_most"] == [10.0, 30.0]
    assert "within 30° of the same without noise" in pca.summary(given)
    assert "within 30 degrees of what the same rows" in pca.notes(given)[0]
    noisy = result("pca", n_samples=3, **VARIANCES, **said_noise(60.0))
    given.study = noisy.study = pppca().study
    assert pca.warnings(Run(given, {})) == []
    assert pca.warnings(Run(noisy, {})) == ["the components are mostly noise"]
    assert "; mostly noise." in pca.summary(noisy)
    assert pca.facts(noisy)["noise"]["mostly_noise"]


def test_plots_say_how_much_is_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []

    def scree(_: Any, __: float, title: str) -> bytes:
        titles.append(title)
        return b""

    monkeypatch.setattr(plots, "scree", scree)
    renderer_of("pca").figures(result("pca", **VARIANCES, **said_noise(60.0)))
    renderer_of("pca").figures(result("pca", **VARIANCES))
    assert titles == ["x: explained variance\nmostly noise", "x: explained variance"]


def test_pca_says_nothing_of_what_was_not_released() -> None:
    pca, given = renderer_of("pca"), result("pca", models={})
    assert (pca.tables(given), list(pca.files(given)), pca.facts(given)) == ([], [], {})
    assert pca.summary(given) == "x: models."


def test_a_short_sum_is_shown_and_a_long_one_is_not() -> None:
    renderer = renderer_of("sum")
    given = result("sum", total=np.array([1.5, 2.0]), islands=("a", "b", "c"))
    assert [list(table.shown()) for table in renderer.tables(given)] == [[("1", "1.5"), ("2", "2")]]
    assert renderer.summary(given) == "The sum of 2 numbers over 3 islands."
    assert renderer.tables(result("sum", total=np.zeros(21), islands=("a", "b"))) == []


def test_an_unknown_analysis_shows_nothing() -> None:
    renderer, given = renderer_of("tea leaves"), result("tea leaves", future=1)
    assert renderer.words == "the analysis “tea leaves”"
    assert (renderer.tables(given), list(renderer.files(given))) == ([], [])


TEA_LEAVES = """
from atoll.report.analyses.base import Analysis, Column, Table


class TeaLeaves(Analysis):
    def tables(self, result):
        return [Table("future", "Future", (Column("what"),), [(result["future"],)])]
"""


def test_a_package_can_bring_a_renderer(site: Path) -> None:
    (site / "tea_of_a_stranger.py").write_text(TEA_LEAVES)
    install(site, "stranger", "[atoll.analyses]\ntea leaves = tea_of_a_stranger:TeaLeaves\n")
    (table,) = renderer_of("tea leaves").tables(result("tea leaves", future="bright"))
    assert list(table.shown()) == [("bright",)]
