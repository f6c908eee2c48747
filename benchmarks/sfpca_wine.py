"""Wine by three forms of SF-PCA: fast, with its eigenproblem encrypted, and by the paper's own routines.

    python -m benchmarks.sfpca_wine [--data FOLDER] [--repeat 3] [--check]

White wines (4,898 x 11), six islands in one process, five components. The first two are run, without
emulated links; the third is extrapolated, as ``atoll bench sfpca-paper`` does it: every operation at
(p, psi, alpha, w) = (15, 5, 5, 1) is counted and each kind is measured here. Seconds are processor time of
all roles, medians; bytes are what the busiest island sends. ``--check`` fails where the paper's routines take
less than 30 times the fast variant's seconds or fewer bytes, or less than 5 times with ``eigen="encrypted"``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from atoll.bench import figure5, paper, slot_rates
from atoll.bench.figure5 import ISLANDS, Floats
from atoll.bench.paper_counts import counted
from atoll.estimators.pca.estimator import PCA

COMPONENTS = 5
TIMES_FAST, TIMES_ENCRYPTED = 30, 5


class Form(NamedTuple):
    """What one form took."""

    name: str
    seconds: float
    island_bytes: float
    cosine: float | None = None


def ran(name: str, X: Floats, repeat: int, options: Mapping[str, Any]) -> Form:
    """The median of some runs, after one that nothing is kept of."""
    used, sent, cosine = [], 0, 1.0
    exact = figure5.exact_components(X, COMPONENTS)
    for run in range(repeat + 1):
        before = time.process_time()
        fitted = PCA(COMPONENTS, protocol="sfpca", accept_determined=True, **options).fit(
            np.array_split(X, ISLANDS)
        )
        if run:
            used.append(time.process_time() - before)
        providers = [cost for role, cost in fitted.transcript_.roles.items() if role.endswith("/provider")]
        sent = max(cost.bytes_sent for cost in providers)
        cosine = min(cosine, *figure5.compared(fitted.components_, exact)[0])
    return Form(name, statistics.median(used), sent, cosine)


def extrapolated() -> Form:
    """The paper's routines: counted operations times what each takes here."""
    setting, rates = paper.SETTINGS["wine"], slot_rates.measured()
    run = counted(setting, "precomp")
    sent = rates.gigabytes(run.provider) * 1e9
    return Form("paper, extrapolated", paper.processor_seconds(run, rates), sent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    X = figure5.load(figure5.data_folder(options.data), figure5.CASES["wine"])
    bounds = [*zip(X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)]
    fast = ran("fast", X, options.repeat, {})
    encrypted = ran('eigen="encrypted"', X, options.repeat, {"eigen": "encrypted", "bounds": bounds})
    theirs = extrapolated()
    for form in (fast, encrypted, theirs):
        times = f"{theirs.seconds / form.seconds:8,.1f} x, {theirs.island_bytes / form.island_bytes:8,.1f} x"
        cosine = "" if form.cosine is None else f", worst cosine {form.cosine:.10f}"
        print(f"{form.name:20} {form.seconds:9.2f} CPU s {form.island_bytes / 1e6:9.1f} MB {times}{cosine}")
    holds = (
        theirs.seconds >= TIMES_FAST * fast.seconds
        and theirs.island_bytes > fast.island_bytes
        and theirs.seconds >= TIMES_ENCRYPTED * encrypted.seconds
    )
    return 1 if options.check and not holds else 0


if __name__ == "__main__":
    sys.exit(main())
