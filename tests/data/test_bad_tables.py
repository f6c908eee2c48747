"""Tables that are not as they should be: each is refused with island, place and what to do."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atoll.data.island import as_island
from atoll.data.readers import csv as csv_reader
from atoll.errors import DataError

ROWS = "".join(f"{i},{i % 7}\n" for i in range(30))
FRAME = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})


def refused(data: Any, said: str) -> DataError:
    """As soon as it is an island, or as soon as it is read."""

    def read() -> None:
        island = as_island("north", data)
        island.check_numbers(island.columns)
        island.features(island.columns)

    with pytest.raises(DataError) as caught:
        read()
    assert caught.value.message.startswith("north: ")
    assert said in caught.value.message
    assert caught.value.hint
    assert "SECRET" not in str(caught.value)
    return caught.value


# ---- text ----

PACKED = gzip.compress(("a,b\n" + ROWS).encode())
TEXT: dict[str, tuple[str, bytes, str]] = {
    "a checksum that is wrong": ("t.csv.gz", PACKED[:-8] + bytes(4) + PACKED[-4:], "it is damaged, or"),
    "something behind the end": ("t.csv.gz", PACKED + b"SECRET", "it is damaged, or something else"),
    "cut in its first bytes": ("t.csv.gz", PACKED[:5], "it ends too early"),
    "UTF-16": ("t.csv", ("a,b\n" + ROWS).encode("utf-16"), "it is not UTF-8 text"),
    "UTF-16 without a mark": ("t.csv", ("a,b\n" + ROWS).encode("utf-16-le"), "it is not UTF-8 text"),
    "decimal commas": ("t.csv", b"a;b\n1,5;2\n", "it has one column only, and ';' in its name"),
    "commas in tsv": ("t.tsv", b"a,b\n1,2\n", "it has one column only, and ',' in its name"),
    "an open quote": (
        "t.csv",
        ("a,note\n" + ROWS + '31,"SECRET\n' + ROWS).encode(),
        "a quote in line 32 is not closed",
    ),
    "two open quotes": (
        "t.csv",
        ("a,note\n" + ROWS + '31,"x\n' + ROWS + '31,"SECRET\n').encode(),
        "text follows a closed quote in line 32 or behind it",
    ),
    "codes": ("t.csv", b"a,b\n1,12_34\n", "column 'b' holds text at row 0 (line 2 of t.csv)"),
    "a zero byte": ("t.csv", b"a,b\n1,2\n1,2\x003\n", "column 'b' holds text at row 1 (line 3 of t.csv)"),
    "thousands": ("t.csv", b'a,b\n1,"2,000"\n', "column 'b' holds text at row 0 (line 2 of t.csv)"),
    "another minus": ("t.csv", "a,b\n1,\u22125\n".encode(), "column 'b' holds text at row 0"),
    "infinite": ("t.csv", b"a,b\n1,2\n1e999,x\n", "column 'b' holds text at row 1"),
    "a name too few": ("t.csv", ("a\n" + ROWS).encode(), "1 value more than its first line has names"),
    "line ends of old": ("t.csv", b"a,b\r1,2\r3,4\r", "its lines are not those of a text file"),
}


@pytest.mark.parametrize("kind", TEXT)
def test_text_that_is_not_as_it_should_be(tmp_path: Path, kind: str) -> None:
    name, data, said = TEXT[kind]
    (tmp_path / name).write_bytes(data)
    refused(tmp_path / name, said)


def test_a_value_beyond_all_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 1 << 14)
    (tmp_path / "t.csv").write_text("a,note\n1,x\n2," + "y" * 150_000 + "\n3,z\n")
    refused(tmp_path / "t.csv", "a value that begins in line 3 has more than 131,072 characters")


LINES: dict[str, tuple[str, int]] = {
    "values over lines": ("n,b\n" + '"x\ny",1\n' * 20 + "z,oops\n", 42),
    "empty lines": ("n,b\n\n\n" + "x,1\n\n" * 20 + "z,oops\n", 44),
    "names over lines": ('"n\nm",b\nx,1\nz,oops\n', 4),
    "empty lines before the names": ("\n\nn,b\nx,1\nz,oops\n", 5),
}


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_the_line_is_that_of_the_file(
    tmp_path: Path, kind: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, line = LINES[kind]
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", size)
    path = tmp_path / "t.csv"
    path.write_text(text)
    island = as_island("north", path)
    with pytest.raises(DataError, match=rf"column 'b' holds text at row \d+ \(line {line} of t\.csv\)"):
        island.check_numbers(["b"])
    path.unlink()
    assert island.place(1) == "row 1 of t.csv"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_header_without_rows_is_a_table_without_rows(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_text("a,b" + end)
    island = as_island("north", tmp_path / "t.csv")
    assert (island.n_rows, island.columns) == (0, ("a", "b"))
    assert island.features(["b"]).shape == (0, 1)


@pytest.mark.parametrize("name", ["t.CSV", "t.Csv.GZ", "T.TSV"])
def test_endings_are_known_in_capital_letters(tmp_path: Path, name: str) -> None:
    text = ("a,b\n" + ROWS).replace(",", "\t" if "TSV" in name else ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("GZ") else text)
    assert np.array_equal(as_island("north", tmp_path / name).features(["a", "b"]), FRAME.to_numpy())


# ---- archives, genotypes, Parquet ----


def archive(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def one_array(folder: Path) -> Path:
    np.save(folder / "t.npy", np.eye(3))
    return (folder / "t.npy").rename(folder / "t.npz")


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


X = np.arange(12.0).reshape(4, 3)
ARCHIVES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "one array": (one_array, "it is one array and no archive"),
    "cut": (lambda folder: cut(archive(folder / "t.npz", X=X)), "it is damaged or cut"),
    "objects": (
        lambda folder: archive(folder / "t.npz", X=np.array([[1, "SECRET"]], object)),
        "holds objects",
    ),
    "no X": (lambda folder: archive(folder / "t.npz", Y=X), "no array called X among Y"),
    "no table": (lambda folder: archive(folder / "t.npz", X=X[0]), "its X has 1 dimensions"),
    "names": (
        lambda folder: archive(folder / "t.npz", X=X, feature_names=["a", "b"]),
        "feature_names is (2,)",
    ),
    "labels": (lambda folder: archive(folder / "t.npz", X=X, y=[1, 2]), "its X has 4 rows, and y is (2,)"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_that_are_not_as_they_should_be(tmp_path: Path, kind: str) -> None:
    make, said = ARCHIVES[kind]
    refused(make(tmp_path), said)


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lines_less(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-5]))


GENOTYPES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "cut": (".bed", shorter, "10 people and 4 variants take 15 bytes, and it has 14"),
    "another fam": (".fam", lines_less, "5 people and 4 variants take 11 bytes, and it has 15"),
    "no fam": (".fam", Path.unlink, "its .bim or its .fam is not beside it"),
    "no bim": (".bim", Path.unlink, "its .bim or its .fam is not beside it"),
    "bim": (".bim", lambda path: path.write_text("1 x\n") and None, "is not as PLINK writes them"),
    "by people": (
        ".bed",
        lambda path: path.write_bytes(b"\x6c\x1b\x00" + bytes(12)) and None,
        "one variant after",
    ),
}


@pytest.mark.parametrize("kind", GENOTYPES)
def test_genotypes_that_are_not_as_they_should_be(tmp_path: Path, kind: str) -> None:
    to_bed = pytest.importorskip("bed_reader").to_bed
    ending, harm, said = GENOTYPES[kind]
    to_bed(tmp_path / "t.bed", np.ones((10, 4)), properties={"sid": [f"rs{i}" for i in range(4)]})
    harm((tmp_path / "t.bed").with_suffix(ending))
    refused(tmp_path / "t.bed", said)


def test_checksums_of_parquet_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.random.default_rng(0).normal(size=3000)})
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # a number that is as good as any
    path.write_bytes(data)
    refused(path, "t.parquet cannot be read any further")


# ---- patterns, links and rights ----


def test_no_part_of_a_table_is_left_out_silently(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "part-0.parquet")
    (tmp_path / "part-1.parquet").symlink_to(tmp_path / "gone.parquet")
    refused(str(tmp_path / "part-*.parquet"), "part-1.parquet fits the pattern part-*.parquet and is no file")
    (tmp_path / "part-1.parquet").unlink()
    (tmp_path / "part-1.parquet").mkdir()
    refused(str(tmp_path / "part-*.parquet"), "part-1.parquet fits the pattern")


def test_a_pattern_of_folders_is_said(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "*" / "part-?.csv"), "there is no file")
    assert "a pattern may stand in the last part only" in str(error.hint)


def test_links_in_a_circle_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    refused(tmp_path / "a.csv", "there is no file")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_may_not_be_read(tmp_path: Path, what: str) -> None:
    """By another user, since the administrator may read everything."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "t.csv"
    path.write_text("a,b\n1,2\n")
    locked = path if what == "file" else path.parent
    locked.chmod(0)
    words = "from atoll.data.island import as_island; as_island('north', r'%s')" % path  # noqa: UP031
    command = [sys.executable, "-c", words]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("the administrator may read everything")
        # Other rights of the administrator stay, so that this very Python can be run.
        dropped = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    locked.chmod(0o700)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("atoll.errors.DataError: north: "), done.stderr
    assert "may not be read" in last


