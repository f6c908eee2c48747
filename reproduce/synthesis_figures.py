"""Gu, Zhang and Yang (PPCA-DP-MH), Figures 2, 3 and 4: a linear SVM that learned from synthetic rows.

    python -m reproduce.synthesis_figures [--figures 2 3 4] [--quick] [--runs 5] [--peers FILE] [--out FOLDER]

80 % of the rows are dealt out to owners and published as synthetic rows, 20 % are the test; one column is
predicted from all others. NLTCS (outside, money; contribution 0.85) and Adult (salary, education; 0.9).

- Figure 2: 3 owners, epsilon 0.1. What each component contributes, and accuracy against their number k.
- Figure 3: 3 owners, accuracy against epsilon.
- Figure 4: epsilon 0.2, accuracy against the number of owners (the paper has Adult alone).

Lines: no privacy; the paper's form to the letter, which is not differentially private as stated; ours, with
delta 1e-5 and one colluder (in Figure 2 its probabilistic PCA alone, because only that has a k). Mechanisms
and models are the product's own functions; noise is drawn as the total of all owners' shares, without the
network between them. ``--peers``: a CSV of (panel, method, x, run, accuracy) with one-site synthesizers that
were run elsewhere on the pooled rows; they are drawn beside the others, and do not depend on owners.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.synthesis import CASES, DELTA, Case, Codes, accuracy
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from atoll import randomness
from atoll.privacy.mechanisms import Crowd, GaussianNoise
from atoll.protocols.synthesis import models, moments, paper
from reproduce import common
from reproduce.common import Line, Look

RUNS, QUICK_RUNS = 5, 2
OWNERS = 3
CONTRIBUTION = {"nltcs": 0.85, "adult": 0.9}
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
MANY = (2, 4, 6, 8, 10)
COMPONENTS = {"nltcs": (1, 2, 4, 6, 8, 10, 12, 14, 16), "adult": (5, 10, 15, 20, 25, 30, 35)}
TICKS = {"nltcs": (1, 4, 8, 12, 16), "adult": (5, 10, 15, 20, 25, 30, 35)}
NONE, OURS, GAUSSIAN, PAPER = "no privacy", "ours", "ours, PPCA alone", "the paper's form (not private)"
LOOKS = {
    NONE: Look("#555555", "", "--"),
    OURS: Look("#0072b2", "o"),
    GAUSSIAN: Look("#56b4e9", "D"),
    PAPER: Look("#d55e00", "s"),
    "AIM (pooled rows)": Look("#009e73", "^", ":"),
    "MST (pooled rows)": Look("#cc79a7", "v", ":"),
}


class Split(NamedTuple):
    name: str
    case: Case
    train: Codes
    test: Codes
    run: int


def split(name: str, case: Case, run: int) -> Split:
    order = np.random.default_rng(run).permutation(len(case.codes))
    cut = int(0.8 * len(order))
    return Split(name, case, case.codes[order[:cut]], case.codes[order[cut:]], run)


# ---- synthetic rows ----


def ours(data: Split, epsilon: float, owners: int, k: int | None = None) -> Codes:
    """As ``PPCASynthesizer``; with a ``k``, from the probabilistic PCA of so many components."""
    sizes = data.case.sizes
    plan = moments.Plan(sizes, epsilon, DELTA, Crowd(owners, 1))
    assert isinstance(plan.stage.noise, GaussianNoise)
    noise = plan.stage.noise.draw_sum(randomness.fresh_seed())
    found = moments.finish(plan, moments.contribution(plan, data.train) + noise, owners)
    decoder: models.Decoder = "auto" if k is None else "gaussian"
    fitted = models.fitted(found, decoder, CONTRIBUTION[data.name], k)
    free = [np.ones(size) for size in sizes]
    draw = models.SAMPLERS[fitted["kind"]]
    return draw(fitted["values"], sizes, free, len(data.train), randomness.public(data.run))


def published(data: Split, epsilon: float, owners: int, k: int | None = None) -> Codes:
    """Algorithm 1, line by line."""
    sizes = data.case.sizes
    parts = [paper.to_digits(part, sizes) for part in np.array_split(data.train, owners)]
    seeds = [randomness.fresh_seed() for _ in parts]
    local = [
        paper.local_covariance(*paper.noisy_moments(X, epsilon, seed))
        for X, seed in zip(parts, seeds, strict=True)
    ]
    told = paper.kept(paper.pooled(local, [len(X) for X in parts]), CONTRIBUTION[data.name], k)
    rows = [paper.published(X, told, seed) for X, seed in zip(parts, seeds, strict=True)]
    return paper.from_digits(np.concatenate(rows), sizes)


def exact_shares(data: Split) -> np.ndarray:
    """What each principal component of the coded rows contributes, without noise."""
    values = np.linalg.eigvalsh(np.cov(paper.to_digits(data.train, data.case.sizes).T))[::-1]
    return np.asarray(values / values.sum())


# ---- figures ----


def accuracies(
    data: Split, figure: int, method: str, x: float, rows: Codes, targets: list[str]
) -> Iterator[Line]:
    for target in targets:
        value = accuracy(rows, data.test, data.case, target)
        yield Line(panel(figure, data.name, target), method, x, "accuracy", data.run, value)


def panel(figure: int, table: str, target: str) -> str:
    return f"figure {figure}: {table}, {target}"


def figure2(data: Split, quick: bool) -> Iterator[Line]:
    shares = exact_shares(data)
    for k, share in enumerate(shares[:36] if data.run == 0 else [], 1):
        title = panel(2, data.name, "contribution")
        yield Line(title, "each", k, "contribution", 0, float(share))
        yield Line(title, "together", k, "contribution", 0, float(shares[:k].sum()))
    target = list(data.case.targets)[:1]
    for k in COMPONENTS[data.name][:: 3 if quick else 1]:
        yield from accuracies(data, 2, NONE, k, data.train, target)
        yield from accuracies(data, 2, GAUSSIAN, k, ours(data, 0.1, OWNERS, k), target)
        yield from accuracies(data, 2, PAPER, k, published(data, 0.1, OWNERS, k), target)


def figure3(data: Split, quick: bool) -> Iterator[Line]:
    yield from _beside(data, 3, [(epsilon, epsilon, OWNERS) for epsilon in EPSILONS[:: 3 if quick else 1]])


def figure4(data: Split, quick: bool) -> Iterator[Line]:
    yield from _beside(data, 4, [(owners, 0.2, owners) for owners in MANY[:: 4 if quick else 1]])


def _beside(data: Split, figure: int, points: list[tuple[float, float, int]]) -> Iterator[Line]:
    targets = list(data.case.targets)
    plain = list(accuracies(data, figure, NONE, 0.0, data.train, targets))
    for x, epsilon, owners in points:
        yield from (Line(one.panel, NONE, x, one.measure, one.run, one.value) for one in plain)
        yield from accuracies(data, figure, OURS, x, ours(data, epsilon, owners), targets)
        yield from accuracies(data, figure, PAPER, x, published(data, epsilon, owners), targets)


FIGURES = {2: figure2, 3: figure3, 4: figure4}
X_NAMES = {2: "components", 3: "epsilon", 4: "owners"}


def peers(path: Path | None, figure: int) -> list[Line]:
    """One-site synthesizers that were run elsewhere."""
    if path is None:
        return []
    with path.open(newline="") as file:
        return [
            Line(title, method, float(x), "accuracy", int(run), float(value))
            for title, method, x, run, value in csv.reader(file)
            if title.startswith(f"figure {figure}:")
        ]


def draw(lines: list[Line], figure: int) -> Figure:
    titles = list(dict.fromkeys(line.panel for line in lines))
    drawn = Figure(figsize=(max(4.0 * len(titles), 5.0), 4.4), layout="constrained")
    axes = drawn.subplots(1, len(titles), squeeze=False)[0]
    shown = {name: look for name, look in LOOKS.items() if any(line.method == name for line in lines)}
    for one, title in zip(axes, titles, strict=True):
        if title.endswith("contribution"):
            for method, look in (("each", Look("#0072b2", "o")), ("together", Look("#d55e00", "s"))):
                common.draw_methods(one, lines, title, "contribution", {method: look}, log=False)
            one.set_ylabel("share of the variance (no noise)")
            one.legend(frameon=False)
        else:
            common.draw_methods(one, lines, title, "accuracy", shown, log=figure == 3)
            one.set_ylabel("accuracy on real rows")
        if figure == 2:
            one.set_xticks(TICKS[title.split(": ")[1].split(",")[0]])
            one.xaxis.set_major_formatter("{x:g}")
        name = title.split(": ", 1)[1].replace("nltcs", "NLTCS").replace("adult", "Adult")
        one.set_title(name, fontsize=10)
        one.set_xlabel(X_NAMES[figure])
    common.shared_legend(drawn, [a for a, t in zip(axes, titles, strict=True) if "contribution" not in t], 4)
    return drawn


def main(arguments: list[str] | None = None) -> int:
    parser = common.options(__doc__)
    parser.add_argument("--figures", type=int, nargs="+", choices=sorted(FIGURES), default=sorted(FIGURES))
    parser.add_argument("--tables", nargs="+", choices=sorted(CONTRIBUTION), default=["nltcs", "adult"])
    parser.add_argument("--peers", type=Path)
    chosen = parser.parse_args(arguments)
    runs = chosen.runs or (QUICK_RUNS if chosen.quick else RUNS)
    files = {"nltcs": "nltcs.npz", "adult": "adult.csv.gz"}
    tables = [name for name in chosen.tables if (common.data_folder() / files[name]).is_file()]
    for name in set(chosen.tables) - set(tables):
        print(f"left out: {name}: no file {common.data_folder() / files[name]}; set {common.DATA_VARIABLE}")
    for figure in chosen.figures:
        lines: list[Line] = []
        with common.stopwatch(f"figure {figure}"), threadpool_limits(1):
            for name in tables:
                case = CASES[name](common.data_folder())
                for run in range(runs):
                    lines += FIGURES[figure](split(name, case, run), chosen.quick)
        lines += peers(chosen.peers, figure)
        if lines:
            common.print_table(lines, "accuracy", X_NAMES[figure])
            common.finish(
                draw(lines, figure), lines, chosen.out, f"synthesis_figure{figure}", X_NAMES[figure]
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
