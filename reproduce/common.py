"""Where data come from, and how figures and tables are written."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from threadpoolctl import threadpool_limits

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(__file__).resolve().parent / "out"
DATA_VARIABLE = "ATOLL_PUBLIC_DATA"
WORKERS = 2
# Methods are drawn beside each other by this factor, so that equal values can be told apart.
_APART = 1.03


class DataMissing(Exception):
    """A public data set is not on this machine."""


def data_folder() -> Path:
    """The folder named by the environment, or ``shared/data`` beside the repository or above it."""
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return Path(named)
    candidates = [above / "shared" / "data" for above in ROOT.parents]
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


def public_data(name: str) -> tuple[Floats, npt.NDArray[Any]]:
    """Rows and target of one of the public tables."""
    path = data_folder() / f"{name}.npz"
    if not path.is_file():
        raise DataMissing(f"{name}: no file {path}; set {DATA_VARIABLE} to the folder that holds it")
    with np.load(path, allow_pickle=False) as stored:
        return np.asarray(stored["X"], dtype=np.float64), np.asarray(stored["y"])


def unit_rows(table: Floats) -> Floats:
    """Every row but a zero row gets length one."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.where(norms > 0, norms, 1.0))


def unit_columns(table: Floats) -> Floats:
    """Columns brought to [0, 1] by their range, constant ones to 0."""
    low, spread = table.min(axis=0), np.ptp(table, axis=0)
    return np.asarray((table - low) / np.where(spread > 0, spread, 1.0))


def generated_table(rows: int, columns: int, seed: int, decay: float = 1.0) -> Floats:
    """Rows around a mean that is not zero, in skewed directions whose deviations fall as j^-decay."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    deviations = np.arange(1, columns + 1) ** -decay
    table = rng.standard_exponential((rows, columns))
    table -= 1.0
    table *= deviations
    return np.asarray(table @ directions + 0.1 * rng.normal(size=columns))


@dataclass(frozen=True)
class Line:
    """One measured number."""

    panel: str
    method: str
    x: float
    measure: str
    run: int
    value: float


def summary(lines: Iterable[Line]) -> dict[tuple[str, str, float, str], tuple[float, float, int]]:
    """Mean, standard deviation and number of runs, by panel, method, x and measure."""
    found: dict[tuple[str, str, float, str], list[float]] = {}
    for line in lines:
        found.setdefault((line.panel, line.method, line.x, line.measure), []).append(line.value)
    return {
        key: (float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))
        for key, values in found.items()
    }


def write_csv(path: Path, lines: Sequence[Line], x_name: str) -> None:
    """One row for each panel, method, x and measure: mean and standard deviation over the runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("panel", "method", x_name, "measure", "mean", "std", "runs"))
        for (panel, method, x, measure), (mean, deviation, runs) in summary(lines).items():
            out.writerow((panel, method, f"{x:g}", measure, f"{mean:.5g}", f"{deviation:.3g}", runs))


@dataclass(frozen=True)
class Look:
    """How one method is drawn; the same in every figure."""

    colour: str
    marker: str
    dashes: str = "-"


def draw_methods(
    axes: Axes, lines: Sequence[Line], panel: str, measure: str, looks: dict[str, Look], *, log: bool = True
) -> None:
    """Every method of a panel, with bars of one standard deviation; neighbours stand a little apart."""
    numbers = summary(line for line in lines if line.panel == panel and line.measure == measure)
    places = sorted({x for _, _, x, _ in numbers})
    for index, (method, look) in enumerate(looks.items()):
        away = index - (len(looks) - 1) / 2
        points = sorted((x, *rest) for (_, name, x, _), rest in numbers.items() if name == method)
        if points:
            x, mean, deviation, _ = map(np.array, zip(*points, strict=True))
            aside = x * _APART**away if log else x + (_APART - 1.0) * away * (places[-1] - places[0]) / 4
            axes.errorbar(
                aside, mean, yerr=deviation, label=method, color=look.colour, marker=look.marker,
                linestyle=look.dashes, markersize=5, linewidth=1.5, capsize=2.5,
            )  # fmt: skip
    axes.set_xscale("log" if log else "linear")
    axes.set_xticks(places, [f"{x:,g}" for x in places])
    axes.minorticks_off()
    axes.grid(color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plain_heights(axes: Axes) -> None:
    """Logarithmic, with numbers as one writes them; from zero where all points are within a factor of ten."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines])
    low, high = float(drawn.min()), float(drawn.max())
    if low > 0.1 * high:
        axes.set_ylim(0.0, 1.15 * high)
        return
    axes.set_yscale("log", nonpositive="clip")
    if low > 0.01 * high:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")


def shared_legend(figure: Figure, axes: Iterable[Axes], columns: int) -> None:
    """One legend below all panels."""
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False
    )


def options(description: str | None) -> argparse.ArgumentParser:
    """What all figures understand."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer points, smaller tables, two runs")
    parser.add_argument("--runs", type=int, help="runs for each point")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the PNG and the CSV")
    return parser


@contextmanager
def workers() -> Iterator[ProcessPoolExecutor]:
    """Processes with one thread each: small matrices gain nothing from more."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        yield pool


def _one_thread() -> None:
    threadpool_limits(1)


@contextmanager
def stopwatch(what: str) -> Iterator[None]:
    """Says afterwards how long it took."""
    start = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def finish(figure: Figure, lines: Sequence[Line], folder: Path, name: str, x_name: str) -> None:
    """Write both files and say where they are."""
    write_csv(folder / f"{name}.csv", lines, x_name)
    figure.savefig(folder / f"{name}.png", dpi=140)
    print(f"wrote {folder / f'{name}.png'} and {folder / f'{name}.csv'}")


def print_table(lines: Sequence[Line], measure: str, x_name: str) -> None:
    """Means of one measure on the screen, panel by panel."""
    numbers = summary(line for line in lines if line.measure == measure)
    for panel in dict.fromkeys(key[0] for key in numbers):
        places = sorted({key[2] for key in numbers if key[0] == panel})
        print(f"\n{panel}: {measure}, mean (standard deviation)")
        print(f"{x_name:54}" + "".join(f"{x:>16g}" for x in places))
        for method in dict.fromkeys(key[1] for key in numbers if key[0] == panel):
            cells = [numbers.get((panel, method, x, measure)) for x in places]
            print(f"{method:54}" + "".join(f"{f'{c[0]:.3f} ({c[1]:.3f})' if c else '':>16}" for c in cells))
