"""PPPCA against pooled PCA: seconds as a ratio, bytes against one matrix of shares, and 1,000 islands.

python -m benchmarks.pppca_scale            all three
python -m benchmarks.pppca_scale --quick    100,000 rows only
"""

from __future__ import annotations

import sys

import numpy as np
import sklearn.decomposition

import atoll
from atoll import fixedpoint
from benchmarks.measure import peak_megabytes, seconds, show

D = 90


def against_pooled(n_rows: int, promise: float) -> list[object]:
    """Three islands, n_rows x 90 in all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, D)) @ rng.normal(size=(D, D)) / 10 + rng.normal(size=D)
    islands = [X[: n_rows // 2], X[n_rows // 2 : n_rows // 2 + n_rows // 3], X[n_rows // 2 + n_rows // 3 :]]
    pooled, theirs = seconds(lambda: sklearn.decomposition.PCA(5, svd_solver="covariance_eigh").fit(X), 3)
    secure, mine = seconds(lambda: atoll.PCA(5).fit(islands), 3)
    error = np.abs(mine.components_ - theirs.components_).max()
    sent = max(cost.bytes_sent for name, cost in mine.transcript_.roles.items() if name.endswith("/provider"))
    matrix = (1 + D + D * (D + 1) // 2) * fixedpoint.BYTES_PER_VALUE
    return [f"{n_rows:,} x {D}", pooled, secure, secure / pooled, promise, error, sent / matrix]


def many_islands() -> None:
    rng = np.random.default_rng(0)
    islands = [rng.normal(size=(100, 30)) for _ in range(1000)]
    took, mine = seconds(lambda: atoll.PCA(5, secure_sum="masks").fit(islands))
    exact = sklearn.decomposition.PCA(5, svd_solver="full").fit(np.vstack(islands))
    error = np.abs(mine.explained_variance_ - exact.explained_variance_).max()
    show(
        "1,000 islands of 100 x 30 in one process (masks)",
        ["", "measured", "promise"],
        [
            ["seconds", took, 60],
            ["peak MB", peak_megabytes(), 2048],
            ["messages", mine.transcript_.messages, ""],
            ["MB sent", mine.transcript_.bytes / 1e6, ""],
            ["largest error of a variance", error, 1e-8],
        ],
    )


def main() -> None:
    if "--quick" not in sys.argv:
        many_islands()
    sizes = [(100_000, 2.0)] if "--quick" in sys.argv else [(100_000, 2.0), (1_000_000, 1.5)]
    show(
        "Secure fit against pooled covariance_eigh, 3 islands",
        ["table", "pooled s", "secure s", "ratio", "promise <=", "largest error", "sent / one matrix"],
        [against_pooled(*size) for size in sizes],
    )


if __name__ == "__main__":
    main()
