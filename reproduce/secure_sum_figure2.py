"""Mehnaz, Bellala and Bertino (2017), Figure 2: the secure sum with one order and with rotated orders.

    python -m reproduce.secure_sum_figure2 [--quick] [--runs 5] [--out FOLDER]

Linear regression on 100,000 generated rows over two parties, 10, 100 and 1,000 attributes: the sums of one
iteration (cost and gradient), mixed with the orders [P1, P2] alone (ssp_v1), or [P1, P2] and [P2, P1] at once
(ssp_v2). Latency by every role's own clock, with parties on machines of their own and links of 1 ms and
1 Gbit/s; bytes as sent. The paper's form is ElGamal; our default form, onions, stands beside it.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import atoll
from atoll.estimators.base import parties
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study
from atoll.study.model import Study
from reproduce import common
from reproduce.common import Floats, Line, Look

ROWS, QUICK_ROWS = 100_000, 2_000
ATTRIBUTES, QUICK_ATTRIBUTES = (10, 100, 1000), (10, 40)
RUNS, QUICK_RUNS = 5, 2
PARTIES = 2
LOOKS = {
    "ElGamal, one order (ssp_v1)": Look("#0072b2", "o"),
    "ElGamal, rotated orders (ssp_v2)": Look("#0072b2", "s", "--"),
    "onions, one order": Look("#d55e00", "o"),
    "onions, rotated orders": Look("#d55e00", "s", "--"),
}
OPTIONS = {
    name: {"form": form, "parallel": parallel}
    for name, (form, parallel) in zip(
        LOOKS, [("elgamal", False), ("elgamal", True), ("onion", False), ("onion", True)], strict=True
    )
}
PANEL = "linear regression"


def gradients(rows: int, attributes: int, seed: int) -> list[Floats]:
    """Every party's cost and gradient at the start of gradient descent."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=attributes)
    found = []
    for _ in range(PARTIES):
        X = rng.normal(size=(rows // PARTIES, attributes))
        y = X @ truth + rng.normal(size=len(X))
        residuals = -y  # theta is zero
        found.append(np.concatenate([[residuals @ residuals / 2], X.T @ residuals]))
    return found


def mixed(vectors: list[Floats], options: dict[str, object]) -> tuple[float, float]:
    """Seconds and megabytes of one sum."""
    islands = {
        f"P{k + 1}": atoll.Island.from_array(v[None, :], name=f"P{k + 1}") for k, v in enumerate(vectors)
    }
    study = Study(
        name="figure 2",
        analysis="sum",
        protocol="sum",
        secure_sum="mix",
        sum_options=options,
        parties=parties(islands, "contributor", "receiver"),
        parameters={"length": vectors[0].size},
        release={"total": ("receiver",)},
    )
    engine = atoll.LocalEngine(latency=0.001, bandwidth=125e6, one_at_a_time=True)
    result = run_study(study, owned(islands), engine=engine).result
    assert np.allclose(result["total"], np.sum(vectors, axis=0))
    return result.transcript.apart_seconds, result.transcript.bytes / 1e6


def measure(rows: int, attributes: tuple[int, ...], runs: int) -> list[Line]:
    mixed(gradients(20, 4, 0), {"form": "elgamal"})  # what is loaded once is not counted
    lines = []
    for d in attributes:
        vectors = gradients(rows, d, d)
        for name, options in OPTIONS.items():
            for run in range(runs):
                took, megabytes = mixed(vectors, dict(options))
                lines.append(Line(PANEL, name, d, "seconds", run, took))
                lines.append(Line(PANEL, name, d, "megabytes", run, megabytes))
    return lines


def draw(lines: list[Line]) -> Figure:
    figure = Figure(figsize=(9, 4.1), layout="constrained")
    axes = figure.subplots(1, 2)
    for one, measured, label in zip(
        axes, ("seconds", "megabytes"), ("latency of one sum, seconds", "sent in all, megabytes"), strict=True
    ):
        common.draw_methods(one, lines, PANEL, measured, LOOKS)
        one.set_yscale("log")
        one.set_xlabel("attributes")
        one.set_ylabel(label)
    common.shared_legend(figure, axes, 2)
    return figure


def main(arguments: list[str] | None = None) -> int:
    chosen = common.options(__doc__).parse_args(arguments)
    runs = chosen.runs or (QUICK_RUNS if chosen.quick else RUNS)
    with common.stopwatch("sums of gradients"):
        lines = measure(
            QUICK_ROWS if chosen.quick else ROWS, QUICK_ATTRIBUTES if chosen.quick else ATTRIBUTES, runs
        )
    common.print_table(lines, "seconds", "attributes")
    common.print_table(lines, "megabytes", "attributes")
    common.finish(draw(lines), lines, chosen.out, "secure_sum_figure2", "attributes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
