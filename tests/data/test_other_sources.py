"""Genotypes, single cells and databases as islands: the same numbers as an array, or a clear error."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from tests.support.cells import write_cells

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


@pytest.mark.parametrize(("people", "variants"), [(36, 6), (44, 6), (40, 5), (40, 7)])
def test_genotypes_of_other_people_or_variants_are_refused(
    tmp_path: Path, people: int, variants: int
) -> None:
    """A .fam or .bim of another table: rows would be other people's, be the file too short or too long."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    to_bed(tmp_path / "chr1.bed", DRAW.integers(0, 3, size=(40, 6)).astype(float))
    to_bed(tmp_path / "other.bed", np.zeros((people, variants)))
    for ending in (".fam", ".bim"):
        (tmp_path / "other").with_suffix(ending).replace(tmp_path / f"chr1{ending}")
    with pytest.raises(DataError, match=r"take .* bytes, and it has 63"):
        as_island("north", tmp_path / "chr1.bed")


@pytest.mark.parametrize("form", ["array", "csr", "csc"])
def test_cells_are_rows(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = scipy.sparse.random(50, 8, density=0.2, format="csr", rng=DRAW, dtype=np.float32)
    names = [f"gene{8 - i}" for i in range(8)]
    written = counts.toarray() if form == "array" else counts.asformat(form)
    write_cells(tmp_path / "cells.h5ad", written, names)
    monkeypatch.setattr(h5ad, "_PIECE_BYTES", 8 * 8 * 7)
    island = as_island("north", tmp_path / "cells.h5ad")
    assert island.columns == tuple(names)
    np.testing.assert_array_equal(island.features(names), counts.toarray())
    np.testing.assert_array_equal(island.features(["gene3", "gene1"]), counts.toarray()[:, [5, 7]])
    assert max(len(piece) for piece in island._table.pieces(range(8))) == 7


@pytest.mark.parametrize("form", ["array", "categories", "nullable"])
def test_names_of_genes_are_read_in_every_form(tmp_path: Path, form: str) -> None:
    write_cells(tmp_path / "cells.h5ad", np.eye(3), ["TP53", "BRCA1", "Ä"], form)
    assert as_island("north", tmp_path / "cells.h5ad").columns == ("TP53", "BRCA1", "Ä")


@pytest.mark.parametrize("code", [-1, 3])
def test_a_gene_without_a_name_is_refused_and_not_taken_for_another(tmp_path: Path, code: int) -> None:
    """Categories say -1 where a name is missing: the last of a list, to whoever counts from its end."""
    import h5py

    path = write_cells(tmp_path / "cells.h5ad", np.eye(3), ["TP53", "BRCA1", "Ä"], "categories")
    with h5py.File(path, "r+") as file:
        codes = file["var/gene ids/codes"]
        codes[int(np.argmax(codes[()]))] = code
    with pytest.raises(DataError, match="has no name"):
        as_island("north", path)


def test_a_name_under_a_mask_is_no_name(tmp_path: Path) -> None:
    import h5py

    path = write_cells(tmp_path / "cells.h5ad", np.eye(3), ["TP53", "BRCA1", "Ä"], "nullable")
    with h5py.File(path, "r+") as file:
        file["var/gene ids/mask"][1] = True
    with pytest.raises(DataError, match="has no name"):
        as_island("north", path)


def test_cells_of_the_first_format_are_read(tmp_path: Path) -> None:
    """Before anndata 0.7: names in a table of one type, and other words for what is sparse."""
    import h5py

    counts = scipy.sparse.csr_matrix(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 3.0]]))
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", counts.shape
        for part in ("data", "indices", "indptr"):
            group.create_dataset(part, data=getattr(counts, part))
        file.create_dataset(
            "var", data=np.array([(b"TP53", 1), (b"BRCA1", 2)], [("index", "S5"), ("n", "i4")])
        )
    island = as_island("north", tmp_path / "cells.h5ad")
    assert island.columns == ("TP53", "BRCA1")
    np.testing.assert_array_equal(island.features(["BRCA1", "TP53"]), counts.toarray()[:, ::-1])


BAD_CELLS: dict[str, tuple[Callable[[Any], None], str]] = {
    "no values": (lambda file: file.__delitem__("X"), "it has no X"),
    "no names": (lambda file: file.__delitem__("var/gene ids"), "its var has no names"),
    "shape": (lambda file: file["X"].attrs.__setitem__("shape", (4, 5)), "and var has 3 names"),
    "form": (lambda file: file["X"].attrs.__setitem__("encoding-type", "coo"), "its X is of the form 'coo'"),
    "index": (lambda file: file["X/indices"].__setitem__(0, 3), "the sparse X of cells.h5ad is damaged"),
    "start": (lambda file: file["X/indptr"].__setitem__(1, 7), "the sparse X of cells.h5ad is damaged"),
    "part": (lambda file: file.__delitem__("X/data"), "its X or var is not as anndata writes them"),
}


@pytest.mark.parametrize("kind", BAD_CELLS)
def test_damaged_cells_are_refused(tmp_path: Path, kind: str) -> None:
    import h5py

    harm, said = BAD_CELLS[kind]
    path = write_cells(tmp_path / "cells.h5ad", scipy.sparse.csr_matrix(np.eye(4, 3)), ["a", "b", "c"])
    with h5py.File(path, "r+") as file:
        harm(file)
    with pytest.raises(DataError, match=r"north: .*cells\.h5ad") as refused:
        as_island("north", path).features(["a"])
    assert said in refused.value.message
    assert refused.value.hint


def test_cells_that_are_cut_are_refused(tmp_path: Path) -> None:
    path = write_cells(tmp_path / "cells.h5ad", np.eye(3), ["a", "b", "c"])
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(DataError, match="it is not a whole file of HDF5"):
        as_island("north", path)


def test_a_reader_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, name, extra in (("bed_reader", "a.bed", "genomics"), ("h5py", "a.h5ad", "singlecell")):
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


def test_a_server_that_is_killed_in_the_middle_of_an_answer_is_said(postgres: str) -> None:
    """Rows have come by then: none of them is used."""
    folder = Path(postgres.partition("host=")[2])
    process = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    slowly = "select i::float8 as a, repeat('x', 1000) as b from generate_series(1, 100000000) i"
    timer = threading.Timer(1.0, os.kill, (process, signal.SIGQUIT))
    timer.start()
    try:
        with pytest.raises(DataError, match=r"^north: the database did not answer the query") as refused:
            Island.from_sql(postgres, slowly, name="north")
    finally:
        timer.join()
    assert refused.value.hint
    assert "xxx" not in str(refused.value)
