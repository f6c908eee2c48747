"""Reports as pages: complete, self-contained, safe, and without anybody else's rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.support.browser import Watched, browser, is_drawn
from tests.support.examples import EXAMPLES, Example, pppca, summation, table
from tests.support.learning_examples import alignment, description, learning

from atoll.data.island import Island
from atoll.errors import DataError
from atoll.report import learning_plots
from atoll.report.analyses import pca_tables, renderer_of
from atoll.report.html import Beside, report_html
from atoll.runtime.execute import Run, run_study
from atoll.runtime.result import Result
from atoll.runtime.transcript import Transcript
from atoll.study.model import Study


def finished(example: Example) -> Run:
    return run_study(example.study, example.own)


def pca_result(rows: int = 60, k: int = 3, columns: int = 6, name: str = "a study") -> Result:
    """A result as a consumer has it, made without a run: pages of any size."""
    draw = np.random.default_rng(7)
    X = draw.normal(size=(rows, columns)) * np.arange(1, columns + 1)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    components = vectors[:, ::-1][:, :k].T
    study = pppca().study
    study = Study(
        name=name,
        protocol="pppca",
        analysis="pca",
        secure_sum="shares",
        parties=study.parties,
        parameters={"n_components": k},
        release=study.release,
    )
    outputs = {
        "components": components,
        "mean": X.mean(axis=0),
        "columns": tuple(f"column {i}" for i in range(columns)),
        "explained_variance": values[::-1][:k],
        "total_variance": float(values.sum()),
        "scores": {"north": (X - X.mean(axis=0)) @ components.T},
    }
    return Result(study, outputs, Transcript())


CASES = {
    "pca": pppca,
    "regression": lambda: learning("least-squares"),
    "glm": lambda: learning("glm"),
    "classification": lambda: learning("classifier"),
    "clusters": lambda: learning("kmeans", n_clusters=2),
    "description": description,
    "sum": summation,
    "alignment": alignment,
}


@pytest.mark.parametrize("case", CASES)
def test_a_report_of_each_analysis_has_its_charts_and_loads_nothing(case: str) -> None:
    example = CASES[case]()
    result = finished(example).result
    own = next(iter(example.islands.values()))
    page = report_html(result, Beside(own=own))
    charts = renderer_of(result.study.analysis).charts(result, own)
    assert charts
    for chart in charts:
        assert f'id="chart-{chart.name}"' in page
    assert page.count("<svg") >= len(charts)
    assert not re.search(r'(?:src|href)="(?!#|data:)', page.split("<script>")[0])
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in page
    assert result.study.digest in page


def test_own_rows_are_residuals_or_curves() -> None:
    example = learning("glm")
    island = next(iter(example.islands.values()))
    run = finished(example)
    names = [c.name for c in renderer_of("regression").charts(run.result, island)]
    assert names == ["forest", "residuals"]
    example = learning("classifier")
    run, island = finished(example), next(iter(example.islands.values()))
    names = [c.name for c in renderer_of("classification").charts(run.result, island)]
    assert names == ["weights-1", "roc", "calibration"]


def test_a_table_that_lacks_a_column_is_refused_by_name() -> None:
    result = pca_result()
    del result.outputs["scores"]
    with pytest.raises(DataError, match="mine: the table has no column 'column 0'"):
        report_html(result, Beside(own=Island.from_array(table(), name="mine")))


def test_arrays_have_columns_without_names() -> None:
    """Islands that bring arrays agree on no names: a result then says None."""
    import atoll

    islands = {"north": table(40), "south": table(30, seed=2)}
    result = atoll.PCA(2, accept_determined=True).fit(islands).result_
    assert result["columns"] is None
    page = report_html(result, Beside(own=Island.from_array(table(40), name="north")))
    assert 'id="chart-projections"' in page
    with pytest.raises(DataError, match="north: the table has 2 columns, where the result needs 4"):
        report_html(result, Beside(own=Island.from_array(table(40)[:, :2], name="north")))


def test_names_are_text_and_never_markup() -> None:
    page = report_html(pca_result(name="</script><script>alert(1)</script><b>x"))
    assert "alert(1)</script>" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page


def test_the_report_of_one_party_has_no_row_of_another() -> None:
    """What was released to somebody else is not in the file, so it cannot be on the page."""
    example = pppca()
    run = finished(example)
    for party, result in run.by_party.items():
        mine = example.islands.get(party)
        page = report_html(result, Beside(own=mine))
        for name, island in example.islands.items():
            shown = "scores" in result and name in result["scores"]
            if name != party and not shown:
                numbers = [c for c in island.columns if c != "outcome"]
                for value in island.features(numbers)[:5].ravel():
                    if len(f"{value:.8g}") > 6:  # a short number may stand anywhere
                        assert f"{value:.8g}" not in page


def test_broken_stick_and_suggestion() -> None:
    # Known values for five pieces: (1/5)(1/i + ... + 1/5).
    np.testing.assert_allclose(
        pca_tables.broken_stick(5, 5), [137 / 300, 77 / 300, 47 / 300, 27 / 300, 12 / 300], rtol=1e-12
    )
    spectrum = pca_tables.Spectrum(np.array([6.0, 3.0, 0.5]), np.array([0.6, 0.3, 0.05]), 10.0, 5)
    assert pca_tables.suggested(spectrum) == 2
    assert "2 (the broken-stick rule" in pca_tables.suggestion_words(spectrum)


def test_correlations_of_standardised_columns_are_those_of_the_rows() -> None:
    X = table(200)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    values, vectors = np.linalg.eigh(np.cov(Z.T))
    V = vectors[:, ::-1]
    example = pppca()
    study = Study(
        name="s", protocol="pppca", analysis="pca", secure_sum="shares", parties=example.study.parties,
        parameters={"n_components": 4, "standardize": True}, release=example.study.release,
    )  # fmt: skip
    result = Result(
        study,
        {"components": V.T, "explained_variance": values[::-1], "total_variance": float(values.sum())},
        Transcript(),
    )
    variables = pca_tables.variables_of(result)
    assert variables is not None
    assert variables.correlations is not None
    expected = np.array([[np.corrcoef(Z[:, j], Z @ V[:, i])[0, 1] for i in range(4)] for j in range(4)])
    np.testing.assert_allclose(variables.correlations, expected, atol=1e-12)
    np.testing.assert_allclose(variables.contributions.sum(axis=0), 100.0, rtol=1e-12)


def test_curves_equal_scikit_learns() -> None:
    from sklearn.metrics import roc_auc_score

    draw = np.random.default_rng(5)
    seen = draw.random(300) < 0.4
    score = np.round(draw.normal(size=300) + seen, 1)  # with ties
    assert learning_plots.roc_curve(seen, score)[2] == pytest.approx(roc_auc_score(seen, score), abs=1e-12)
    said, happened, counts = learning_plots.calibration_curve(seen, score)
    assert sum(counts) == 300
    assert np.average(happened, weights=counts) == pytest.approx(seen.mean())
    assert np.all(np.diff(said) >= 0)


def test_a_large_report_stays_small() -> None:
    page = report_html(pca_result(rows=60_000, k=5, columns=760))
    assert len(page.encode()) <= 5_000_000


# ---- in a browser ----


@pytest.mark.timeout(300)
def test_a_browser_draws_every_interactive_chart_without_an_error(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(report_html(pca_result()), encoding="utf-8")
    with browser() as chromium:
        watched = Watched(chromium, tmp_path / "pictures", color_scheme="dark")
        page = watched.open((tmp_path / "report.html").as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
        assert page.locator("[data-live=yes]").count() == 3  # scree, projections, contributions
        for name in ("scree", "projections", "contributions"):
            assert is_drawn(page.locator(f"#live-{name}")), name
        page.get_by_label("Across").select_option("PC3")
        page.locator("[data-still=projections]").click()
        assert is_drawn(page.locator("#chart-projections .still"))
        watched.shoot(page, "report-dark")
        watched.accessible(page)
        page.emulate_media(media="print", color_scheme="light")
        assert page.locator("#chart-scree .still").is_visible()
        assert not page.locator("#live-scree").is_visible()
    assert watched.wrong == []


def test_without_scripts_still_pictures_stand_there() -> None:
    """Nothing but a script takes a still picture away; interactive ones are hidden until it runs."""
    page = report_html(pca_result())
    assert len(re.findall(r'<div class="still"[^>]*><svg', page)) == 5
    assert len(re.findall(r'<div class="live" id="live-[a-z]+" hidden>', page)) == 3
    assert not re.search(r'class="still"[^>]* hidden', page)


def test_the_examples_know_every_analysis_that_has_charts() -> None:
    analyses = {make().study.analysis for make in CASES.values()}
    known = {make().study.analysis for make in EXAMPLES.values()}
    assert {
        name for name in known if type(renderer_of(name)).charts.__qualname__ != "Analysis.charts"
    } <= analyses
