"""From the command line: an alignment, and an encrypted PCA on the rows that it put in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from tests.support.running import atoll

from atoll.runtime.result import load_result

PARTIES = """\
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
role = "{role}"
"""
ALIGN = (
    """\
[study]
name = "who is in both"
analysis = "alignment"
protocol = "align"
partition = "vertical"
[parameters]
on = "person"
normalise = ["trim", "case"]
"""
    + PARTIES.format(role="matcher")
    + """\
[release]
rows = ["provider"]
order = ["provider", "matcher"]
[local]
data = { north = "north.csv", south = "south.csv" }
"""
)
SFPCA = (
    """\
[study]
name = "both"
protocol = "sfpca"
partition = "vertical"
[parameters]
n_components = 1
columns = ["age", "dose", "pulse"]
accept_determined = true
"""
    + PARTIES.format(role="coordinator")
    + """\
[release]
components = ["provider"]
explained_variance = ["provider"]
[local]
data = { north = "north.csv", south = "south.csv" }
alignments = { north = "out/north/who is in both.atoll", south = "out/south/who is in both.atoll" }
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("align")
    draw = np.random.default_rng(5)
    people = [f"P-{n}" for n in range(60)]
    north = pd.DataFrame({"person": draw.permutation(people)[:50], "age": draw.normal(60, 9, 50)})
    north["dose"] = north["age"] / 9 + draw.normal(size=50)
    south = pd.DataFrame(
        {
            "person": [f" {one.lower()}" for one in draw.permutation(people)[:45]],
            "pulse": draw.normal(70, 8, 45),
        }
    )
    north.to_csv(folder / "north.csv", index=False)
    south.to_csv(folder / "south.csv", index=False)
    (folder / "align.toml").write_text(ALIGN)
    (folder / "both.toml").write_text(SFPCA)
    done = atoll("run", str(folder / "align.toml"), "--output", str(folder / "out"))
    assert done.code == 0, done.err
    assert "common" in done.out
    return folder


def result_of(folder: Path, party: str) -> Path:
    return next((folder / "out" / party).glob("*.atoll"))


def test_each_island_gets_its_own_rows_and_the_matcher_none(folder: Path) -> None:
    for party in ("north", "south"):
        assert set(load_result(result_of(folder, party))["rows"]) == {party}
    assert "rows" not in load_result(result_of(folder, "office"))


def test_the_review_says_who_counts_what(folder: Path) -> None:
    said = atoll("review", str(folder / "align.toml"))
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert "which of its own rows all islands have" in words
    assert "how many rows each island has" in words


def later(folder: Path) -> Path:
    study = folder / "both.toml"
    text = SFPCA
    for party in ("north", "south"):
        text = text.replace(f"out/{party}/who is in both.atoll", str(result_of(folder, party)))
    study.write_text(text)
    return study


def test_a_later_study_takes_the_rows_in_that_order(folder: Path, tmp_path: Path) -> None:
    done = atoll("run", str(later(folder)), "--output", str(tmp_path))
    assert done.code == 0, done.err
    north, south = (pd.read_csv(folder / f"{name}.csv") for name in ("north", "south"))
    south["person"] = south["person"].str.strip().str.upper()
    joined = north.merge(south, on="person")[["age", "dose", "pulse"]]
    expected = PCA(1).fit(joined).explained_variance_
    found = load_result(next((tmp_path / "north").glob("*.atoll")))["explained_variance"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_table_that_changed_since_is_refused(folder: Path, tmp_path: Path) -> None:
    changed = later(folder).read_text().replace('"north.csv"', '"changed.csv"')
    pd.read_csv(folder / "north.csv").iloc[::-1].to_csv(folder / "changed.csv", index=False)
    (folder / "changed.toml").write_text(changed)
    done = atoll("run", str(folder / "changed.toml"), "--output", str(tmp_path / "none"))
    assert done.code != 0
    assert "north: the table has changed since its rows were aligned" in done.err
    assert "hint:" in done.err
    assert not (tmp_path / "none").exists() or not any((tmp_path / "none").iterdir())


def test_a_file_that_is_no_alignment_is_refused(folder: Path) -> None:
    mixed = (
        later(folder).read_text().replace(str(result_of(folder, "north")), str(result_of(folder, "south")))
    )
    (folder / "mixed.toml").write_text(mixed)
    done = atoll("run", str(folder / "mixed.toml"))
    assert done.code != 0
    assert "is not this island's result of an alignment" in done.err
