"""Mehnaz, Bellala and Bertino (2017), Figures 3 to 8: gradient descent in the scenarios CT, DT and DU.

    python -m reproduce.secure_descent [--figures 3 4 ...] [--quick] [--runs 5] [--out FOLDER]

CT pools the tables at a trusted server, DT adds in the clear, DU is secure. Latency by every role's own
clock, with parties on machines of their own and links of 1 ms and 1 Gbit/s; bytes as sent; the error on the
30% of rows that are left out of the fit must be the same in all scenarios. YearPrediction, SUSY and ds1.10
are generated tables of these sizes. ElGamal stands where its sums are short.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from reproduce import common
from reproduce.common import DataMissing, Floats, Line
from reproduce.descent import (
    CT,
    DT,
    ELGAMAL,
    LOOKS,
    ONIONS,
    SHARES,
    Setting,
    generated,
    measured,
    standardised,
)

RUNS = 5
QUICK_ROWS, QUICK_STEPS = 600, 3
ALL = (CT, DT, SHARES, ONIONS)
WITH_ELGAMAL = (*ALL, ELGAMAL)
_ROWS, _PARTIES, _BATCH = "rows", "parties", "rows of a batch"

BY_ROWS, BY_COLUMNS, LOGISTIC = "linear, rows split", "linear, columns split", "logistic, rows split"
MORE_ROWS, MORE_PARTIES = "linear, columns split: rows", "linear, columns split: parties"


@dataclass(frozen=True)
class Point:
    """A setting without its table, and the methods that are measured there."""

    setting: Setting
    table: Callable[[int | None], tuple[Floats, Floats]]
    methods: tuple[str, ...] = ALL


def made(rows: int, columns: int, *, classes: bool = False) -> Callable[[int | None], tuple[Floats, Floats]]:
    """A generated table of this size, or of fewer rows."""
    return lambda most: generated(min(rows, most or rows), columns, rows, classes=classes)


def public(
    name: str, rows: int | None = None, *, classes: bool = False
) -> Callable[..., tuple[Floats, Floats]]:
    """A public table, or some of its rows."""

    def read(most: int | None) -> tuple[Floats, Floats]:
        X, y = common.public_data(name)
        chosen = np.random.default_rng(0).permutation(len(X))[: min(rows or len(X), most or len(X))]
        y = np.asarray(y[chosen], dtype=np.float64)
        return X[chosen], (y > y.min()).astype(float) if classes else y

    return read


def _at(panel: str, x: float, parties: int, steps: int, **options: object) -> Setting:
    nothing = np.zeros((0, 0))
    return Setting(panel, x, nothing, nothing, parties, steps, **options)  # type: ignore[arg-type]


def _figure3() -> Iterator[Point]:
    bike, year = (17_379, public("bike_sharing_hour")), (515_345, made(515_345, 90))
    for (rows, table), steps in zip((bike, year), (150, 25), strict=True):
        yield Point(_at(BY_ROWS, rows, 3, steps), table, WITH_ELGAMAL)
    for rows, table in (bike, year):
        yield Point(_at(BY_COLUMNS, rows, 3, 100, columns=True, batch=100), table)
    for rows, steps, table in (
        (2_456, 38, public("phishing_websites", 2_456, classes=True)),
        (11_055, 38, public("phishing_websites", classes=True)),
        (500_000, 25, made(500_000, 18, classes=True)),
    ):
        yield Point(_at(LOGISTIC, rows, 3, steps, cost="logistic"), table, WITH_ELGAMAL)


def _figure4() -> Iterator[Point]:
    for rows, steps in ((1_000, 91), (10_000, 94), (100_000, 85)):
        yield Point(_at(BY_ROWS, rows, 2, steps), made(rows, 5), WITH_ELGAMAL)


def _figure5() -> Iterator[Point]:
    for parties in (2, 4, 8):
        yield Point(_at(BY_ROWS, parties, parties, 85), made(100_000, 5))


def _batches(methods: tuple[str, ...]) -> Iterator[Point]:
    for batch in (100, 1_000, 10_000, 100_000):
        setting = _at(BY_COLUMNS, batch, 2, 89, columns=True, batch=batch)
        yield Point(setting, made(100_000, 8), methods)


def _figure8() -> Iterator[Point]:
    for rows in (1_000, 10_000, 100_000):
        yield Point(_at(MORE_ROWS, rows, 2, 89, columns=True, batch=100), made(rows, 8))
    for parties in (2, 4, 8):
        setting = _at(MORE_PARTIES, parties, parties, 89, columns=True, batch=100)
        yield Point(setting, made(100_000, 8))
    for rows, steps in ((1_000, 98), (10_000, 89), (26_733, 88)):
        setting = _at(LOGISTIC, rows, 2, steps, cost="logistic")
        yield Point(setting, made(rows, 10, classes=True), WITH_ELGAMAL)


FIGURES: dict[int, Callable[[], Iterator[Point]]] = {
    3: _figure3,
    4: _figure4,
    5: _figure5,
    6: lambda: _batches((CT,)),
    7: lambda: _batches((DT, SHARES)),
    8: _figure8,
}
AXES = {5: {BY_ROWS: _PARTIES}, 6: {BY_COLUMNS: _BATCH}, 7: {BY_COLUMNS: _BATCH}, 8: {MORE_PARTIES: _PARTIES}}

_MADE = "generated tables"
NOTES = {
    3: f"515,345 and 500,000 rows: {_MADE} of YearPrediction's and SUSY's size; "
    "steps as in the paper: 150 and 25; 100; 38, 38 and 25"
}
NOTES[8] = f"{_MADE}; logistic of ds1.10's size"


def measure(figure: int, runs: int, quick: bool = False) -> list[Line]:
    """Every point of a figure; a panel's point without its data is left out, and said."""
    lines: list[Line] = []
    for point in FIGURES[figure]():
        try:
            X, y = point.table(QUICK_ROWS if quick else None)
        except DataMissing as missing:
            print(f"left out: {missing}")
            continue
        setting = replace(point.setting, X=standardised(X), y=y)
        if quick:
            setting = replace(setting, steps=QUICK_STEPS)
        lines += measured(setting, point.methods, runs)
    return lines


