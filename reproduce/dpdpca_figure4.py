"""Wang and Chang (2018), Figure 4: an RBF SVM on private components, against samples per owner.

    python -m reproduce.dpdpca_figure4 [--quick] [--runs 5] [--out FOLDER]

epsilon 0.5, delta 1/N; 70 % of the rows train, the rest test; k is the rank of what one owner holds; the
SVM sees rows projected on k components (gamma="scale", C=10). Precision, recall and F1 are means over the
classes. CNAE-9 and ISOLET (one speaker group) are public data; in place of GISETTE stand generated tables
with two classes: one of its size, without PrivateLocalPCA, which decomposes a matrix of all columns for
each owner (hours for one run), and one of a tenth of its rows and columns, with it.

Rows have unit norm, as the noise assumes. Two more lines show the same noise on rows as they are: that
noise is not sized for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.metrics import precision_recall_fscore_support
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from atoll.privacy.paper_forms import centred_scatter
from atoll.randomness import derive, fresh_seed
from reproduce import common, methods
from reproduce.common import Floats, Line

EPSILON = 0.5
RUNS, QUICK_RUNS = 5, 2
TEST_SHARE = 0.3
MEASURES = ("precision", "recall", "F1")
PENALTY = 10.0

Labels = npt.NDArray[Any]


class Panel(NamedTuple):
    title: str
    samples: tuple[int, ...]
    load: Callable[[], tuple[Floats, Labels]]
    owner_after_owner: bool = True
    """Whether PrivateLocalPCA runs too."""


class Split(NamedTuple):
    """Training and test rows with their labels."""

    train: Floats
    test: Floats
    train_labels: Labels
    test_labels: Labels


def cnae() -> tuple[Floats, Labels]:
    return common.public_data("cnae9")


def isolet() -> tuple[Floats, Labels]:
    return common.public_data("isolet_1560")


def two_classes(rows: int, columns: int, seed: int) -> tuple[Floats, Labels]:
    """Non-negative and sparse, with classes that differ in some columns only: pixels of two digits."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    strokes = rng.random((12, columns)) ** 6
    weights = rng.standard_exponential((rows, 12))
    # Two strokes that only one class has each; the others both have.
    weights[labels == 0, 0] = weights[labels == 1, 1] = 0.2
    table = weights @ strokes + 0.4 * rng.normal(size=(rows, columns))
    return np.maximum(table, 0.0), labels


def gisette_tenth() -> tuple[Floats, Labels]:
    return two_classes(1_350, 500, 4)


def gisette_sized() -> tuple[Floats, Labels]:
    return two_classes(13_500, 5_000, 4)


PANELS = {
    "CNAE-9": Panel("CNAE-9", (40, 120, 300), cnae),
    "ISOLET": Panel("ISOLET, one speaker group", (40, 120, 300), isolet),
    "GISETTE tenth": Panel("generated, a tenth of GISETTE", (40, 120, 300), gisette_tenth),
    "GISETTE": Panel("generated, GISETTE's size", (40, 120, 300), gisette_sized, owner_after_owner=False),
}


def split(table: Floats, labels: Labels, run: int) -> Split:
    parts = train_test_split(table, labels, test_size=TEST_SHARE, random_state=run, stratify=labels)
    return Split(*parts)


def scores(components: Floats, data: Split) -> dict[str, float]:
    """Precision, recall and F1 of an SVM on the projected rows."""
    train, test = data.train @ components.T, data.test @ components.T
    gamma = 1.0 / (train.shape[1] * train.var())  # "scale"; all kernels at once are four times as fast
    model = SVC(kernel="precomputed", C=PENALTY, cache_size=500)
    model.fit(rbf_kernel(train, gamma=gamma), data.train_labels)
    predicted = model.predict(rbf_kernel(test, train, gamma=gamma))
    found = precision_recall_fscore_support(data.test_labels, predicted, average="macro", zero_division=0.0)
    return dict(zip(MEASURES, map(float, found[:3]), strict=True))


def local_rank(train: Floats, samples: int) -> int:
    """What one owner's rows span."""
    return int(np.linalg.matrix_rank(train[:samples]))


class Once(NamedTuple):
    """Components that do not depend on who holds which rows; the first k are taken for each point."""

    exact: Floats
    printed: Floats
    printed_raw: Floats


