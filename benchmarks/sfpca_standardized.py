"""SF-PCA of standardised columns against scikit-learn's StandardScaler and PCA, on public data sets.

    ATOLL_DATA=<folder> python -m benchmarks.sfpca_standardized

Six islands over emulated links (20 ms, 1 Gbit/s), rows as they come, no bounds. Data sets that the folder
does not hold are skipped. Megabytes are those of the provider that sends most; the cosine is the worst of
all components; of explained variances, the largest relative error is shown.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import atoll
from atoll.bench.figure5 import BANDWIDTH, DATA_VARIABLE, ISLANDS, LATENCY
from atoll.errors import CertificateRefused
from benchmarks.measure import seconds, show

PROMISE = 0.9999
COLUMNS = (
    "data",
    "k",
    "recipe",
    "seconds",
    "MB",
    "rounds",
    "1 - cosine",
    "variances",
)


class Case(NamedTuple):
    file: str
    n_components: int | None
    recipe: str


CASES = (
    Case("wine_quality_white", None, "auto"),
    Case("wine_quality_white", 5, "strict"),
    Case("wine_quality_red", None, "auto"),
    Case("online_news_partial", 5, "auto"),
    Case("online_news_partial", 5, "direct"),
    Case("creditcard_partial", 5, "auto"),
    Case("creditcard_partial", 5, "strict"),
)


def measure(case: Case, X: Any) -> list[Any]:
    """One row: seconds, bytes and rounds, and how near the components and variances are."""
    k = case.n_components or X.shape[1]
    exact = PCA(k).fit(StandardScaler().fit_transform(X))
    engine = atoll.LocalEngine(latency=LATENCY, bandwidth=BANDWIDTH)
    exactly = {"digits": "full", "accept_determined": True}
    mine = atoll.PCA(k, protocol="sfpca", standardize=True, recipe=case.recipe, engine=engine, **exactly)
    head = [f"{case.file} {X.shape[0]} x {X.shape[1]}", k]
    try:
        took, fitted = seconds(lambda: mine.fit(np.array_split(X, ISLANDS)))
    except CertificateRefused as refused:
        return [*head, case.recipe, "-", "-", "-", str(refused), "-"]
    cosines = np.abs(np.sum(fitted.components_ * exact.components_, axis=1))
    off = np.abs(fitted.explained_variance_ / exact.explained_variance_ - 1).max()
    sent = max(c.bytes_sent for role, c in fitted.transcript_.roles.items() if role.endswith("/provider"))
    recipe = fitted.certificate_["recipe"]
    rounds = fitted.transcript_.rounds
    return [*head, recipe, took, sent / 1e6, rounds, f"{1 - cosines.min():.1e}", f"{off:.1e}"]


def main() -> None:
    folder = Path(os.environ.get(DATA_VARIABLE, "."))
    files = {name: folder / f"{name}.npz" for name in {case.file for case in CASES}}
    if not any(path.is_file() for path in files.values()):
        print(f"skipped: set {DATA_VARIABLE} to a folder with {CASES[0].file}.npz and others")
        return
    tables = {name: np.load(path)["X"].astype(float) for name, path in files.items() if path.is_file()}
    show(
        f"SF-PCA, standardize=True, {ISLANDS} islands, emulated links; cosine >= {PROMISE} is promised",
        COLUMNS,
        [measure(case, tables[case.file]) for case in CASES if case.file in tables],
    )


if __name__ == "__main__":
    main()
