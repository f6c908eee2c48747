"""Islands that are larger than memory: time against plain Arrow and Polars, and peak memory.

python -m benchmarks.islands make FOLDER --gb 5       write the csv and the Parquet table
python -m benchmarks.islands csv FOLDER               PPPCA on the csv island, against plain Arrow and Polars
python -m benchmarks.islands parquet FOLDER           the same for Parquet
python -m benchmarks.islands sfpca FOLDER --rows N    SF-PCA on N x 100 from Parquet
python -m benchmarks.islands bed FOLDER               genotypes, streamed: allele frequencies
python -m benchmarks.islands h5ad FOLDER              PPPCA on 100,000 x 2,000 cells at 5 %
python -m benchmarks.islands dask --gb 1              PPPCA on four workers; memory of this process

Tables that are not in the folder are written first. Every measurement runs in a process of its own, which is
the island, the small one beside it and all other roles; printed is the largest resident size of that process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import peak_megabytes, show

D = 100
_PIECE = 20_000
_CSV_BYTES, _PARQUET_BYTES = 950, 800
"""Of a row, about."""


def pieces(rows: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Correlated rows, a few at a time."""
    draw = np.random.default_rng(seed)
    mixing = draw.normal(size=(D, D)) * 0.9 ** np.arange(D)[:, None]  # a spectrum that falls
    for start in range(0, rows, _PIECE):
        yield draw.normal(size=(min(_PIECE, rows - start), D)) @ mixing + 1.0


# ---- tables ----


def make(folder: Path, gigabytes: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "big.csv", int(gigabytes * 1e9 / _CSV_BYTES))
    write_parquet(folder / "big.parquet", int(gigabytes * 1e9 / _PARQUET_BYTES))


def write_csv(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.csv

    names = [f"c{i}" for i in range(D)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for X in pieces(rows):
            writer.write_table(pa.table([pa.array(np.round(column, 6)) for column in X.T], schema=schema))


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(D)])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for X in pieces(rows):
            writer.write_table(pa.table([pa.array(column) for column in X.T], schema=schema))


def write_h5ad(path: Path, cells: int = 100_000, genes: int = 2_000) -> None:
    import scipy.sparse
    from tests.support.cells import write_cells

    draw = np.random.default_rng(1)
    counts = scipy.sparse.random(cells, genes, density=0.05, format="csr", rng=draw, dtype=np.float32)
    write_cells(path, counts, [f"gene{i}" for i in range(genes)])


def write_bed(path: Path, source: Path) -> None:
    from bed_reader import to_bed

    with np.load(source, allow_pickle=False) as data:
        genotypes = data["X"].astype(np.float32)
    print(f"{genotypes.shape[0]:,} x {genotypes.shape[1]:,} genotypes")
    sids = [f"v{i}" for i in range(genotypes.shape[1])]
    to_bed(path, genotypes, properties={"sid": sids})


# ---- measurements, each in a process of its own ----


def plain_arrow(path: str) -> dict[str, Any]:
    """Read with Arrow and form n, sums and products."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    if path.endswith(".csv"):
        batches: Any = pyarrow.csv.open_csv(path, pyarrow.csv.ReadOptions(block_size=8 << 20))
    else:
        batches = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20).iter_batches(_PIECE)
    n, total, products = 0, np.zeros(D), np.zeros((D, D))
    for batch in batches:
        assert isinstance(batch, pa.RecordBatch)
        X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
        n, total, products = n + len(X), total + X.sum(axis=0), products + X.T @ X
    return {"n": n, "first": float(total[0] / n)}


def plain_polars(path: str) -> dict[str, Any]:
    """Read with Polars' streaming engine and form the same."""
    import polars as pl

    frame = pl.scan_csv(path) if path.endswith(".csv") else pl.scan_parquet(path)
    n, total, products = 0, np.zeros(D), np.zeros((D, D))
    for batch in frame.collect_batches(chunk_size=_PIECE, maintain_order=False):
        X = batch.to_numpy()
        n, total, products = n + len(X), total + X.sum(axis=0), products + X.T @ X
    return {"n": n, "first": float(total[0] / n)}


def _small() -> Any:
    import pandas as pd

    return pd.DataFrame(next(pieces(200, seed=9)), columns=[f"c{i}" for i in range(D)])


def pppca(path: str) -> dict[str, Any]:
    import atoll

    fitted = atoll.PCA(5).fit({"big": path, "small": _small()})
    return {"n": fitted.n_samples_, "first": float(fitted.mean_[0])}


def sfpca(path: str) -> dict[str, Any]:
    import atoll

    pca = atoll.PCA(5, protocol="sfpca", bounds=256.0, recipe="strict")
    fitted = pca.fit({"big": path, "small": _small()})
    return {"n": fitted.n_samples_, "first": float(fitted.explained_variance_[0])}


def bed(path: str) -> dict[str, Any]:
    """One pass for the allele frequencies of all variants, as a preparation makes it."""
    from atoll.data.island import Island
    from atoll.data.prepared import PreparedTable, terms

    island = Island.from_bed(path)
    survey = PreparedTable(island, terms(island.columns, {}), {}).survey(genotypes=True)
    return {"n": survey.rows, "first": float(survey.total[0] / survey.present[0])}