def once(data: Split, raw: Split, most: int, seed: bytes) -> Once:
    delta, scatter = 1.0 / len(data.train), centred_scatter(data.train)
    return Once(
        methods.top(scatter, most),
        methods.as_printed(scatter, most, EPSILON, delta, derive(seed, "printed")),
        methods.as_printed(centred_scatter(raw.train), most, EPSILON, delta, derive(seed, "raw")),
    )


def variants(
    data: Split, raw: Split, whole: Once, samples: int, k: int, seed: bytes, *, local: bool
) -> Iterator[tuple[str, Floats, Split]]:
    """Every method's components, with the rows that they belong to."""
    n, d = data.train.shape
    owners, delta = max(n // samples, 2), 1.0 / n
    here = derive(seed, samples)
    yield methods.NONE, whole.exact[:k], data
    yield methods.OURS, methods.ours(data.train, k, owners, EPSILON, delta, here), data
    yield methods.PRINTED, whole.printed[:k], data
    yield methods.PRINTED_RAW, whole.printed_raw[:k], raw
    yield methods.RANDOM, methods.random_directions(d, k, samples), data
    if local:
        for name, rows in ((methods.LOCAL, data), (methods.LOCAL_RAW, raw)):
            parts = np.array_split(rows.train, owners)
            yield name, methods.owner_after_owner(parts, k, EPSILON, delta, here), rows


def measure(
    panel: str,
    table: Floats,
    labels: Labels,
    samples: tuple[int, ...],
    run: int,
    seed: bytes,
    *,
    local: bool = True,
) -> list[Line]:
    """One run: a fresh split, and every method at every number of samples per owner."""
    raw = split(table, labels, run)
    data = raw._replace(train=common.unit_rows(raw.train), test=common.unit_rows(raw.test))
    here, ranks = derive(seed, panel, run), {held: local_rank(data.train, held) for held in samples}
    whole = once(data, raw, max(ranks.values()), here)
    found = []
    for held, k in ranks.items():
        for method, components, rows in variants(data, raw, whole, held, k, here, local=local):
            for name, value in scores(components, rows).items():
                found.append(Line(panel, method, held, name, run, value))
    return found


def one_task(name: str, title: str, samples: tuple[int, ...], run: int, seed: bytes) -> list[Line]:
    """In a worker process, which loads the table itself."""
    chosen = PANELS[name]
    return measure(title, *chosen.load(), samples, run, seed, local=chosen.owner_after_owner)


def draw(lines: list[Line], titles: list[str]) -> Figure:
    figure = Figure(figsize=(max(4.3 * len(titles), 5.6), 8.6), layout="constrained")
    axes = figure.subplots(len(MEASURES), len(titles), squeeze=False, sharex="col")
    for row, name in zip(axes, MEASURES, strict=True):
        for one, title in zip(row, titles, strict=True):
            common.draw_methods(one, lines, title, name, methods.LOOKS)
        row[0].set_ylabel(name)
    for one, title in zip(axes[0], titles, strict=True):
        one.set_title(title, fontsize=9.5)
    for one in axes[-1]:
        one.set_xlabel("samples per owner")
    common.shared_legend(figure, axes.ravel(), 2 if len(titles) > 1 else 1)
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = common.options(__doc__)
    parser.add_argument(
        "--panels", nargs="+", choices=PANELS, help="which of them; without, all (--quick: but the largest)"
    )
    chosen = parser.parse_args(arguments)
    names = chosen.panels or [name for name in PANELS if not (chosen.quick and name == "GISETTE")]
    runs = chosen.runs or (QUICK_RUNS if chosen.quick else RUNS)
    tasks: list[tuple[str, str, tuple[int, ...], int, bytes]] = []
    for name, panel in ((name, PANELS[name]) for name in names):
        try:
            shape = panel.load()[0].shape
        except common.DataMissing as missing:
            print(f"left out: {missing}")
            continue
        title = f"{panel.title} ({shape[0]:,} x {shape[1]:,})"
        samples = panel.samples[1:] if chosen.quick else panel.samples
        tasks += [(name, title, samples, run, fresh_seed()) for run in range(runs)]
    with common.stopwatch("figure 4"), common.workers() as pool:
        lines = [line for found in pool.map(one_task, *zip(*tasks, strict=True)) for line in found]
    common.print_table(lines, "F1", "samples per owner")
    titles = list(dict.fromkeys(task[1] for task in tasks))
    common.finish(draw(lines, titles), lines, chosen.out, "dpdpca_figure4", "samples_per_owner")
    return 0


if __name__ == "__main__":
    sys.exit(main())
