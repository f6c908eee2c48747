"""What the benchmarks of SF-PCA say of their measurements."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.sfpca_runs import Measured, Point, made_rows, measure

from atoll.bench.figure5 import compared, exact_components, meta_analysis
from atoll.secret_matrices.costs import rates
from benchmarks import sfpca_predict, sfpca_profile, sfpca_scaling

RUN = Measured(4.0, 2.0, 1.0, 0.5, 10**6, 250, 100.0, 1e-3, {"seconds": 5.0})


def test_exponents_are_slopes_of_logarithms() -> None:
    assert sfpca_scaling.exponent([1, 10, 100], [3, 30, 300]) == pytest.approx(1)
    assert sfpca_scaling.exponent([2, 4, 8], [5, 5, 5]) == pytest.approx(0)
    assert np.isnan(sfpca_scaling.exponent([1], [3]))


def test_a_second_call_goes_on_where_the_first_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sfpca-components.csv"
    for label in sfpca_scaling.points("components"):
        sfpca_scaling.append(path, label, replace(RUN, provider_cpu=float(label)))
    rows = sfpca_scaling.run("components", tmp_path, time.monotonic(), again=False)
    assert list(rows) == ["1", "2", "5", "10", "20"]
    assert rows["20"]["predicted_seconds"] == 5.0
    sfpca_scaling.report("components", rows, tmp_path)
    assert "+1.00" in capsys.readouterr().out
    assert (tmp_path / "sfpca-components.png").stat().st_size > 1000


def test_points_that_take_too_long_are_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfpca_scaling.run("links", tmp_path, time.monotonic(), again=False) == {}
    assert "left out, it would take some" in capsys.readouterr().out


def test_rows_are_split_as_a_point_asks() -> None:
    even = made_rows(Point(parties=4, rows=100, columns=5))
    one = made_rows(Point(parties=4, rows=100, columns=5, largest=0.7))
    assert [len(block) for block in even] == [25] * 4
    assert [len(block) for block in one] == [70, 10, 10, 10]
    assert np.array_equal(np.vstack(even), np.vstack(one))


def test_a_point_is_measured_and_predicted() -> None:
    point = Point(parties=2, rows=60, columns=4, latency=0.0, bandwidth=1e9, recipe="direct")
    run = measure(point)
    assert run.predicted["provider_bytes"] == pytest.approx(run.provider_bytes, rel=0.25)
    assert 0 < run.provider_cpu < run.apart_seconds * 4
    table = sfpca_predict.compared("made", run)
    assert [row[0] for row in table] == ["made"] * 6
    assert {row[-1] for row in table} <= {"yes", "NO"}


def test_the_bound_has_nothing_but_products() -> None:
    bound = sfpca_profile.only_products(rates.shipped())
    for name, ring in bound.rings.items():
        assert ring.multiply == rates.shipped().rings[name].multiply
        assert ring.encrypt == (0.0, 0.0)
    assert bound.python.message == 0.0


@pytest.mark.parametrize(
    ("library", "symbol", "kind"),
    [
        ("libatoll.so", "[.] atoll_integers_forward_short", "transform (NTT)"),
        ("libatoll.so", "[.] atoll_forward_short", "transform (NTT)"),
        ("libatoll.so", "[.] forward_block", "transform (NTT)"),
        ("libatoll.so", "[.] github.com/tuneinsight/lattigo/v6/ring.nttUnrolled16Lazy", "transform (NTT)"),
        ("libatoll.so", "[.] github.com/tuneinsight/lattigo/v6/ring.(*SubRing).INTT", "transform (NTT)"),
        ("libatoll.so", "[.] atoll_integers_accumulate", "multiply-add"),
        ("libatoll.so", "[.] atoll_add_part", "multiply-add"),
        ("libatoll.so", "[.] atoll/core/vector.accumulate4", "multiply-add"),
        ("libatoll.so", "[.] atoll/core/vector.(*scalar).MultiplyAdd", "multiply-add"),
        ("libatoll.so", "[.] atoll/core/vector.(*scalar).Unpack", "packing"),
        ("libatoll.so", "[.] atoll_unpack_add", "packing"),
        ("libatoll.so", "[.] atoll/core/product.(*Ring).residue", "encoding and lifting"),
        ("libatoll.so", "[.] runtime.memclrNoHeapPointers", "Go's own work"),
        ("", "clear_page_erms", "system: fresh memory, scheduling"),
        ("libpython3.11.so.1.0", "[.] _PyEval_EvalFrameDefault", "Python and NumPy"),
    ],
)
def test_sampled_functions_are_sorted_by_what_they_do(library: str, symbol: str, kind: str) -> None:
    assert sfpca_profile.kind_of(library, symbol) == kind


def test_meta_analysis_is_exact_only_where_nothing_is_cut_off() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 6)) * [6, 5, 4, 3, 2, 1] + 3
    blocks = [X[X[:, 0] > 3], X[X[:, 0] <= 3]]  # split by what matters most
    whole = np.vstack(blocks)
    all_, _ = compared(meta_analysis(blocks, 6), exact_components(whole, 6))
    assert min(all_) > 1 - 1e-9
    two, error = compared(meta_analysis(blocks, 2), exact_components(whole, 2))
    assert 0.5 < min(two) < 1 - 1e-6
    assert error > 0
