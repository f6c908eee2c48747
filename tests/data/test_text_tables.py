"""Text tables with tabs, or packed, are read as the same table in plain csv."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atoll.data.columns import column_names, row_count
from atoll.data.island import Island
from atoll.errors import DataError

FRAME = pd.DataFrame({"age, years": [1.5, 2.5, 3.5], "dose": [4.0, 5.0, 6.0], "kind": ["a", "b\tc", "d,e"]})


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("t.csv", ","),
        ("t.csv.gz", ","),
        ("t.tsv", "\t"),
        ("t.tsv.gz", "\t"),
        ("t.2024.csv", ","),
        ("t.v1.tsv.gz", "\t"),
    ],
)
def test_every_form_is_the_same_table(tmp_path: Path, name: str, separator: str) -> None:
    path = tmp_path / name
    FRAME.to_csv(path, sep=separator, index=False)
    if name.endswith(".gz"):
        assert gzip.decompress(path.read_bytes()).lstrip(b'"').startswith(b"age, years")
    assert column_names(path) == ("age, years", "dose", "kind")
    assert row_count(path) == 3
    island = Island.from_file(path, name="north")
    assert np.array_equal(island.features(["dose", "age, years"]), FRAME[["dose", "age, years"]].to_numpy())
    assert island.labels("kind")[1] == ("a", "b\tc", "d,e")


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz"])
def test_a_header_is_checked_whatever_the_form(tmp_path: Path, name: str) -> None:
    """A row where names should be never leaves, nor does one of two columns of the same name."""
    separator = "\t" if "tsv" in name else ","
    pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]).to_csv(
        tmp_path / name, sep=separator, index=False, header=["7.5", "b"]
    )
    with pytest.raises(DataError, match=r"the name of column 1 of .* is a number"):
        Island.from_file(tmp_path / name)
    pd.DataFrame([[1.0, 2.0]]).to_csv(tmp_path / name, sep=separator, index=False, header=["b", "b"])
    with pytest.raises(DataError, match=r"columns 1 and 2 of .* have the same name"):
        Island.from_file(tmp_path / name)


def test_a_file_that_is_not_packed_as_its_name_says_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"north: t\.csv\.gz cannot be read"):
        Island.from_file(tmp_path / "t.csv.gz", name="north")


def test_an_unknown_packing_is_named_with_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "t.csv.zst").write_text("")
    with pytest.raises(DataError, match=r"t.csv.zst has an ending that is not known .*\.csv\.gz"):
        Island.from_file(tmp_path / "t.csv.zst")
