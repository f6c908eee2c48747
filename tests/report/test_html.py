"""Reports as pages: complete, self-contained, safe, and without anybody else's rows."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from gzip import decompress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.report_large import large_result
from msgspec import structs
from tests.support.browser import Watched, all_live, browser, is_drawn, marked, until
from tests.support.examples import EXAMPLES, Example, pppca, pppca_ellipses, summation, table
from tests.support.learning_examples import alignment, description, learning
from tests.support.synthesis_examples import published, synthesis

from atoll.data.island import Island
from atoll.errors import DataError
from atoll.report import learning_plots, own_rows
from atoll.report.analyses import pca_tables, renderer_of
from atoll.report.charts import Outline
from atoll.report.html import Beside, report_html
from atoll.report.pca_plots import outline
from atoll.runtime.execute import Run, run_study
from atoll.runtime.result import Result
from atoll.runtime.transcript import Transcript
from atoll.study.model import Study


def finished(example: Example) -> Run:
    return run_study(example.study, example.own)


def pca_result(
    rows: int = 60, k: int = 3, columns: int = 6, name: str = "a study", *, ellipses: bool = False
) -> Result:
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
    outputs: dict[str, Any] = {
        "components": components,
        "mean": X.mean(axis=0),
        "columns": tuple(f"column {i}" for i in range(columns)),
        "explained_variance": values[::-1][:k],
        "total_variance": float(values.sum()),
        "scores": {"north": (X - X.mean(axis=0)) @ components.T},
    }
    if ellipses:
        one = {"mean": np.ones(k), "deviation": np.arange(1.0, k + 1), "correlation": np.eye(k)}
        outputs["ellipses"] = {"north": one, "south": {**one, "mean": -np.ones(k)}}
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
    "ellipses": pppca_ellipses,
    "synthesis": lambda: synthesis(rows=300),
    "synthesis-published": published,
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
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
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


def test_who_gets_an_output_is_said_by_role() -> None:
    page = report_html(pca_result())
    outputs = page[page.index("<caption>Outputs") :]
    assert re.search(r'components</th>.*?released to">every provider\nconsumer</td>', outputs, re.DOTALL)
    assert "hospital-0/provider" not in outputs[: outputs.index("</table>")]


def test_names_are_text_and_never_markup() -> None:
    page = report_html(pca_result(name="</script><script>alert(1)</script><b>x"))
    assert "alert(1)</script>" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page


def held(page: str) -> list[npt.NDArray[Any]]:
    """Every array of numbers that a page's interactive figures hold."""
    found: list[npt.NDArray[Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "ndarray" and isinstance(value["array"], dict):
                found.append(np.frombuffer(decompress(b64decode(value["array"]["data"])), value["dtype"]))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for item in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        walk(json.loads(item))
    return found


def test_a_page_with_own_rows_and_others_ellipses_holds_own_points_alone() -> None:
    """Of another island's rows, neither the values nor the projections are in any figure's data."""
    example = pppca_ellipses()
    release = {**example.study.release, "components": ("hospital-1",)}
    run = finished(Example(structs.replace(example.study, release=release), example.islands))
    result, own = run.by_party["hospital-1"], example.islands["hospital-1"]
    page = report_html(result, Beside(own=own))
    numbers = np.concatenate([array.astype(np.float64).ravel() for array in held(page)])
    for name, island in example.islands.items():
        told = own_rows.projections(result, island)
        assert told is not None
        near = np.abs(numbers[None, :] - told[:, :1].astype(np.float32)) < 1e-6
        assert near.any(axis=1).all() == (name == "hospital-1"), name
        if name != "hospital-1":
            assert not near.any()
    points = re.search(r'id="projections-PathCollection_1">(.*?)</g>\s*</g>', page, re.DOTALL)
    assert points is not None
    assert points[1].count("<use") == own.n_rows
    assert 'id="chart-ellipses"' in page
    # The same result without a table has no point at all.
    assert 'id="chart-projections"' not in report_html(result)


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


def test_ellipses_are_drawn_where_the_numbers_say() -> None:
    told = Outline(
        "north", "#000000", np.array([1.0, 2.0]), np.array([2.0, 3.0]), np.array([[1, 0.5], [0.5, 1]])
    )
    x, y = outline(told, 0, 1)
    covariance = np.array([[4.0, 3.0], [3.0, 9.0]])
    apart = np.stack([x, y]) - told.mean[:, None]
    lengths = np.einsum("in,ij,jn->n", apart, np.linalg.inv(covariance), apart)
    np.testing.assert_allclose(lengths, 5.991464547, rtol=1e-9)  # chi-squared, two degrees, 95 percent


def test_synthetic_rows_stand_beside_own_ones_and_alone_without() -> None:
    example = synthesis(rows=300)
    result, own = finished(example).result, next(iter(example.islands.values()))
    charts = {chart.name: chart for chart in renderer_of("synthesis").charts(result, own)}
    assert list(charts) == ["margins", "dependence"]
    beside, alone = (
        chart.draw() for chart in (charts["margins"], renderer_of("synthesis").charts(result)[0])
    )
    assert [text.get_text() for text in beside.legends[0].texts] == ["your own rows", "synthetic rows"]
    assert [text.get_text() for text in alone.legends[0].texts] == ["synthetic rows"]
    heights = [bar.get_height() for bar in beside.axes[1].patches]  # sex: own F, M; synthetic F, M
    shares = own.frame()["sex"].value_counts(normalize=True)
    assert heights[:2] == pytest.approx([100 * shares["F"], 100 * shares["M"]])
    assert sum(heights[2:]) == pytest.approx(100.0)
    assert [len(axes.images) for axes in charts["dependence"].draw().axes[:2]] == [1, 1]


def test_broken_stick_and_suggestion() -> None:
    # Known values for five pieces: (1/5)(1/i + ... + 1/5).
    np.testing.assert_allclose(
        pca_tables.broken_stick(5, 5), [137 / 300, 77 / 300, 47 / 300, 27 / 300, 12 / 300], rtol=1e-12
    )
    spectrum = pca_tables.Spectrum(np.array([6.0, 3.0, 0.5]), np.array([0.6, 0.3, 0.05]), 10.0, 5)
    assert pca_tables.suggested(spectrum) == 2
    assert "2 (the broken-stick rule" in pca_tables.suggestion_words(spectrum)
    flat = spectrum._replace(shares=np.array([0.2, 0.2, 0.2]))
    assert pca_tables.suggestion_words(flat).startswith("No component stands out (the broken-stick rule")


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
    page = report_html(large_result(rows=60_000, columns=760, components=5))
    assert len(page.encode()) <= 5_000_000
    assert page.count('class="live"') == 4  # scree, projections, circle, contributions
    stacked = [len(array) for array in held(page) if array.dtype == np.float32]
    assert sum(stacked) == 5 * 60_000  # every point once


# ---- in a browser ----

_PLOT = "Bokeh.documents.flatMap((d) => d.roots()).find((r) => r.name === %s)"
_BLACK = """() => [...document.querySelectorAll(".still svg text")]
  .filter((one) => getComputedStyle(one).fill === "rgb(0, 0, 0)").map((one) => one.textContent)"""
_LABEL = f"(name) => {_PLOT % 'name'}.below[0].axis_label"
_OUTLINES = f"""() => {_PLOT % "'ellipses'"}.renderers.filter((r) => r.name === "outline")
  .map(({{ glyph }}) => [glyph.x.field, glyph.y.field])"""


@pytest.mark.timeout(300)
def test_a_browser_draws_every_interactive_chart_without_an_error(tmp_path: Path) -> None:
    page_of = report_html(pca_result(ellipses=True))
    (tmp_path / "report.html").write_text(page_of, encoding="utf-8")
    with browser() as chromium:
        watched = Watched(chromium, tmp_path / "pictures", color_scheme="dark")
        page = watched.open((tmp_path / "report.html").as_uri())
        marked(page, "ready")
        assert page.locator("#chart-contributions .still").is_visible()  # nobody has come near it yet
        assert page.locator("[data-live=yes]").count() < 4
        all_live(page)
        shown = ("scree", "projections", "ellipses", "contributions")
        assert page.locator("[data-live=yes]").count() == len(shown)
        for name in shown:
            assert is_drawn(page.locator(f"#live-{name}")), name
        for chart in ("projections", "ellipses"):
            before = page.locator(f"#live-{chart}").screenshot()
            page.locator(f"#chart-{chart}").get_by_label("Across").select_option("PC3")
            assert page.evaluate(_LABEL, chart).startswith("PC3")
            until(
                page, lambda chart=chart, before=before: page.locator(f"#live-{chart}").screenshot() != before
            )
        assert page.evaluate(_OUTLINES) == [["PC3", "PC2|PC3"]] * 2
        page.locator("[data-still=projections]").click()
        assert set(page.evaluate(_BLACK)) == set()  # words that nobody could read on a dark page
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
