"""Predicted seconds and memory of SF-PCA: how clocks run, where rates come from, and what then happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.support.examples import EXAMPLES, sfpca
from tests.support.running import atoll

from atoll.errors import DataError
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.protocols.pca.sfpca.planner import Shape, planned
from atoll.review.study import Guess, review_study
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.costs import rates
from atoll.secret_matrices.costs.costing import Costing, Memory
from atoll.secret_matrices.costs.timing import Effort, Links, Timeline

EVERYBODY = np.array([True, True])


def lines(cores: int = 2, latency: float = 1.0, bandwidth: float = 10.0) -> list[Timeline]:
    return [Timeline(2, Links(latency, bandwidth), cores, together=together) for together in (True, False)]


# ---- clocks ----


def test_work_is_done_side_by_side_only_where_there_are_cores() -> None:
    together, apart = lines(cores=2)
    effort = Effort(2, (together, apart))
    effort.provider(6.0, width=8)
    assert (together.seconds, apart.seconds) == (6.0, 3.0)
    effort.provider(4.0)  # one part: one core each
    assert (together.seconds, apart.seconds) == (10.0, 7.0)
    effort.provider(1.0, alone=True)  # holds the interpreter
    assert (together.seconds, apart.seconds) == (12.0, 8.0)
    assert list(effort.providers) == [11.0, 11.0]


def test_messages_wait_for_the_link_and_for_their_sender() -> None:
    _, apart = lines()
    apart.gathered(20, EVERYBODY)  # 2 s on the link, 1 s of latency
    assert apart.coordinator == 3.0
    apart.gathered(20, EVERYBODY)  # behind the first
    assert apart.coordinator == 5.0
    apart.broadcast(0, EVERYBODY)
    assert list(apart.providers) == [6.0, 6.0]


def test_the_coordinator_waits_for_the_slowest() -> None:
    _, apart = lines()
    effort = Effort(2, (apart,))
    effort.provider(5.0, who=[1])
    apart.gathered(0, EVERYBODY)
    assert apart.coordinator == 6.0
    assert list(effort.providers) == [0.0, 5.0]


def test_memory_is_given_back_when_its_holder_dies() -> None:
    memory = Memory()
    first = memory.allocate(5)
    memory.touch(3)
    del first
    second = memory.allocate(6)
    assert (memory.now, memory.most, memory.lasting, memory.passing) == (6, 8, 6, 2)
    del second


# ---- where rates come from ----


def test_the_shipped_table_knows_every_ring() -> None:
    from atoll.crypto import products

    shipped = rates.shipped()
    assert set(shipped.rings) == set(products.rings())
    assert "came with the package" in shipped.origin
    assert f"(vector path {shipped.path})" in shipped.origin
    assert rates.current() == shipped


@pytest.mark.parametrize(
    ("path", "serves"), [("ifma", "ifma"), ("avx2", "avx2"), ("scalar", "scalar"), ("neon", "avx2")]
)
def test_every_path_has_a_shipped_table_or_the_nearest(
    monkeypatch: pytest.MonkeyPatch, path: str, serves: str
) -> None:
    monkeypatch.setattr(rates, "vector_path", lambda: path)
    assert rates.shipped().path == serves


def test_measured_tables_of_other_paths_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rates.FILE_VARIABLE, str(tmp_path / "table.json"))
    tables = {
        name: msgspec.structs.replace(rates.shipped(), path=name, cores=cores, origin="measured")
        for name, cores in (("avx2", 5), ("scalar", 7))
    }
    for table in tables.values():
        rates.store(table)
    for name, table in tables.items():
        monkeypatch.setattr(rates, "vector_path", lambda name=name: name)
        assert rates.current() == table
    monkeypatch.setattr(rates, "vector_path", lambda: "ifma")
    assert "came with the package" in rates.current().origin


def test_a_table_of_another_version_is_left_alone_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.json"
    monkeypatch.setenv(rates.FILE_VARIABLE, str(path))
    tables = {rates.shipped().path: rates.shipped()}
    for earlier in (b'{"cores": 2}', msgspec.json.encode(tables), b'{"version": 99, "rings": 3}'):
        path.write_bytes(earlier)
        found = rates.current()
        assert found.rings == rates.shipped().rings
        assert found.origin.endswith(f"; {path} is of another version of Atoll")
    assert any("another version of Atoll" in line for line in foreseen(30).assumes)
    rates.store(rates.shipped())
    assert rates.current() == rates.shipped()


def test_a_table_of_other_rings_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rates.FILE_VARIABLE, str(tmp_path / "table.json"))
    came = rates.shipped()
    renamed = {f"old {name}": rate for name, rate in came.rings.items()}
    rates.store(msgspec.structs.replace(came, rings=renamed))
    assert rates.current().rings == came.rings
    assert foreseen(30).seconds_apart > 0


def test_a_measured_table_is_preferred_and_a_broken_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rates.FILE_VARIABLE, str(tmp_path / "deep" / "table.json"))
    mine = msgspec.structs.replace(rates.shipped(), cores=7, origin="measured")
    path = rates.store(mine)
    assert rates.current() == mine
    path.write_text(f'{{"version": {rates.VERSION}, "tables": {{"avx2": 7}}}}')
    with pytest.raises(DataError, match="not a table"):
        rates.current()


def test_a_user_without_settings_has_a_folder_of_his_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(rates.FILE_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert rates.file() == tmp_path / "atoll" / "calibration.json"


# ---- what is said ----


def foreseen(columns: int, rows: int = 1000, **parameters: Any) -> Any:
    return forecast(sfpca(**parameters).study, Circumstances(columns, (rows,) * 3))[1]


def test_the_recipe_is_explained_by_what_it_opens_then_by_its_cost() -> None:
    few = foreseen(30).course
    assert few[0].startswith("direct, because it opens all 30 eigenvalues where strict would open 26")
    assert few[1].startswith("strict (default policy) instead: ")
    many = foreseen(100).course
    assert many[0].startswith("strict (default policy), because it opens 26 numbers of the spectrum")
    assert many[1].startswith("direct instead: ")
    assert "accurate policy" in many[2]
    assert "the study asks for recipe='fast'" in foreseen(100, recipe="fast", retry=False).course[0]
    assert len(foreseen(300).course) == 2  # too many columns for direct


def test_more_of_anything_takes_longer() -> None:
    base = foreseen(100)
    study = sfpca().study
    assert foreseen(100, rows=10**6).processor_provider > base.processor_provider
    assert foreseen(200).seconds_apart > base.seconds_apart
    slow = forecast(study, Circumstances(100, (1000,) * 3, latency=0.5))[1]
    narrow = forecast(study, Circumstances(100, (1000,) * 3, bandwidth=1e6))[1]
    assert min(slow.seconds_apart, narrow.seconds_apart) > 2 * base.seconds_apart
    assert slow.processor_provider == base.processor_provider


def test_assumptions_are_named() -> None:
    unknown = forecast(sfpca().study, Circumstances(30))[1].assumes
    assert "16,384 rows on each island (--rows)" in unknown
    assert "links of 20 ms and 1,000 Mbit/s between every two parties" in unknown
    assert any("came with the package" in line for line in unknown)
    assert "3,000 rows in all" in foreseen(30).assumes


def test_other_protocols_make_no_forecast() -> None:
    from tests.support.examples import pppca

    cost = review_study(pppca().study, 30).cost
    assert cost is not None
    assert cost.forecast is None


STUDY = """
[study]
name = "x"
protocol = "sfpca"
[[party]]
name = "n"
role = "provider"
[[party]]
name = "s"
role = "provider"
[[party]]
name = "o"
roles = ["coordinator", "consumer"]
[release]
components = ["consumer"]
[local]
data = { n = "n.csv", s = "s.csv" }
"""


def test_review_counts_rows_or_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    for name, rows in (("n", 40), ("s", 10)):
        np.savetxt(f"{name}.csv", np.ones((rows, 3)), delimiter=",", header="a,b,c", comments="")
    shown = atoll("review", "study.toml")
    assert "Expected time and memory" in shown.out
    assert "50 rows in all" in shown.out
    told = ("--rows", "7", "--latency", "100", "--bandwidth", "10")
    plain = json.loads(atoll("review", "study.toml", *told, "--json").out)["cost"]["forecast"]
    assert "14 rows in all" in plain["assumes"]
    assert "links of 100 ms and 10 Mbit/s between every two parties" in plain["assumes"]
    assert "Expected time: " in atoll("review", "study.toml", "--markdown").out
    Path("s.csv").unlink()
    assert "16,384 rows on each island" in atoll("review", "study.toml").out


# ---- measured here ----


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[rates.Rates, str]]:
    """The rates of this machine, by the command, and what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(rates.FILE_VARIABLE, str(tmp_path_factory.mktemp("rates") / "table.json"))
        patch.setattr("atoll.bench.timing._LEAST_SECONDS", 0.005)
        finished = atoll("bench", "calibrate")
        assert finished.code == 0, finished.err
        yield rates.current(), finished.out


