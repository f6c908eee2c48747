"""Whatever holds the rows, the components are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.support.cells import write_cells

import atoll
from atoll.data.island import Island

DRAW = np.random.default_rng(11)
# Genotypes are numbers in every format, so that one table fits them all.
TABLE = pd.DataFrame(DRAW.binomial(2, [0.1, 0.3, 0.5, 0.4, 0.2], (80, 5)), columns=list("abcde")).astype(
    float
)
OTHER = pd.DataFrame(DRAW.binomial(2, 0.3, (60, 5)), columns=list("abcde")).astype(float)


def parts(folder: Path) -> str:
    TABLE[:30].to_parquet(folder / "part-0.parquet")
    TABLE[30:].to_parquet(folder / "part-1.parquet")
    return str(folder / "part-*.parquet")


def text(name: str, separator: str = ",") -> Callable[[Path], str]:
    def written(folder: Path) -> str:
        TABLE.to_csv(folder / name, sep=separator, index=False)
        return str(folder / name)

    return written


def parquet(folder: Path) -> str:
    TABLE.to_parquet(folder / "ward.parquet")
    return str(folder / "ward.parquet")


def npz(folder: Path) -> str:
    np.savez(folder / "ward.npz", X=TABLE.to_numpy(), feature_names=np.array(list("abcde")))
    return str(folder / "ward.npz")


def bed(folder: Path) -> str:
    bed_reader = pytest.importorskip("bed_reader")
    bed_reader.to_bed(folder / "ward.bed", np.array(TABLE), properties={"sid": list("abcde")})
    return str(folder / "ward.bed")


def h5ad(folder: Path) -> str:
    return str(write_cells(folder / "ward.h5ad", TABLE.to_numpy(), list("abcde")))


def sqlite(folder: Path) -> Island:
    import sqlite3

    with sqlite3.connect(folder / "ward.db") as connection:
        TABLE.to_sql("ward", connection, index=False)
    connection.close()
    return Island.from_sql(f"sqlite:///{folder / 'ward.db'}", "select * from ward")


FORMS: dict[str, Callable[[Path], Any]] = {
    "csv": text("ward.csv"),
    "csv.gz": text("ward.csv.gz"),
    "tsv": text("ward.tsv", "\t"),
    "parquet": parquet,
    "pattern": parts,
    "npz": npz,
    "bed": bed,
    "h5ad": h5ad,
    "sqlite": sqlite,
    "array": lambda _: Island.from_array(TABLE.to_numpy(), columns=list("abcde")),
    "float32": lambda _: TABLE.astype(np.float32),
    "integers": lambda _: TABLE.astype(np.int8),
    "nullable": lambda _: TABLE.astype("Int64"),
    "nullable floats": lambda _: TABLE.astype("Float64"),
    "arrow": lambda _: pa.Table.from_pandas(TABLE),
    "arrow-backed": lambda _: TABLE.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda _: pl.from_pandas(TABLE),
    "lazy polars": lambda _: pl.from_pandas(TABLE).lazy(),
    "dask": lambda _: dd.from_pandas(TABLE, npartitions=3),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_components(form: str, tmp_path: Path) -> None:
    there = atoll.PCA(2, accept_determined=True).fit({"north": FORMS[form](tmp_path), "south": OTHER})
    here = atoll.PCA(2, accept_determined=True).fit({"north": TABLE, "south": OTHER})
    assert np.abs(there.components_ - here.components_).max() < 1e-12
    assert np.allclose(there.explained_variance_, here.explained_variance_, rtol=1e-12, atol=0)
