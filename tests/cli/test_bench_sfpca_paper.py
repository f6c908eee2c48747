"""``atoll bench sfpca-paper``: what it counts, what it measures, and what it prints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.running import atoll
from tests.support.slot_runs import INSECURE, Twin

from atoll.bench import paper, paper_counts
from atoll.bench.paper_counts import Setting, counted
from atoll.bench.slot_rates import Rates, measured
from atoll.cli import bench_paper
from atoll.crypto import slots
from atoll.protocols.pca.sfpca.paper import counts
from atoll.protocols.pca.sfpca.paper.algorithm1 import Own, Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.secret_matrices.slots import costs
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.clear import together
from atoll.secret_matrices.slots.machine import Operation


@pytest.fixture(scope="module")
def rates() -> Rates:
    return measured(INSECURE, for_tests=True)


def test_counts_are_made_for_the_papers_set() -> None:
    chosen = slots.find("paper-14")
    assert (chosen.slots, chosen.top, chosen.refresh_level) == (paper_counts.SLOTS, costs.FRESH, costs.LOWEST)


def test_the_counted_steps_are_those_of_a_run_on_numbers() -> None:
    setting = Setting((20, 20), 4, p=2, psi=1, alpha=1, w=1)
    rows = np.random.default_rng(1).normal(size=(2, 20, 4)) * [2, 1, 0.5, 0.2]
    machines = Twin.machines(2, slots=8192, fresh_level=9, lowest=2)
    plan = Plan(
        Shape(setting.rows, 4, 1, 2),
        Course("precomp", "qr"),
        Algorithm(p=2, alpha=1, w=1),
        Recording(),
        (0, 0),
        counts.Stretched(),
    )
    own = [None, *(Own(table, table[:2]) for table in rows)]
    asyncio.run(together(lambda m, mine: principal(m, plan, mine), machines, own))
    found = counted(setting, "precomp")
    for step in "234567":
        for tally, machine in ((found.coordinator, machines[0]), (found.provider, machines[1])):
            assert tally.parts.get(step) == machine.tally.parts.get(step)
    assert found.provider.parts["4"][Operation.REFRESH] > 0


def test_rows_of_several_ciphertexts_count_up_to_so_many_times_but_for_the_small_matrix() -> None:
    """Series are of single numbers, and what a dot product is rotated by does not grow."""
    letters: dict[str, Any] = {"p": 1, "psi": 1, "alpha": 1, "w": 1}
    one, two = (counted(paper_counts.even(12, m, **letters), "seq") for m in (8192, 16_384))
    for kind in (Operation.MULTIPLY, Operation.ROTATE, Operation.REFRESH):
        small = one.coordinator.parts["6"][kind]
        short, long = (t.coordinator.total[kind] - small for t in (one, two))
        assert short < long <= 2 * short or (kind is Operation.ROTATE and short == long)


def test_the_cheaper_method_is_named() -> None:
    for name in ("pima", "chr20"):
        setting = paper.SETTINGS[name]._replace(p=1)
        due = counted(setting, "seq" if name in paper.SEQ else "precomp")
        assert counted(setting).provider.total == due.provider.total


def test_rates_are_of_the_right_order(rates: Rates) -> None:
    """A rotation takes many times what a sum does; extrapolations grow with their counts."""
    assert rates.fresh["Rot"] > 5 * rates.fresh["c + c'"]
    assert rates.fresh["c · c'"] > rates.fresh["v · c"] > 0
    assert all(rates.steps.each[kind] >= 0 for kind in Operation)
    few, many = (paper.processor_seconds(counted(Setting((20, 20), 4, p, 1, 1, 1)), rates) for p in (2, 8))
    assert 0 < few < many < 4 * few + 1


def test_figure_5_stands_beside_the_fast_variant(rates: Rates) -> None:
    row = paper.figure5_row("pima", rates)
    assert (row.letters, row.method, row.paper_seconds) == ("5,1,1,5", "precomp", 144)
    assert row.fast_processor_seconds > 0
    assert row.island_gigabytes > row.fast_island_gigabytes > 0


def test_tables_are_narrow(
    rates: Rates, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    bench_paper.shown(rates)
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    for words in ("Table 2", "QR^T, 8 x 256", "Table 1", "extrapolated, not run", "mnist", "200 islands"):
        assert words in shown


def test_what_cannot_be_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOLL_DATA", raising=False)
    for arguments, words in (
        (("--run", "iris"), "there is no case"),
        (("--run", "pima"), "needs its data sets"),
        (("--run", "pima", "--data", str(tmp_path)), "there is no file"),
    ):
        finished = atoll("bench", "sfpca-paper", *arguments)
        assert finished.code == 3
        assert words in finished.err