def test_calibration_measures_and_shows_every_step(measured: tuple[rates.Rates, str]) -> None:
    table, printed = measured
    assert table.origin == "measured on this machine"
    for name, ring in table.rings.items():
        assert name in printed
        assert 1e-6 < ring.multiply < 1e-2
        assert ring.multiply < ring.encrypt.each
    assert 1e-8 < table.python.times_public < 1e-5
    assert "kept in" in printed


@pytest.mark.parametrize("recipe", ["direct", "strict"])
def test_processor_time_is_predicted(measured: tuple[rates.Rates, str], recipe: str) -> None:
    """Within a factor of three. Other work on the machine only adds time: the least of some runs counts."""
    example = sfpca(recipe=recipe)
    rows = [island.n_rows for island in example.islands.values()]
    costing = Costing(measured[0], Effort(len(rows)))
    planned(example.study, {"strict": "default"}.get(recipe, recipe), Shape(rows, 4, 2), costing)
    provider = coordinator = float("inf")
    for _ in range(6):
        roles = run_study(
            example.study, example.own, engine=LocalEngine(one_at_a_time=True)
        ).result.transcript.roles
        busiest = max(cost.cpu_seconds for role, cost in roles.items() if role.endswith("/provider"))
        provider = min(provider, busiest)
        coordinator = min(coordinator, roles["coordinator/coordinator"].cpu_seconds)
        if (
            provider < 3 * costing.effort.providers.max()
            and coordinator < 3 * costing.effort.coordinator_seconds
        ):
            break
    assert provider / 3 < costing.effort.providers.max() < 3 * provider
    assert coordinator / 3 < costing.effort.coordinator_seconds < 3 * coordinator


@pytest.mark.parametrize("name", ["sfpca-scores", "sfpca-columns"])
def test_other_forms_have_a_forecast(name: str) -> None:
    expected, said = forecast(EXAMPLES[name]().study, Circumstances(6, (100,) * 3))
    assert 0 < said.seconds_apart < 60
    assert expected.messages > 100


def test_the_known_rows_decide_the_form_and_so_the_bytes() -> None:
    study = sfpca().study
    few, many = (forecast(study, Circumstances(2000, (n,) * 3))[0] for n in (50, 5000))
    assert few.bytes_per_provider != many.bytes_per_provider
    shown = review_study(study, 2000, guess=Guess((50,) * 3)).cost
    assert shown is not None
    assert shown.bytes_per_provider == few.bytes_per_provider
