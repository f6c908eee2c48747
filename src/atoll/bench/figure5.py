"""SF-PCA on the data sets of the paper's Figure 5: seconds, bytes, rounds and accuracy of one run each.

All parties run in this process over emulated links. The paper's figures (six machines of 12 cores) stand
beside ours; its data differ a little from the public copies used here (Vehicle 435 x 19, MNIST 760 columns).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.errors import DataError
from atoll.estimators.pca.estimator import PCA
from atoll.randomness import expand_words
from atoll.runtime.local.engine import LocalEngine

LATENCY, BANDWIDTH, ISLANDS = 0.02, 125e6, 6
DATA_VARIABLE = "ATOLL_DATA"

Floats = npt.NDArray[np.float64]


class Paper(NamedTuple):
    """Hours in the paper's Figure 5: its own, centralised encryption (at least), secret sharing."""

    own: float
    centralised: float
    sharing: float


class Case(NamedTuple):
    """One data set: file, what of it is used, components, public bounds."""

    file: str
    used: Callable[[Floats], Floats]
    n_components: int | None
    bounds: tuple[float, float] | None
    paper: Paper
    only_by_name: bool = False


def _varying(X: Floats) -> Floats:
    return np.asarray(X[:, X.min(axis=0) < X.max(axis=0)])


def _first_sites(X: Floats) -> Floats:
    return _varying(X)[:, :1773].copy()  # a view would keep the whole table in memory


def _resampled(X: Floats) -> Floats:
    words = expand_words(bytes(32), 9098, "atoll/bench/lung")
    return np.asarray(X[words % np.uint64(len(X))])


CASES = {
    "pima": Case("pima_diabetes", lambda X: X, None, None, Paper(0.04, 0.7, 0.39)),
    "wine": Case("wine_quality_white", lambda X: X, None, None, Paper(0.8, 11, 3.0)),
    "vehicle": Case("vehicle", lambda X: X, None, None, Paper(0.77, 10, 6.67)),
    "chr20": Case("genotypes_1000g", _first_sites, 2, (0, 2), Paper(0.79, 12, 2.32)),
    "mnist": Case("mnist_train", _varying, 5, (0, 255), Paper(2.22, 30, 22.66)),
    "lung": Case("genotypes_1000g", lambda X: X, 2, (0, 2), Paper(3.5, 46, 9.6)),
    "lung9098": Case("genotypes_1000g", _resampled, 2, (0, 2), Paper(3.5, 46, 9.6), only_by_name=True),
}
"""Lung stands for the paper's table of 9,098 x 23,724 genotypes, which is not public: 2,504 public rows of
23,770 sites, and as many rows as the paper has, drawn from these with replacement by a fixed generator."""


class Accuracy(NamedTuple):
    """The paper's components; its correlation and mean squared error, and those of meta-analysis."""

    components: int
    own: str
    meta: str


ACCURACY = {
    "pima": Accuracy(1, "0.99; <1e-11", "0.98; <1e-2"),
    "wine": Accuracy(5, "0.99; <1e-6", "0.99; <1e-2"),
    "vehicle": Accuracy(8, "0.99; 0.24", "0.99; 0.68"),
    "chr20": Accuracy(2, "0.99; <1e-6", "0.98; 0.32"),
    "mnist": Accuracy(5, "0.91; 0.6", "0.75; 1.48"),
    "lung": Accuracy(2, "0.99; 0.05", "0.70; 6.55"),
    "lung9098": Accuracy(2, "0.99; 0.05", "0.70; 6.55"),
}


class Row(NamedTuple):
    """One run."""

    name: str
    rows: int
    columns: int
    components: int
    recipe: str
    seconds: float
    processor_seconds: float
    island_bytes: int
    rounds: int
    cosines: list[float]
    squared_error: float
    certified: float
    paper_seconds: float
    centralised_seconds: float
    sharing_seconds: float
    steps: dict[str, float]
    meta_cosines: list[float]
    """Of the islands' own components, merged, on the same rows: the paper's baseline, at its components."""
    meta_squared_error: float
    paper_accuracy: str
    paper_meta_accuracy: str


def data_folder(given: Path | None) -> Path:
    """Where the data sets lie: the option, or the environment variable."""
    named = str(given) if given is not None else os.environ.get(DATA_VARIABLE, "")
    hint = f"--data FOLDER, or set {DATA_VARIABLE}: a folder with {CASES['pima'].file}.npz and the others"
    if not named:
        raise DataError("the benchmark needs its data sets", hint=hint)
    if not Path(named).is_dir():
        raise DataError(f"there is no folder {named}", hint=hint)
    return Path(named)


