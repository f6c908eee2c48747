"""Wang and Chang (2018), Figure 5: captured variance of the private components, delta = 1/N.

    python -m reproduce.dpdpca_figure5 [--quick] [--runs 5] [--out FOLDER]

Rows of unit norm; share of the total variance (centred) that k components capture. Facebook: public
data, columns brought to [0, 1] by their range first (fewer rows than in the paper). Aloi and Million Song:
generated tables of their size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from atoll.privacy.paper_forms import centred_scatter
from atoll.randomness import derive, fresh_seed
from reproduce import common, methods
from reproduce.common import Floats, Line

EPSILONS = (0.1, 0.3, 0.5, 1.0)
QUICK_EPSILONS = (0.1, 1.0)
RUNS, QUICK_RUNS = 5, 2
OWNERS = 10
QUICK_ROWS = 10_000
SHOWN = (methods.NONE, methods.OURS, methods.PRINTED, methods.RANDOM)


class Panel(NamedTuple):
    title: str
    k: int
    load: Callable[[], Floats]


def facebook() -> Floats:
    return common.unit_columns(common.public_data("facebook_comments_testset")[0])


PANELS = (
    Panel("generated, size of Aloi", 5, lambda: common.generated_table(108_000, 29, 1)),
    Panel("Facebook comments", 10, facebook),
    Panel("generated, size of Million Song", 10, lambda: common.generated_table(515_345, 90, 2)),
)


def measure(
    panel: str, table: Floats, k: int, epsilons: tuple[float, ...], runs: int, seed: bytes
) -> list[Line]:
    """Every method's share of the total variance."""
    rows = common.unit_rows(table)
    scatter, d, delta = centred_scatter(rows), rows.shape[1], 1.0 / len(rows)
    total = float(np.trace(scatter))
    best = methods.captured(methods.top(scatter, k), scatter) / total
    found = []
    for epsilon in epsilons:
        for run in range(runs):
            mine = derive(seed, panel, str(epsilon), run)
            shares = {
                methods.NONE: best,
                methods.OURS: methods.captured(methods.ours(rows, k, OWNERS, epsilon, delta, mine), scatter)
                / total,
                methods.PRINTED: methods.captured(
                    methods.as_printed(scatter, k, epsilon, delta, mine), scatter
                )
                / total,
                methods.RANDOM: methods.captured(methods.random_directions(d, k, run), scatter) / total,
            }
            found += [Line(panel, name, epsilon, "captured", run, share) for name, share in shares.items()]
    return found


def draw(lines: list[Line], panels: list[Panel]) -> Figure:
    figure = Figure(figsize=(4.3 * len(panels), 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for one, panel in zip(axes, panels, strict=True):
        common.draw_methods(one, lines, panel.title, "captured", {m: methods.LOOKS[m] for m in SHOWN})
        one.set_title(f"{panel.title}\nk = {panel.k}", fontsize=9.5)
        one.set_ylim(0, 1.02)
        one.set_xlabel("epsilon (delta = 1/N)")
    axes[0].set_ylabel("captured share of the variance")
    common.shared_legend(figure, axes, len(SHOWN))
    return figure


def main(arguments: list[str] | None = None) -> int:
    chosen = common.options(__doc__).parse_args(arguments)
    runs = chosen.runs or (QUICK_RUNS if chosen.quick else RUNS)
    epsilons = QUICK_EPSILONS if chosen.quick else EPSILONS
    lines: list[Line] = []
    shown: list[Panel] = []
    for wanted in PANELS:
        try:
            table = wanted.load()
        except common.DataMissing as missing:
            print(f"left out: {missing}")
            continue
        if chosen.quick:
            table = table[:QUICK_ROWS]
        panel = wanted._replace(title=f"{wanted.title} ({table.shape[0]:,} x {table.shape[1]})")
        with common.stopwatch(panel.title):
            lines += measure(panel.title, table, panel.k, epsilons, runs, fresh_seed())
        shown.append(panel)
    common.print_table(lines, "captured", "epsilon")
    common.finish(draw(lines, shown), lines, chosen.out, "dpdpca_figure5", "epsilon")
    return 0


if __name__ == "__main__":
    sys.exit(main())
