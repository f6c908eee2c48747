"""SF-PCA however the rows are split: the worst cosine against pooled PCA, one row of the table per split.

python -m benchmarks.sfpca_splits                  the handwritten digits of scikit-learn
python -m benchmarks.sfpca_splits --data FOLDER    MNIST beside them (mnist_train.npz)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

import atoll
from benchmarks.measure import seconds, show

Floats = npt.NDArray[np.float64]
PROMISE = 0.9999
K = 5


def splits(X: Floats, y: npt.NDArray[np.int64]) -> dict[str, list[Floats]]:
    """The same rows over islands in three ways."""
    order = np.random.default_rng(1).permutation(len(X))
    tenth = len(X) // 10
    return {
        "at random, 6 islands": np.array_split(X[order], 6),
        "by label, 10 islands": [X[y == label] for label in np.unique(y)],
        "one island with 90 %": [X[tenth:], X[: tenth // 2], X[tenth // 2 : tenth]],
    }


def table(name: str, X: Floats, y: npt.NDArray[np.int64], bounds: tuple[float, float]) -> list[list[object]]:
    """One line for each split."""
    _, vectors = np.linalg.eigh(np.cov(X.T))
    exact = vectors.T[::-1][:K]
    rows: list[list[object]] = []
    for split, islands in splits(X, y).items():
        pca = atoll.PCA(K, protocol="sfpca", bounds=bounds, recipe="strict", accept_determined=True)
        took, fitted = seconds(lambda pca=pca, islands=islands: pca.fit(islands))  # type: ignore[misc]
        worst = float(np.abs((fitted.components_ * exact).sum(axis=1)).min())
        rows.append([f"{name}, {split}", took, f"{worst:.8f}", "holds" if worst >= PROMISE else "FAILS"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    folder = parser.parse_args().data
    digits = load_digits()
    rows = table("digits", digits.data, digits.target, (0, 16))
    if folder is not None:
        with np.load(folder / "mnist_train.npz") as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.int64)
        rows += table("MNIST", X[:, X.min(axis=0) < X.max(axis=0)], y, (0, 255))
    show(f"SF-PCA, {K} components", ["rows", "seconds", "worst cosine", f">= {PROMISE}"], rows)
    sys.exit(any(row[-1] == "FAILS" for row in rows))


if __name__ == "__main__":
    main()
