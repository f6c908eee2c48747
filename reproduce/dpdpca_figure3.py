"""Wang and Chang (2018), Figure 3: running time against the number of owners, epsilon 0.3.

    python -m reproduce.dpdpca_figure3 [--quick] [--runs 5] [--features 29] [--out FOLDER]

The real protocols, cryptography included, on a generated table of 20,000 rows that is dealt out evenly.
One thing is done at a time, so that all work can be told apart by roles; the seconds are those of a run with
every party on a machine of its own, keys included, over links of 5 ms and 1 Gbit/s each.

PrivateLocalPCA is shown twice: every local step in its turn, as published (the local work of all adds up),
and as Atoll runs it, with local steps ahead of the turn, so that only merging waits. Nothing else should
run on the machine meanwhile.
"""

from __future__ import annotations

import sys
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
        EXACT: {"protocol": "pppca", "accept_determined": True},
        LATTICE: {**dpdpca, "secure_sum": "lattice"},
        PAILLIER: {**dpdpca, "secure_sum": "paillier"},
        PRINTED: {**dpdpca, "secure_sum": "paillier", "calibration": "paper"},
        IN_TURN: {**private, "protocol": "privatelocal"},
    }


def fitted(parts: list[Floats], options: Options) -> Transcript:
    """One run of the protocol, with every role's clock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the printed form says what it is; here we know
        engine = atoll.LocalEngine(LATENCY, BANDWIDTH, one_at_a_time=True)
        return atoll.PCA(COMPONENTS, engine=engine, **options).fit(parts).transcript_


def side_by_side(transcript: Transcript) -> float:
    return transcript.apart_seconds


def one_after_another(transcript: Transcript) -> float:
    """The same, but every owner's local step waits for the owner before."""
    local = [cost.step_seconds - cost.seconds.get("merge", 0.0) for cost in transcript.roles.values()]
    return transcript.apart_seconds + sum(local) - max(local)


CLOCKS: dict[str, dict[str, Callable[[Transcript], float]]] = {
    IN_TURN: {IN_TURN: one_after_another, AHEAD: side_by_side}
}
"""What a run is counted as, where it is not only ``side_by_side``."""


def measure(panel: str, table: Floats, owners: int, run: int) -> list[Line]:
    """Every protocol once, with so many owners."""
    parts = np.array_split(common.unit_rows(table), owners)
    found = []
    for name, options in settings(len(table)).items():
        transcript = fitted(parts, options)
        for line, clock in CLOCKS.get(name, {name: side_by_side}).items():
            found.append(Line(panel, line, owners, "seconds", run, clock(transcript)))
    return found


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
    table = common.generated_table(ROWS, chosen.features, 3)
    measure(panel, table[:200], 3, 0)  # warm before anything counts
    with common.stopwatch("figure 3"):
        lines = [line for run in range(runs) for n in counts for line in measure(panel, table, n, run)]
    common.print_table(lines, "seconds", "owners")
    common.finish(draw(lines, panel), lines, chosen.out, "dpdpca_figure3", "owners")
    return 0


if __name__ == "__main__":
    sys.exit(main())
