"""The papers' figures, on tiny generated tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.synthesis import Case
from reproduce import (
    common,
    descent,
    dpdpca_figure3,
    dpdpca_figure4,
    dpdpca_figure5,
    methods,
    secure_descent,
    secure_sum_figure2,
    synthesis_figures,
)
from reproduce.common import Line

from atoll.privacy.paper_forms import centred_scatter
from atoll.randomness import fresh_seed
from benchmarks import plain_elgamal


def test_missing_public_data_are_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(common.DATA_VARIABLE, str(tmp_path))
    with pytest.raises(common.DataMissing, match="cnae9: no file"):
        common.public_data("cnae9")
    np.savez(tmp_path / "cnae9.npz", X=np.eye(3, dtype=np.uint8), y=np.arange(3))
    rows, labels = common.public_data("cnae9")
    assert rows.dtype == np.float64
    assert labels.tolist() == [0, 1, 2]


def test_the_generated_table_has_the_spectrum_that_it_says() -> None:
    table = common.generated_table(20_000, 6, 1, decay=1.0)
    values = np.sqrt(np.linalg.eigvalsh(np.cov(table.T))[::-1])
    assert values == pytest.approx(1.0 / np.arange(1, 7), rel=0.1)


def test_means_and_deviations_reach_the_file(tmp_path: Path) -> None:
    lines = [Line("p", "m", 2.0, "F1", run, value) for run, value in enumerate((0.5, 0.7))]
    common.write_csv(tmp_path / "new" / "t.csv", lines, "owners")
    with (tmp_path / "new" / "t.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["panel"], row["method"], row["owners"], row["runs"]) == ("p", "m", "2", "2")
    assert float(row["mean"]) == pytest.approx(0.6)
    assert float(row["std"]) == pytest.approx(0.1414, rel=1e-2)


def test_with_little_noise_every_method_finds_the_exact_components() -> None:
    table = common.unit_rows(common.generated_table(3_000, 6, 2))
    scatter, k, seed = centred_scatter(table), 2, fresh_seed()
    best = methods.captured(methods.exact(table, k), scatter)
    found = {
        "ours": methods.ours(table, k, 5, 100.0, 0.1, seed),
        "printed": methods.as_printed(scatter, k, 100.0, 0.1, seed),
    }
    for name, components in found.items():
        assert components.shape == (k, 6)
        assert methods.captured(components, scatter) > 0.97 * best, name
    moments = table.T @ table
    local = methods.owner_after_owner(np.array_split(table, 5), k, 100.0, 0.1, seed)
    uncentred = methods.captured(methods.top(moments, k), moments)
    assert methods.captured(local, moments) > 0.98 * uncentred
    assert methods.captured(methods.random_directions(6, k, 0), scatter) < 0.9 * best


def test_figure_5_measures_and_draws(tmp_path: Path) -> None:
    table = common.generated_table(2_000, 8, 3)
    lines = dpdpca_figure5.measure("tiny", table, 2, (0.5, 50.0), 2, fresh_seed())
    numbers = common.summary(lines)
    best = numbers["tiny", methods.NONE, 50.0, "captured"][0]
    for method in (methods.OURS, methods.PRINTED):
        assert numbers["tiny", method, 50.0, "captured"][0] == pytest.approx(best, abs=0.03)
        assert numbers["tiny", method, 0.5, "captured"][0] < best
    panel = dpdpca_figure5.Panel("tiny", 2, lambda: table)
    common.finish(dpdpca_figure5.draw(lines, [panel]), lines, tmp_path, "five", "epsilon")
    assert (tmp_path / "five.png").stat().st_size > 10_000
    assert (tmp_path / "five.csv").read_text().count("\n") == 1 + 4 * 2


def test_figure_4_measures_and_draws(tmp_path: Path) -> None:
    table, labels = dpdpca_figure4.two_classes(200, 20, 1)
    lines = dpdpca_figure4.measure("tiny", table, labels, (5, 20), 0, fresh_seed())
    assert {line.method for line in lines} == set(methods.LOOKS)
    assert {line.measure for line in lines} == set(dpdpca_figure4.MEASURES)
    assert all(0.0 <= line.value <= 1.0 for line in lines)
    exact = common.summary(lines)["tiny", methods.NONE, 20.0, "F1"][0]
    assert exact > 0.7
    common.finish(dpdpca_figure4.draw(lines, ["tiny"]), lines, tmp_path, "four", "samples_per_owner")
    assert (tmp_path / "four.png").stat().st_size > 10_000


def test_figure_4_takes_the_local_rank() -> None:
    table = np.vstack([np.eye(4), np.eye(4)])
    assert dpdpca_figure4.local_rank(table, 3) == 3
    assert dpdpca_figure4.local_rank(table, 8) == 4


def test_figure_3_measures_and_draws(tmp_path: Path) -> None:
    lines = dpdpca_figure3.measure("tiny", common.generated_table(300, 6, 4), 3, 0)
    numbers = {line.method: line.value for line in lines}
    assert set(numbers) == set(dpdpca_figure3.LOOKS)
    assert all(value > 0 for value in numbers.values())
    assert numbers[dpdpca_figure3.AHEAD] <= numbers[dpdpca_figure3.IN_TURN]
    common.finish(dpdpca_figure3.draw(lines, "tiny"), lines, tmp_path, "three", "owners")
    assert (tmp_path / "three.png").stat().st_size > 10_000


def test_a_figure_is_drawn_without_the_public_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(common.DATA_VARIABLE, str(tmp_path))
    small = dpdpca_figure5.Panel("generated", 2, lambda: common.generated_table(500, 5, 5))
    monkeypatch.setattr(dpdpca_figure5, "PANELS", (small, dpdpca_figure5.PANELS[1]))
    assert dpdpca_figure5.main(["--quick", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "left out: facebook_comments_testset" in said
    assert (tmp_path / "dpdpca_figure5.csv").is_file()


def test_figure_2_of_the_secure_sum_paper(tmp_path: Path) -> None:
    lines = secure_sum_figure2.measure(200, (4, 12), 1)
    found = common.summary(lines)
    sent = {(name, d): mean for (_, name, d, what), (mean, *_) in found.items() if what == "megabytes"}
    one, rotated = "ElGamal, one order (ssp_v1)", "ElGamal, rotated orders (ssp_v2)"
    assert sent[one, 12] > 2 * sent[one, 4]  # thirteen values against five
    assert sent[rotated, 12] > sent[one, 12]  # more messages for the same values
    common.finish(secure_sum_figure2.draw(lines), lines, tmp_path, "figure2", "attributes")
    assert (tmp_path / "figure2.png").stat().st_size > 10_000


def test_figures_3_to_8_of_the_secure_sum_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure_descent, "QUICK_ROWS", 90)
    monkeypatch.setattr(secure_descent, "QUICK_STEPS", 1)
    lines = secure_descent.measure(7, 1, quick=True)
    lines += [line for line in secure_descent.measure(6, 1, quick=True) if line.x == 100]
    found = common.summary(lines)
    assert {name for _, name, *_ in found} == {descent.CT, descent.DT, descent.SHARES}
    error = {name: mean for (_, name, x, what), (mean, *_) in found.items() if (what, x) == ("error", 100)}
    assert error[descent.CT] == pytest.approx(error[descent.SHARES], rel=1e-8)
    common.finish(secure_descent.draw(7, lines), lines, tmp_path, "figure7", "x")
    assert (tmp_path / "figure7.png").stat().st_size > 10_000
    for points in secure_descent.FIGURES.values():
        assert all(point.methods for point in points())


def test_the_plain_elgamal_that_ours_is_compared_with_is_right() -> None:
    values = [[3, 1_000_000], [0, 12345]]
    assert sorted(plain_elgamal.mixed(values)) == [0, 3, 12345, 1_000_000]


def test_synthetic_rows_are_drawn_and_measured_for_every_figure(tmp_path: Path) -> None:
    """A table whose last column follows the first: learned from rows of ours under little noise, too."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (3_000, 4))
    codes[:, 3] = np.where(rng.random(3_000) < 0.9, codes[:, 0], 1 - codes[:, 0])
    case = Case(codes, (2,) * 4, {"last": (3, np.array([False, True]))})
    data = synthesis_figures.split("nltcs", case, 0)
    lines = list(synthesis_figures.figure3(data, quick=True))
    numbers = common.summary(lines)
    panel = synthesis_figures.panel(3, "nltcs", "last")
    best = numbers[panel, synthesis_figures.NONE, 0.4, "accuracy"][0]
    assert best > 0.87
    assert numbers[panel, synthesis_figures.OURS, 0.4, "accuracy"][0] > best - 0.05
    assert {line.method for line in lines} == {"no privacy", "ours", synthesis_figures.PAPER}
    assert len(synthesis_figures.published(data, 0.1, 2)) == len(data.train)
    shares = synthesis_figures.exact_shares(data)
    assert shares.sum() == pytest.approx(1.0)
    (tmp_path / "peers.csv").write_text(f'"{panel}",AIM (pooled rows),0.4,0,0.8\n')
    lines += synthesis_figures.peers(tmp_path / "peers.csv", 3)
    common.finish(synthesis_figures.draw(lines, 3), lines, tmp_path, "synthesis_figure3", "epsilon")
    assert (tmp_path / "synthesis_figure3.png").stat().st_size > 5_000
    assert "AIM (pooled rows)" in (tmp_path / "synthesis_figure3.csv").read_text()
