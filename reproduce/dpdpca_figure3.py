"""Wang and Chang (2018), Figure 3: running time against the number of owners, epsilon 0.3.

    python -m reproduce.dpdpca_figure3 [--quick] [--runs 5] [--features 29] [--out FOLDER]

The real protocols, cryptography included, on a generated table of 20,000 rows that is dealt out evenly.
What counts is what the paper counts: for DPDPCA (and PPPCA, the exact form) one owner's average work, all
work of proxy and data user, and transmission; for PrivateLocalPCA the work of all owners, one after
another, and transmission. An owner's work is the elapsed time of its steps; what is left of the run's CPU
time (encoding, adding, native threads) is counted for proxy and data user. Transmission is a model: 5 ms
for each message that waits for another, and all bytes over one line of 1 Gbit/s.

PrivateLocalPCA is shown twice: every local step in its turn, as published, and as Atoll runs it, with local
steps ahead of the turn, so that only merging waits.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import atoll
from atoll.errors import PrivacyWarning
from atoll.runtime.transcript import Transcript
from reproduce import common
from reproduce.common import Floats, Line, Look

EPSILON, ROWS, COMPONENTS = 0.3, 20_000, 5
FEATURES = 29
OWNERS, QUICK_OWNERS = (10, 30, 100), (5, 10)
RUNS, QUICK_RUNS = 5, 2
LATENCY, BANDWIDTH = 0.005, 125e6

EXACT = "no privacy (PPPCA, shares)"
LATTICE = "DPDPCA, our default on lattice"
PAILLIER = "DPDPCA, our default on Paillier"
PRINTED = "DPDPCA as printed (Paillier)"
IN_TURN = "PrivateLocalPCA, local steps in turn"
AHEAD = "PrivateLocalPCA, local steps ahead of the turn"

LOOKS = {
    EXACT: Look("#000000", "s"),
    LATTICE: Look("#0072B2", "o"),
    PAILLIER: Look("#56B4E9", "o", "--"),
    PRINTED: Look("#E69F00", "^"),
    IN_TURN: Look("#009E73", "D"),
    AHEAD: Look("#009E73", "D", "--"),
}

Options = dict[str, Any]


def settings(rows: int) -> dict[str, Options]:
    """The estimator's options for each protocol; PrivateLocalPCA's one run gives both of its lines."""
    private = {"epsilon": EPSILON, "delta": 1.0 / rows}
    dpdpca = {**private, "protocol": "dpdpca", "row_norm": 1.0}
    return {
        EXACT: {"protocol": "pppca"},
        LATTICE: {**dpdpca, "secure_sum": "lattice"},
        PAILLIER: {**dpdpca, "secure_sum": "paillier"},
        PRINTED: {**dpdpca, "secure_sum": "paillier", "calibration": "paper"},
        IN_TURN: {**private, "protocol": "privatelocal"},
    }


def fitted(parts: list[Floats], options: Options) -> tuple[Transcript, float]:
    """One run of the protocol, and the CPU time of everything in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the printed form says what it is; here we know
        start = time.process_time()
        transcript = atoll.PCA(COMPONENTS, **options).fit(parts).transcript_
        return transcript, time.process_time() - start


def transmission(transcript: Transcript) -> float:
    return transcript.rounds * LATENCY + transcript.bytes / BANDWIDTH


def _owners_work(transcript: Transcript, but: str = "") -> list[float]:
    """Seconds of the steps of each owner, without the step ``but``."""
    return [
        cost.step_seconds - cost.seconds.get(but, 0.0)
        for name, cost in transcript.roles.items()
        if name.rpartition("/")[2] in ("owner", "provider")
    ]


def at_once(transcript: Transcript, cpu: float) -> float:
    """Owners work side by side: the average of theirs, and all the rest."""
    work = _owners_work(transcript)
    return float(np.mean(work)) + max(cpu - sum(work), 0.0) + transmission(transcript)


def one_after_another(transcript: Transcript, cpu: float) -> float:
    return cpu + transmission(transcript)


def ahead_of_the_turn(transcript: Transcript, cpu: float) -> float:
    """Only merging adds up over the owners."""
    merging = sum(cost.seconds.get("merge", 0.0) for cost in transcript.roles.values())
    beforehand = _owners_work(transcript, but="merge")
    rest = max(cpu - merging - sum(beforehand), 0.0)
    return float(np.mean(beforehand)) + merging + rest + transmission(transcript)


CLOCKS: dict[str, dict[str, Callable[[Transcript, float], float]]] = {
    IN_TURN: {IN_TURN: one_after_another, AHEAD: ahead_of_the_turn}
}
"""What a run is counted as, where it is not ``at_once``."""


def measure(panel: str, table: Floats, owners: int, run: int) -> list[Line]:
    """Every protocol once, with so many owners."""
    parts = np.array_split(common.unit_rows(table), owners)
    found = []
    for name, options in settings(len(table)).items():
        transcript, cpu = fitted(parts, options)
        for line, clock in CLOCKS.get(name, {name: at_once}).items():
            found.append(Line(panel, line, owners, "seconds", run, clock(transcript, cpu)))
    return found


def one_task(panel: str, features: int, owners: int, run: int) -> list[Line]:
    """In a worker process, warm before anything is measured."""
    table = common.generated_table(ROWS, features, 3)
    if run < common.WORKERS:
        measure(panel, table[:200], 3, run)
    return measure(panel, table, owners, run)


def draw(lines: list[Line], panel: str) -> Figure:
    figure = Figure(figsize=(7.2, 5.2), layout="constrained")
    axes = figure.subplots()
    common.draw_methods(axes, lines, panel, "seconds", LOOKS)
    axes.set_yscale("log")
    axes.set_xlabel("owners")
    axes.set_ylabel("seconds")
    axes.set_title(panel, fontsize=9.5)
    axes.yaxis.set_major_formatter("{x:g}")
    common.shared_legend(figure, [axes], 2)
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = common.options(__doc__)
    parser.add_argument("--features", type=int, default=FEATURES)
    chosen = parser.parse_args(arguments)
    runs = chosen.runs or (QUICK_RUNS if chosen.quick else RUNS)
    panel = f"generated table, {ROWS:,} x {chosen.features}, epsilon {EPSILON}"
    counts = QUICK_OWNERS if chosen.quick else OWNERS
    tasks = [(panel, chosen.features, owners, run) for run in range(runs) for owners in counts]
    with common.stopwatch("figure 3"), common.workers() as pool:
        lines = [line for found in pool.map(one_task, *zip(*tasks, strict=True)) for line in found]
    common.print_table(lines, "seconds", "owners")
    common.finish(draw(lines, panel), lines, chosen.out, "dpdpca_figure3", "owners")
    return 0


if __name__ == "__main__":
    sys.exit(main())