def draw(figure: int, lines: list[Line]) -> Figure:
    """Latency above, bytes below; one column of panels for each experiment."""
    panels = list(dict.fromkeys(line.panel for line in lines))
    looks = {name: look for name, look in LOOKS.items() if any(line.method == name for line in lines)}
    drawn = Figure(figsize=(1.4 + 3.6 * len(panels), 7.2 if len(panels) == 1 else 6.4), layout="constrained")
    axes = drawn.subplots(2, len(panels), squeeze=False)
    for row, (measured_, label) in enumerate(
        (("seconds", "latency, seconds"), ("megabytes", "sent, megabytes"))
    ):
        for column, panel in enumerate(panels):
            one = axes[row, column]
            common.draw_methods(one, lines, panel, measured_, looks)
            common.plain_heights(one)
            one.set_xlabel(AXES.get(figure, {}).get(panel, _ROWS))
            one.set_ylabel(label)
            if row == 0:
                one.set_title(panel.partition(":")[0], fontsize=10)
    drawn.suptitle(NOTES.get(figure, _MADE), fontsize=9, color="#555555")
    common.shared_legend(drawn, axes.ravel(), 1 if len(panels) == 1 else 3)
    return drawn


def main(arguments: list[str] | None = None) -> int:
    parser = common.options(__doc__)
    parser.add_argument("--figures", type=int, nargs="+", default=list(FIGURES), choices=list(FIGURES))
    chosen = parser.parse_args(arguments)
    runs = chosen.runs or (2 if chosen.quick else RUNS)
    for figure in chosen.figures:
        with common.stopwatch(f"figure {figure}"):
            lines = measure(figure, runs, chosen.quick)
        for measured_ in ("seconds", "megabytes", "error"):
            common.print_table(lines, measured_, "x")
        common.finish(draw(figure, lines), lines, chosen.out, f"secure_descent_figure{figure}", "x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