# ---- what is handed in from Python ----


def test_a_query_that_fails_quotes_no_value() -> None:
    words = pl.LazyFrame({"a": ["SECRET"] * 9})
    refused(words.with_columns(pl.col("a").cast(pl.Float64)), "the LazyFrame cannot be read")
    refused(pl.scan_parquet("/nowhere/t.parquet"), "the LazyFrame cannot be read (FileNotFoundError)")


FRAMES: dict[str, tuple[Any, str]] = {
    "time zones": (pd.DataFrame({"a": pd.date_range("2024", periods=3, tz="UTC")}), "holds dates or times"),
    "periods": (pd.DataFrame({"a": pd.period_range("2024", periods=3)}), "holds dates or times"),
    "intervals": (pd.DataFrame({"a": pd.interval_range(0, 3)}), "which is no number, at row 0"),
    "lists": (pd.DataFrame({"a": [[1.0]]}), "holds a list, which is no number, at row 0"),
    "codes": (pd.DataFrame({"a": ["1", "1_000"]}), "column 'a' holds text at row 1"),
    "mixed": (pd.DataFrame({"a": [1.0, "SECRET", 2.0]}), "column 'a' holds text at row 1"),
    "too large": (pd.DataFrame({"a": [1, 10**400]}), "holds a number too large for a double at row 1"),
    "rows of different lengths": ([[1.0, 2.0], [3.0]], "its rows are of different lengths"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_that_hold_something_else(kind: str) -> None:
    data, said = FRAMES[kind]
    refused(data, said)