def h5ad(path: str) -> dict[str, Any]:
    import pandas as pd

    import atoll

    small = np.random.default_rng(2).random((100, 2_000))
    names = [f"gene{i}" for i in range(2_000)]
    fitted = atoll.PCA(5).fit({"big": path, "small": pd.DataFrame(small, columns=names)})
    return {"n": fitted.n_samples_, "first": float(fitted.mean_[0])}


WORK = {one.__name__.replace("_", "-"): one for one in (plain_arrow, plain_polars, pppca, sfpca, bed, h5ad)}


def child(name: str, path: str) -> None:
    started, processor = time.perf_counter(), time.process_time()
    found = WORK[name](path)
    took = {"seconds": time.perf_counter() - started, "processor": time.process_time() - processor}
    print(json.dumps(found | took | {"megabytes": peak_megabytes()}))


def measured(name: str, path: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.islands", "child", name, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def against_plain(path: Path) -> None:
    names = ("plain-arrow", "plain-polars", "pppca")
    found = {name: measured(name, path) for name in names}
    best = min(found[name]["seconds"] for name in names[:2])
    size = path.stat().st_size / 1e9
    show(
        f"{path.name}, {size:.2f} GB, {found['plain-arrow']['n']:,} x {D}",
        ["", "s", "processor s", "MB/s", "peak MB", "of the faster plain one", "promise <="],
        [
            [
                name,
                found[name]["seconds"],
                found[name]["processor"],
                1000 * size / found[name]["seconds"],
                found[name]["megabytes"],
                found[name]["seconds"] / best,
                "2 x, 1,000 MB" if name == "pppca" else "",
            ]
            for name in names
        ],
    )


def alone(name: str, path: Path, promise: float) -> None:
    found = measured(name, path)
    row = [found["n"], found["seconds"], found["processor"], found["megabytes"], promise]
    show(f"{name} on {path.name}", ["rows", "s", "processor s", "peak MB", "promise <= MB"], [row])


# ---- Dask ----


def dask(gigabytes: float) -> None:
    """Four workers with a random array that is never whole anywhere; this process's memory counts.

    The result is compared with products that Dask forms by itself, and with its own eigenvectors.
    """
    import dask.array as da
    from distributed import LocalCluster

    import atoll
    from atoll.data.island import Island
    from benchmarks.measure import forget_peak

    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster:
        rows = int(gigabytes * 1e9 / (8 * D))
        # Columns of different spread, so that components are told apart.
        lazy = da.random.default_rng(0).normal(size=(rows, D), chunks=(25_000, D)) * 0.9 ** np.arange(D)
        small = np.random.default_rng(1).normal(size=(200, D))
        island = Island.from_dask(lazy, scheduler=cluster.scheduler_address)
        forget_peak()
        started = time.perf_counter()
        fitted = atoll.PCA(5).fit({"big": island, "small": small})
        took, peak = time.perf_counter() - started, peak_megabytes()
        apart = float(np.abs(fitted.components_ - _of_dask(lazy, small, cluster, fitted.components_)).max())
    row = [fitted.n_samples_, gigabytes, took, peak, apart]
    show("PPPCA on Dask, 4 workers", ["rows", "GB", "s", "peak MB of this process", "from Dask's own"], [row])


def _of_dask(lazy: Any, small: np.ndarray, cluster: Any, like: np.ndarray) -> np.ndarray:
    """The components of all rows by Dask's sums and NumPy's eigenvectors, with the signs of others."""
    from distributed import Client

    with Client(cluster) as client:
        total, products = client.gather(client.compute([lazy.sum(axis=0), lazy.T @ lazy]))
    n = lazy.shape[0] + len(small)
    mean = (total + small.sum(axis=0)) / n
    scatter = products + small.T @ small - n * np.outer(mean, mean)
    found = np.linalg.eigh(scatter)[1][:, ::-1][:, : len(like)].T
    return np.asarray(found * np.sign(np.sum(found * like, axis=1, keepdims=True)))


def _there(path: Path, write: Callable[[Path], None]) -> Path:
    """A table, written unless it was before."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    return path


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("make", "csv", "parquet", "sfpca", "bed", "h5ad", "dask"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--gb", type=float, default=0.5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--genotypes", type=Path, default=Path("../shared/data/genotypes_1000g.npz"))
    asked = parser.parse_args()
    folder = asked.folder
    if asked.what == "make":
        make(folder, asked.gb)
    elif asked.what in ("csv", "parquet"):
        against_plain(folder / f"big.{asked.what}")
    elif asked.what == "sfpca":
        alone("sfpca", _there(folder / "rows.parquet", lambda path: write_parquet(path, asked.rows)), 2000)
    elif asked.what == "bed":
        alone("bed", _there(folder / "people.bed", lambda path: write_bed(path, asked.genotypes)), 500)
    elif asked.what == "h5ad":
        alone("h5ad", _there(folder / "cells.h5ad", write_h5ad), 2000)
    else:
        dask(asked.gb)


if __name__ == "__main__":
    main()
