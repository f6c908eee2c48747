"""Tables that are read piece by piece: every format is the same table, and no table is held as a whole."""

from __future__ import annotations

import decimal
import gzip
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atoll.data.island import Island, as_island
from atoll.data.readers import csv as csv_reader
from atoll.data.statistics import moments
from atoll.data.tables import scratch
from atoll.errors import DataError, SchemaError

X = np.random.default_rng(3).normal(size=(700, 3)) * [1.0, 1e6, 1e-3] + [5.0, 0.0, 2.0]
FRAME = pd.DataFrame(X, columns=["age", "dose", "load"]).assign(ward=["a", "b", "c", "d"] * 175, n=range(700))
NAMES = ["load", "age", "n"]


def written(folder: Path, kind: str) -> Any:
    """The table in some form."""
    exact = {"float_format": "%.17g", "index": False}
    if kind in ("csv", "csv.gz", "tsv"):
        FRAME.to_csv(folder / f"t.{kind}", sep="\t" if kind == "tsv" else ",", **exact)
        return folder / f"t.{kind}"
    if kind == "parquet":
        FRAME.to_parquet(folder / "t.parquet", row_group_size=97)
        return folder / "t.parquet"
    if kind == "parts":
        for i in range(3):
            part = FRAME.iloc[i * 250 : (i + 1) * 250]
            (part if i else part[["ward", "n", "age", "dose", "load"]]).to_parquet(
                folder / f"part-{i}.parquet"
            )
        return str(folder / "part-*.parquet")
    return {
        "frame": FRAME,
        "nullable": FRAME.convert_dtypes(),
        "arrow": pa.Table.from_pandas(FRAME),
        "batches": pa.Table.from_pandas(FRAME).to_reader(max_chunksize=61),
        "polars": pl.from_pandas(FRAME),
        "lazy": pl.from_pandas(FRAME).lazy().filter(pl.col("n") >= 0),
    }[kind]


KINDS = (
    "csv",
    "csv.gz",
    "tsv",
    "parquet",
    "parts",
    "frame",
    "nullable",
    "arrow",
    "batches",
    "polars",
    "lazy",
)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_form_is_the_same_table(
    tmp_path: Path, kind: str, on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on_disk:
        monkeypatch.setattr(scratch, "IN_MEMORY", 0)
        monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 4096)
    island = as_island("north", written(tmp_path, kind))
    assert island.n_rows == 700
    found = moments(island.chosen(NAMES))
    due = moments(Island.from_array(FRAME[NAMES].to_numpy(), columns=NAMES).chosen(NAMES))
    scale = np.sqrt(np.outer(np.diag(due.scatter), np.diag(due.scatter)))
    assert np.abs((found.scatter - due.scatter) / scale).max() < 1e-14
    np.testing.assert_allclose(found.mean, due.mean, rtol=1e-14)
    assert [len(block) for block in island.blocks(NAMES, 300)] == [300, 300, 100]
    assert np.array_equal(island.features(NAMES), FRAME[NAMES].to_numpy())
    assert island.labels("ward")[1] == ("a", "b", "c", "d")
    assert island.labels("n")[0].dtype.kind == "i"
    assert island.row_ids("n") == tuple(map(str, range(700)))
    assert island.digest() == as_island("south", written(tmp_path, kind)).digest()


def test_a_scratch_file_is_private_has_no_name_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    island = as_island("north", written(tmp_path, "csv"))
    table = island._table
    assert isinstance(table, scratch.Scratch)
    assert table.on_disk
    file = table._file
    assert file is not None
    assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    assert list((tmp_path / "scratch").iterdir()) == []
    os.pwrite(file.fileno(), b"\xff", 2000)
    with pytest.raises(DataError, match="north: the scratch file does not hold what was written to it"):
        island.features(NAMES)


