"""SF-PCA on columns: MNIST in 2, 3 and 8 blocks of columns, against the exact components.

    python -m benchmarks.sfpca_vertical [--data FOLDER] [--blocks 2 3 8] [--rows N]

All parties run in this process; processor seconds are those of all of them together. The data are those of
``atoll bench sfpca`` (``mnist_train.npz``); without them nothing is run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from atoll.bench.figure5 import CASES, data_folder, load
from atoll.errors import DataError
from atoll.estimators.pca.estimator import PCA
from benchmarks.measure import peak_megabytes, show

CASE = CASES["mnist"]
COLUMNS = ("blocks", "seconds", "CPU s", "MB/party", "rounds", "cosine", "bound", "peak MB")


def row(X: np.ndarray[Any, Any], exact: np.ndarray[Any, Any], blocks: int) -> list[Any]:
    """One run."""
    pca = PCA(
        CASE.n_components, protocol="sfpca", partition="vertical", bounds=CASE.bounds, accept_determined=True
    )
    started, used = time.perf_counter(), time.process_time()
    fitted = pca.fit(np.array_split(X, blocks, axis=1))
    took, used = time.perf_counter() - started, time.process_time() - used
    cosines = np.abs(np.sum(fitted.components_ * exact, axis=1))
    roles = fitted.transcript_.roles.items()
    sent = max(cost.bytes_sent for role, cost in roles if role.endswith("/provider"))
    return [
        blocks,
        took,
        used,
        round(sent / 1e6),
        fitted.transcript_.rounds,
        f"{cosines.min():.7f}",
        fitted.certificate_["bound"],
        round(peak_megabytes()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--blocks", type=int, nargs="+", default=[2, 3, 8])
    parser.add_argument("--rows", type=int, help="the first rows only")
    asked = parser.parse_args()
    try:
        X = load(data_folder(asked.data), CASE)[: asked.rows]
    except DataError as missing:
        print(f"left out: {missing}")
        return
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    _, vectors = np.linalg.eigh(np.cov(X.T))
    exact = vectors.T[::-1][: CASE.n_components]
    rows = [row(X, exact, blocks) for blocks in asked.blocks]
    columns = [
        "blocks",
        "seconds",
        "processor s",
        "MB per party",
        "rounds",
        "worst cosine",
        "certified",
        "peak MB",
    ]
    show(f"SF-PCA on columns: {X.shape[0]} x {X.shape[1]}, k = {CASE.n_components}", columns, rows)


if __name__ == "__main__":
    main()
