"""Genotypes, single cells and databases as islands: the same numbers as an array, or a clear error."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from atoll.data.island import Island, as_island
from atoll.data.readers import bed, h5ad
from atoll.data.statistics import moments
from atoll.errors import DataError, MissingComponent, ParameterError

DRAW = np.random.default_rng(5)


def test_genotypes_are_counts_of_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to_bed = pytest.importorskip("bed_reader").to_bed
    counts = DRAW.integers(0, 3, size=(40, 6)).astype(float)
    counts[7, 2] = np.nan
    names = [f"rs{i}" for i in range(6)]
    to_bed(tmp_path / "chr1.bed", counts, properties={"sid": names})
    monkeypatch.setattr(bed, "_PIECE_BYTES", 100)
    island = as_island("north", tmp_path / "chr1.bed")
    assert island.columns == tuple(names)
    np.testing.assert_array_equal(island.features(["rs4", "rs2"]), counts[:, [4, 2]])
    with pytest.raises(
        DataError, match=r"north: column 'rs2' holds a missing value .* row 7 \(person 8 of chr1"
    ):
        moments(island.chosen(names))


@pytest.mark.filterwarnings("ignore:The 'future.infer_string'")  # anndata sets it, where it is installed
@pytest.mark.parametrize("sparse", [True, False])
def test_cells_are_rows(tmp_path: Path, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    anndata = pytest.importorskip("anndata")
    anndata.settings.allow_write_nullable_strings = True  # names of rows, as pandas 3 holds them
    counts = scipy.sparse.random(50, 8, density=0.2, format="csr", rng=DRAW, dtype=np.float32)
    cells = anndata.AnnData(counts if sparse else counts.toarray())
    cells.var_names = [f"gene{i}" for i in range(8)]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    monkeypatch.setattr(h5ad, "_PIECE_BYTES", 8 * 8 * 7)
    island = as_island("north", tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(island.features(island.columns), counts.toarray())
    np.testing.assert_array_equal(island.features(["gene3", "gene1"]), counts.toarray()[:, [3, 1]])
    assert max(len(piece) for piece in island._table.pieces(range(8))) == 7


def test_a_reader_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, name, extra in (("bed_reader", "a.bed", "genomics"), ("anndata", "a.h5ad", "singlecell")):
        (tmp_path / name).write_bytes(b"")
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingComponent) as refused:
            as_island("north", tmp_path / name)
        assert refused.value.hint == f"pip install 'atoll[{extra}]'"
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(MissingComponent, match=r"pip install 'atoll\[sql\]'"):
        Island.from_sql("sqlite://:memory:", "select 1")


# ---- databases ----

ROWS = [(i, 0.5 * i, None if i == 3 else "ab"[i % 2]) for i in range(300)]
QUERY = "select n, dose, ward from visits order by n"


def check(island: Island) -> None:
    np.testing.assert_array_equal(island.features(["dose", "n"]), [(dose, n) for n, dose, _ in ROWS])
    assert island.values("ward")[[0, 1, 3]].tolist() == ["a", "b", None]


def test_an_answer_of_sqlite_is_a_table(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(tmp_path / "ward.db") as base:
        base.execute("create table visits (n integer, dose real, ward text)")
        base.executemany("insert into visits values (?, ?, ?)", ROWS)
    base.close()
    url = f"sqlite:///{tmp_path}/ward.db"
    check(Island.from_sql(url, QUERY))
    with pytest.raises(DataError, match=r"^north: the database did not answer the query") as refused:
        Island.from_sql(url, "select SECRET from nowhere", name="north")
    assert "SECRET" not in str(refused.value)
    with pytest.raises(DataError, match="the name of column 1 of the query is a number"):
        Island.from_sql(url, "select 17")
    with pytest.raises(ParameterError, match="begins with sqlite:// or postgresql://") as wrong:
        Island.from_sql("mysql://root:SECRET@host/x", QUERY)
    assert "SECRET" not in str(wrong.value)


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own in a temporary folder, reached through a socket, run by nobody's user."""
    pytest.importorskip("adbc_driver_postgresql")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    as_user = ["runuser", "-u", "nobody", "--"] if shutil.which("runuser") else None
    if not found or as_user is None:
        pytest.skip("no PostgreSQL here")
    folder = Path(subprocess.check_output([*as_user, "mktemp", "-d", "/tmp/pgXXXXXX"], text=True).strip())
    control = [*as_user, str(found[-1]), "-D", str(folder / "data"), "-w", "-s"]
    try:
        subprocess.run(
            [*control, "initdb", "-o", "-U ward -A trust --no-sync"], check=True, capture_output=True
        )
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        log = ["-l", str(folder / "log")]
        subprocess.run([*control, *log, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL)
        yield f"postgresql://ward@/postgres?host={folder}"
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, stdout=subprocess.DEVNULL)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_an_answer_of_postgresql_is_a_table_and_one_that_goes_away_is_said(postgres: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("create table visits (n bigint, dose double precision, ward text)")
        cursor.execute(
            "insert into visits select i, 0.5 * i, case when i = 3 then null when i % 2 = 0 then 'a' "
            "else 'b' end from generate_series(0, 299) i"
        )
        connection.commit()
    check(Island.from_sql(postgres, QUERY))
    ends = "select n, pg_terminate_backend(pg_backend_pid()) as gone from visits"
    with pytest.raises(DataError, match=r"^north: the database did not answer the query"):
        Island.from_sql(postgres, ends, name="north")
