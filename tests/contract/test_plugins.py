"""Secure sums and protocols of other packages: found by name, run like Atoll's own, refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.packages import REGISTRIES, install
from tests.support.running import atoll as command

import atoll
from atoll import secure_sums
from atoll.data.columns import column_names
from atoll.data.island import as_island
from atoll.errors import DataError, MissingComponent, StudyError
from atoll.protocols import PROTOCOLS, protocol_of
from atoll.registry import Registry
from atoll.secure_sums import SecureSum

TOY = """
from dataclasses import replace

from atoll.protocols.summation import PROTOCOL
from atoll.secure_sums import SumOptions
from atoll.secure_sums.shares import Shares


class ToyOptions(SumOptions, frozen=True):
    flavour: str = "plain"


class Toy(Shares):
    options_type = ToyOptions
    hides = "what an island sends is hidden by a toy"


TOY_SUM = replace(PROTOCOL, name="toy-sum", title="Toy sum")
NOT_A_SUM = 3
"""

STUDY = """
[study]
name = "toy"
protocol = "toy-sum"
analysis = "sum"
secure_sum = "toy"
[parameters]
length = 2
[[party]]
name = "north"
role = "contributor"
[[party]]
name = "south"
role = "contributor"
[[party]]
name = "office"
role = "receiver"
[release]
total = ["receiver"]
"""


@pytest.fixture
def toys(site: Path) -> Path:
    (site / "toy_of_a_stranger.py").write_text(TOY)
    return site


def test_a_strangers_secure_sum_and_protocol_run_and_are_reviewed(toys: Path, tmp_path: Path) -> None:
    install(
        toys,
        "stranger",
        "[atoll.secure_sums]\ntoy = toy_of_a_stranger:Toy\n"
        "[atoll.protocols]\ntoy-sum = toy_of_a_stranger:TOY_SUM\n",
    )
    assert np.array_equal(atoll.secure_sum([[1.0, 2.0], [10.0, 20.0]], method="toy"), [11.0, 22.0])
    (tmp_path / "toy.toml").write_text(STUDY)
    finished = command("review", str(tmp_path / "toy.toml"), "--markdown")
    assert finished.code == 0, finished.err
    assert "hidden by a toy" in finished.out
    study = atoll.load_study(tmp_path / "toy.toml")
    assert dict(study.sum_options) == {"flavour": "plain"}
    assert study.digest in finished.out
    assert protocol_of("toy-sum").title == "Toy sum"


def test_nothing_of_a_package_is_imported_before_it_is_asked_for(toys: Path) -> None:
    install(toys, "stranger", "[atoll.secure_sums]\ntoy = toy_of_a_stranger:Toy\n")
    assert secure_sums.method("shares").__name__ == "Shares"
    with pytest.raises(StudyError, match="no secure sum called 'toi'") as refused:
        secure_sums.method("toi")
    assert "'toy'" in str(refused.value.hint)
    assert "toy_of_a_stranger" not in sys.modules


PROBE = """
import sys
from atoll.data.readers import READERS
from atoll.protocols import protocol_of
from atoll.report.analyses import renderer_of
from atoll.runtime.engines import engine_of
from atoll.secure_sums import method
found = "csv" in READERS, protocol_of("pppca"), renderer_of("pca"), engine_of("local"), method("shares")
assert "importlib.metadata" not in sys.modules
assert "mine" not in READERS
assert "importlib.metadata" in sys.modules
"""


def test_built_in_names_are_found_without_a_search_of_packages() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("toy = nowhere_to_be_found:Toy", "'toy' of the package 'stranger' cannot be loaded: ModuleNotFound"),
        ("toy = toy_of_a_stranger:Missing", "cannot be loaded: AttributeError"),
        ("toy = toy_of_a_stranger:NOT_A_SUM", "NOT_A_SUM of the package 'stranger' is not a secure sum"),
        (
            "toy = toy_of_a_stranger:Toy\nshares = toy_of_a_stranger:Toy",
            "'stranger' brings a secure sum called 'shares', which Atoll has itself",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_package(toys: Path, entry: str, said: str) -> None:
    install(toys, "stranger", f"[atoll.secure_sums]\n{entry}\n")
    with pytest.raises(MissingComponent, match=said):
        secure_sums.method("toy")
    assert secure_sums.method("shares").__module__ == "atoll.secure_sums.shares"


def test_two_packages_cannot_bring_one_name(toys: Path) -> None:
    install(toys, "one", "[atoll.secure_sums]\ntoy = toy_of_a_stranger:Toy\n")
    install(toys, "other", "[atoll.secure_sums]\ntoy = toy_of_a_stranger:Other\n")
    with pytest.raises(MissingComponent, match="'one' and the package 'other' both bring a secure sum"):
        secure_sums.method("toy")


def test_built_in_names_are_where_they_are_said_to_be() -> None:
    for registry in REGISTRIES:
        assert isinstance(registry, Registry)
        assert len(dict(registry)) == len(registry)
    assert all(issubclass(kind, SecureSum) for kind in secure_sums.METHODS.values())
    assert all(protocol.name == name for name, protocol in PROTOCOLS.items())
    assert len({registry.group for registry in REGISTRIES}) == len(REGISTRIES) == 6


READER = """
import pandas as pd

from atoll.data.readers import Reader


class Pipes(Reader):
    def read(self, path):
        return pd.read_csv(path, sep="|")
"""


def test_a_strangers_format_is_read_by_the_ending_of_the_file(site: Path, tmp_path: Path) -> None:
    (site / "pipes_of_a_stranger.py").write_text(READER)
    install(site, "stranger", "[atoll.readers]\npipes = pipes_of_a_stranger:Pipes\n")
    table = tmp_path / "ward.pipes"
    table.write_text("age|dose\n1|2.5\n3|4\nold|6\n")
    island = as_island("ward", table)
    assert (island.columns, island.n_rows, column_names(table)) == (("age", "dose"), 3, ("age", "dose"))
    with pytest.raises(DataError, match=r"ward: column 'age' holds text at row 2 \("):
        island.features(["age"])
    with pytest.raises(DataError, match="an ending that is not known") as refused:
        as_island("ward", tmp_path / "ward.tubes")
    assert (
        str(refused.value.hint) == "one of .csv, .csv.gz, .tsv, .tsv.gz, .parquet, .npz, .bed, .h5ad, .pipes"
    )
