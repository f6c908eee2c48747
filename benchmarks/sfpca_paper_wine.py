"""A whole run of SF-PCA's paper variant on a table of Figure 5, at N = 2^14, beside the fast variant.

    python -m benchmarks.sfpca_paper_wine --data FOLDER [--table wine] [--seed 1] [--fast]

All roles in this process, without delays. Each reflection is printed as it is computed. ``--fast``: the
default variant instead.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import atoll
from atoll.bench import figure5
from atoll.secret_matrices.slots.levelled import Levelled

LETTERS: dict[str, tuple[int, dict[str, Any]]] = {
    "wine": (5, {"p": 15, "alpha": 5, "w": 1}),
    "pima": (1, {"p": 5, "alpha": 1, "w": 5}),
}
"""Components, and the paper's letters."""


def processor() -> float:
    """Seconds of all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def told(started: float) -> None:
    """Say at the coordinator which reflection is being computed."""
    polynomial = Levelled.polynomial

    def noted(self: Any, x: Any, approximation: Any) -> Any:
        if self.leads and hasattr(self, "keys") and approximation.name.endswith("/inverse"):  # no simulation
            now = f"{time.time() - started:.0f} s, {processor():.0f} s CPU"
            print(f"{now}: {approximation.name}", file=sys.stderr, flush=True)
        return polynomial(self, x, approximation)

    Levelled.polynomial = noted  # type: ignore[method-assign]


def main() -> None:
    """Run, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--table", choices=LETTERS, default="wine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fast", action="store_true")
    chosen = parser.parse_args()
    X = figure5.load(figure5.data_folder(chosen.data), figure5.CASES[chosen.table])
    k, letters = LETTERS[chosen.table]
    options: dict[str, Any] = {"protocol": "sfpca", "accept_determined": True}
    if not chosen.fast:
        options |= {"variant": "paper", "paper": {**letters, "seed": chosen.seed}}
    started, before = time.time(), processor()
    if not chosen.fast:
        told(started)
    fitted = atoll.PCA(k, **options).fit(list(np.array_split(X, figure5.ISLANDS)))
    exact = figure5.exact_components(X, k)
    cosines, error = figure5.compared(fitted.components_, exact)
    turned = fitted.components_ * np.sign((fitted.components_ * exact).sum(axis=1))[:, None]
    r = np.corrcoef(turned.ravel(), exact.ravel())[0, 1]
    transcript = fitted.transcript_
    sent = {role: cost.bytes_sent for role, cost in transcript.roles.items()}
    island = max(count for role, count in sent.items() if role.endswith("/provider"))
    print(f"r {r:.12f}, cosines {cosines}, squared error {error:.2g}")
    print(f"certificate {fitted.certificate_}")
    print(f"{time.time() - started:.1f} s, {processor() - before:.1f} s CPU, {transcript.rounds} rounds")
    print(f"{island:,} bytes of an island, {sum(sent.values()):,} of all")


if __name__ == "__main__":
    main()