def test_types_widen_where_a_later_block_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 256)
    rows = 400
    frame = pd.DataFrame(
        {
            "late": [*["1"] * (rows - 1), "1.5"],
            "text": [*["2"] * (rows - 1), "two"],
            "long": [*["3"] * (rows - 1), str(2**60 + 1)],
            "none": [*[""] * (rows - 1), "4"],
            "said": [*["true"] * (rows - 1), "False"],
            "when": ["2024-01-05"] * rows,
            "lines": [*["x"] * (rows - 1), "a\n" * 200 + "b"],
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    island = as_island("north", tmp_path / "t.csv")
    assert island.values("late")[[0, -1]].tolist() == [1.0, 1.5]
    assert island.values("text")[[0, -1]].tolist() == ["2", "two"]
    assert island.values("long")[-1] == 2**60 + 1
    assert np.isnan(island.features(["none"])[0, 0])
    assert island.features(["none", "said"])[-1].tolist() == [4.0, 0.0]
    assert island.values("when")[0] == "2024-01-05"
    assert island.values("lines")[-1].endswith("b")
    with pytest.raises(DataError, match=r"north: column 'text' holds text at row 399 \(line 401 of t\.csv\)"):
        island.check_numbers(["late", "text"])


def test_a_column_becomes_text_in_a_block_that_is_parsed_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are told apart without parsing: no value has several."""
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 256)
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 400 + "3,two\n" + "1,2\n" * 400)
    island = as_island("north", tmp_path / "t.csv")
    assert island.values("b")[[0, 400]].tolist() == ["2", "two"]
    with pytest.raises(DataError, match=r"column 'b' holds text at row 400 \(line 402 of t\.csv\)"):
        island.check_numbers(["b"])


LINES: dict[str, tuple[str, str]] = {
    "plain": ("{},x\n", ""),
    "windows": ("{},x\r\n", ""),
    "byte order mark": ("{},x\n", "\ufeff"),
    "line ends within quotes": ('{},"one\ntwo, ""three""\n"\n', ""),
    "a quote that is a letter": ('{},5" or\n', ""),
    "empty lines": ("{},x\n" + "\n" * 300, ""),
}


@pytest.mark.parametrize("kind", LINES)
def test_blocks_are_parsed_side_by_side_and_lines_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    line, start = LINES[kind]
    end = next(mark for mark in ("\r\n", "\n") if mark in line)
    text = start + "a,b" + end + "".join(line.format(i) for i in range(300)) + "300,last"
    (tmp_path / "t.csv").write_bytes(text.encode())
    due = csv_reader.CSV().open(tmp_path / "t.csv")  # one block
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 256)
    found = csv_reader.CSV().open(tmp_path / "t.csv")
    assert found.column(0).tolist() == due.column(0).tolist() == list(range(301))
    assert found.column(1).tolist() == due.column(1).tolist()


TYPES: dict[str, tuple[pa.Array, object]] = {
    "float32": (pa.array([1.5, 2.5], pa.float32()), [1.5, 2.5]),
    "uint8": (pa.array([1, 2], pa.uint8()), [1, 2]),
    "int64 with none": (pa.array([1, None], pa.int64()), [1, np.nan]),
    "bool": (pa.array([True, False]), [1, 0]),
    "bool with none": (pa.array([True, None]), [1, np.nan]),
    "decimal": (pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")]), [1.25, -2.5]),
    "nothing": (pa.nulls(2), [np.nan, np.nan]),
    "dictionary": (pa.array([1.0, 2.0]).dictionary_encode(), [1, 2]),
    "timestamp": (pa.array([1, 2], pa.timestamp("s")), "holds dates or times where numbers are needed"),
    "time": (pa.array([1, 2], pa.time32("s")), "holds dates or times where numbers are needed"),
    "duration": (pa.array([1, 2], pa.duration("s")), "holds dates or times where numbers are needed"),
    "text": (pa.array(["1.5", "x"]), r"holds text at row 1"),
    "list": (pa.array([[1.0], [2.0]]), r"holds values of the type list<.*> where numbers are needed"),
    "binary": (pa.array([b"1", b"2"]), r"holds values of the type binary where numbers are needed"),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_work_or_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    column, due = TYPES[kind]
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    island = as_island("north", tmp_path / "t.parquet")
    if isinstance(due, str):
        with pytest.raises(DataError, match=f"north: column 'a' {due}"):
            island.check_numbers(["a"])
    else:
        island.check_numbers(["a"])
        np.testing.assert_array_equal(island.features(["a"])[:, 0], np.array(due, dtype=float))


def test_files_of_one_table_must_have_the_same_columns(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_csv(tmp_path / "p-1.csv", index=False)
    pd.DataFrame({"a": [1.0], "c": [2.0]}).to_csv(tmp_path / "p-2.csv", index=False)
    with pytest.raises(SchemaError, match=r"north: p-2\.csv lacks the column 'b'"):
        as_island("north", tmp_path / "p-*.csv")
    with pytest.raises(DataError, match=r"north: there is no file .*q-\*\.csv"):
        as_island("north", tmp_path / "q-*.csv")
    (tmp_path / "p-2.csv").write_text("a,b\n3.0,x\n")
    with pytest.raises(DataError, match=r"column 'b' holds text at row 0 \(line 2 of p-2\.csv\)"):
        as_island("north", tmp_path / "p-*.csv").check_numbers(["a", "b"])


# ---- bad files ----


BAD: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", "it is empty"),
    "short line": ("t.csv", b"a,b\n1,2\n3\n4,5\n", "line 3 has 1 values where the header has 2"),
    "long line": ("t.csv", b"a,b\n1,2\n\n3,4,SECRET\n", "line 4 has 3 values where the header has 2"),
    "delimiter": ("t.csv", b"a;b\n1;2\n", "has one column only, and ';' in its name"),
    "encodings": ("t.csv", "a,b\n1,é\n".encode() + "2,é\n".encode("latin-1"), "it is not UTF-8 text"),
    "two names": ("t.csv", b"a,a\n1,2\n", "columns 1 and 2 of t.csv have the same name"),
    "packed": ("t.csv.gz", b"a,b\n1,2\n", "it is not packed by gzip"),
    "cut gzip": (
        "t.csv.gz",
        gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:-9],
        "it ends too early",
    ),
    "no parquet": ("t.parquet", b"a,b\n1,2\n3,4\n5,6\n", "its end is missing, or it is no Parquet file"),
    "empty parquet": ("t.parquet", b"", "its end is missing, or it is no Parquet file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named_with_what_to_do(tmp_path: Path, kind: str) -> None:
    name, data, said = BAD[kind]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=r"^north: ") as refused:
        as_island("north", tmp_path / name)
    assert said in refused.value.message
    assert refused.value.hint
    assert "SECRET" not in str(refused.value)


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    island = as_island("north", tmp_path / "t.csv")
    assert island.features(["a", "b"]).shape == (0, 2)
    with pytest.raises(DataError, match="north: the table has no rows"):
        moments(island.chosen(["a"]))


def test_a_parquet_file_that_is_cut_or_damaged_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"north: t\.parquet cannot be read: its end is missing"):
        as_island("north", path)
    path.write_bytes(data[:200] + bytes(2000) + data[2200:])
    with pytest.raises(DataError, match=r"north: t\.parquet cannot be read any further"):
        as_island("north", path).features(["age"])


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "parquet")
    island = as_island("north", path)
    blocks = island.blocks(NAMES, 100)
    next(blocks)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"north: t\.parquet changed while it was read"):
        list(blocks)
    path = written(tmp_path, "csv")
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 4096)
    filled = csv_reader.CsvTable.add

    def somebody_writes(table: csv_reader.CsvTable, batch: Any) -> None:
        with path.open("a") as file:
            file.write("\n")
        filled(table, batch)

    monkeypatch.setattr(csv_reader.CsvTable, "add", somebody_writes)
    with pytest.raises(DataError, match=r"north: t\.csv cannot be read: t\.csv changed while it was read"):
        as_island("north", path)


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, data: object) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    monkeypatch.setattr(scratch.tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(
        DataError, match=r"north: .*the scratch file cannot be written: No space left"
    ) as error:
        as_island("north", written(tmp_path, "csv"))
    assert "TMPDIR" in str(error.value.hint)