def load(folder: Path, case: Case) -> Floats:
    """The table of one case."""
    path = folder / f"{case.file}.npz"
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint="leave the case out, or add the file")
    with np.load(path, allow_pickle=False) as archive:
        return case.used(archive["X"].astype(np.float64))


def bench_case(name: str, folder: Path, n_islands: int = ISLANDS) -> Row:
    """One encrypted run and its comparison with the exact components."""
    case = CASES[name]
    X = load(folder, case)
    engine = LocalEngine(latency=LATENCY, bandwidth=BANDWIDTH)
    pca = PCA(case.n_components, protocol="sfpca", bounds=case.bounds, accept_determined=True, engine=engine)
    before, started = _processor(), time.perf_counter()
    blocks = np.array_split(X, n_islands)
    fitted = pca.fit(blocks)
    took, used = time.perf_counter() - started, _processor() - before
    return _row(name, case, X, fitted, meta_analysis(blocks, ACCURACY[name].components), took, used)


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _row(name: str, case: Case, X: Floats, fitted: Any, meta: Floats, took: float, used: float) -> Row:
    k, transcript = fitted.n_components_, fitted.transcript_
    exact = exact_components(X, k)
    cosines, error = compared(fitted.components_, exact)
    meta_cosines, meta_error = compared(meta, exact[: len(meta)])
    providers = [cost for role, cost in transcript.roles.items() if role.endswith("/provider")]
    steps: dict[str, float] = {}
    for cost in transcript.roles.values():
        for step, seconds in cost.seconds.items():
            steps[step] = steps.get(step, 0.0) + seconds
    hour = 3600.0
    return Row(
        name,
        X.shape[0],
        X.shape[1],
        k,
        fitted.certificate_["recipe"],
        took,
        used,
        max(cost.bytes_sent for cost in providers),
        transcript.rounds,
        cosines,
        error,
        fitted.certificate_["bound"],
        case.paper.own * hour,
        case.paper.centralised * hour,
        case.paper.sharing * hour,
        steps,
        meta_cosines,
        meta_error,
        ACCURACY[name].own,
        ACCURACY[name].meta,
    )


def exact_components(X: Floats, k: int) -> Floats:
    """The first k components in the clear, by the smaller of the two Gram matrices of centred rows."""
    B = X - X.mean(axis=0)
    if len(B) >= B.shape[1]:
        return np.asarray(np.linalg.eigh(B.T @ B)[1].T[::-1][:k])
    rows = np.linalg.eigh(B @ B.T)[1].T[::-1][:k] @ B
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def meta_analysis(blocks: list[Floats], k: int) -> Floats:
    """Each island's k leading components, weighted by their singular values, decomposed together.

    As in :mod:`atoll.protocols.pca.baselines`, but without a matrix of columns by columns.
    """
    n = sum(len(block) for block in blocks)
    mean = sum(block.sum(axis=0) for block in blocks) / n
    parts = [_leading(block - block.mean(axis=0), k) for block in blocks]
    between = [np.sqrt(len(block)) * (block.mean(axis=0) - mean)[None, :] for block in blocks]
    merged = _leading(np.vstack(parts + between), k)
    return np.asarray(merged / np.linalg.norm(merged, axis=1, keepdims=True))


def _leading(rows: Floats, k: int) -> Floats:
    """The k largest singular values times their right vectors, by the smaller of the two Gram matrices."""
    if len(rows) < rows.shape[1]:
        _, left = np.linalg.eigh(rows @ rows.T)
        return np.asarray(left.T[::-1][:k] @ rows)
    values, right = np.linalg.eigh(rows.T @ rows)
    return np.asarray(np.sqrt(np.maximum(values[::-1][:k], 0.0))[:, None] * right.T[::-1][:k])


def compared(components: Floats, exact: Floats) -> tuple[list[float], float]:
    """The cosine of every component with the exact one, and the mean squared error up to signs."""
    products = np.sum(components * exact, axis=1)
    error = components * np.where(products < 0, -1.0, 1.0)[:, None] - exact
    return [float(v) for v in np.abs(products)], float((error**2).mean())


def available(folder: Path) -> list[str]:
    """The cases whose file is there, but for those that are run by name only."""
    return [
        name
        for name, case in CASES.items()
        if not case.only_by_name and (folder / f"{case.file}.npz").is_file()
    ]


def chosen(names: list[str], folder: Path) -> list[str]:
    """The cases asked for, or all that are there."""
    for name in names:
        if name not in CASES:
            raise DataError(f"there is no case {name!r}", hint=f"one of {', '.join(CASES)}")
    found = names or available(folder)
    if not found:
        raise DataError(
            f"{folder} holds none of the data sets",
            hint=", ".join(f"{case.file}.npz" for case in CASES.values()),
        )
    return found
