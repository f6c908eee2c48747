"""One run of SF-PCA in a process of its own, measured and predicted; other benchmarks call it.

Elapsed time over emulated links with all roles in one process, as on the local engine; then, doing one
thing at a time, the processor time of every role and what the run would take with every party on its own
machine. Peak memory is that of the first run, the tables included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atoll.bench import figure5
from atoll.estimators.pca.estimator import PCA
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.runtime.local.engine import LocalEngine
from atoll.study.model import Study
from benchmarks.measure import forget_peak, peak_megabytes


@dataclass(frozen=True)
class Point:
    """What is run: made data of this shape, or a data set of the paper's Figure 5."""

    case: str = ""
    data: str = ""
    parties: int = 6
    rows: int = 6144
    columns: int = 64
    components: int = 2
    largest: float = 0.0
    """Share of the rows that one island has; 0 splits evenly."""
    latency: float = figure5.LATENCY
    bandwidth: float = figure5.BANDWIDTH
    recipe: str = "strict"


@dataclass
class Measured:
    """What came out, and what was predicted before."""

    seconds: float
    apart_seconds: float
    provider_cpu: float
    coordinator_cpu: float
    provider_bytes: int
    rounds: int
    megabytes: float
    certified: float
    predicted: dict[str, float]


def in_own_process(point: Point) -> Measured:
    """Run the point where no earlier run has left warm memory."""
    command = [sys.executable, "-m", "benchmarks.sfpca_runs", json.dumps(asdict(point))]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(finished.stderr.strip().splitlines()[-1])
    return Measured(**json.loads(finished.stdout.splitlines()[-1]))


def made_rows(point: Point) -> list[np.ndarray[Any, Any]]:
    """Rows with a falling spectrum in a basis of no particular direction, cut into islands."""
    draw = np.random.default_rng(0)
    # Two dozen deviations that stand apart from each other and from the rest: up to 20 are certified.
    scale = np.maximum(1 - 0.04 * np.arange(point.columns), 0.01)
    X = draw.normal(size=(point.rows, point.columns))
    X *= scale
    v = draw.normal(size=point.columns)
    v /= np.linalg.norm(v)
    X -= np.outer(2 * (X @ v), v)
    first = round(point.largest * point.rows)
    if not first:
        return np.array_split(X, point.parties)
    return [X[:first], *np.array_split(X[first:], point.parties - 1)]


def _blocks(point: Point) -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
    if not point.case:
        blocks = made_rows(point)
        largest = max(float(np.abs(block).max()) for block in blocks)
        options = {"n_components": point.components, "bounds": largest, "recipe": point.recipe}
        return blocks, options
    case = figure5.CASES[point.case]
    X = figure5.load(figure5.data_folder(Path(point.data) if point.data else None), case)
    return np.array_split(X, point.parties), {"n_components": case.n_components, "bounds": case.bounds}


def predicted(study: Study, blocks: list[np.ndarray[Any, Any]], point: Point) -> dict[str, float]:
    """What ``atoll review`` says of it."""
    d = blocks[0].shape[1]
    given = Circumstances(d, tuple(len(block) for block in blocks), point.latency, point.bandwidth)
    expected, foreseen = forecast(study, given)
    return {
        "seconds": foreseen.seconds_together,
        "apart_seconds": foreseen.seconds_apart,
        "provider_cpu": foreseen.processor_provider,
        "coordinator_cpu": foreseen.processor_server,
        "provider_bytes": expected.bytes_per_provider,
        "megabytes": foreseen.memory_together / 1e6,
    }


def measure(point: Point) -> Measured:
    """Both runs, in this process."""
    blocks, options = _blocks(point)
    warm = np.random.default_rng(0).normal(size=(60, 4))
    PCA(2, protocol="sfpca", accept_determined=True).fit([warm[:30], warm[30:]])
    forget_peak()  # a table may have been cut out of a larger one
    quick = LocalEngine(point.latency, point.bandwidth)
    fitted = PCA(protocol="sfpca", engine=quick, accept_determined=True, **options).fit(blocks)
    most, transcript = peak_megabytes(), fitted.transcript_
    metered = LocalEngine(point.latency, point.bandwidth, one_at_a_time=True)
    apart = PCA(protocol="sfpca", engine=metered, accept_determined=True, **options).fit(blocks).transcript_
    providers = [role for role in transcript.roles if role.endswith("/provider")]
    return Measured(
        transcript.wall_seconds,
        apart.apart_seconds,
        max(apart.roles[role].cpu_seconds for role in providers),
        apart.of("coordinator/coordinator").cpu_seconds,
        max(transcript.roles[role].bytes_sent for role in providers),
        transcript.rounds,
        most,
        float(fitted.certificate_["bound"]),
        predicted(fitted.result_.study, blocks, point),
    )


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Point(**json.loads(sys.argv[1]))))))
