"""SF-PCA's paper variant beside its paper: Tables 1 and 2, Figure 5, points of Figures 3, 4 and 7c.

Operations are counted, each is measured once on this machine, and times are products of both: extrapolated.
The paper's are elapsed on six machines of 12 cores over links of 20 ms and 1 Gbit/s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import ceil, log2
from pathlib import Path
from typing import NamedTuple

import numpy as np

from atoll import randomness
from atoll.bench import FIGURE5, figure5
from atoll.bench.figure5 import ISLANDS, Floats
from atoll.bench.paper_counts import SLOTS, Setting, counted, default, even, routines, study_of
from atoll.bench.slot_rates import Rates
from atoll.errors import DataError
from atoll.estimators.pca.estimator import PCA
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Circumstances
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.slots import costs
from atoll.secret_matrices.slots.counting import Tallies
from atoll.secret_matrices.slots.machine import Operation, Tally

SETTINGS = {
    "pima": even(767, 8, p=5, psi=1, alpha=1, w=5),
    "wine": even(4898, 11, p=15, psi=5, alpha=5, w=1),
    "vehicle": even(435, 19, p=20, psi=8, alpha=4, w=5),
    "chr20": even(2502, 1773, p=20, psi=2, alpha=4, w=1),
    "mnist": even(60_000, 760, p=40, psi=5, alpha=2, w=5),
    "lung": even(9098, 23_724, p=15, psi=2, alpha=5, w=5),
}
"""Figure 5's tables and letters, as the paper has them."""
SEQ = {"chr20", "lung"}
"""Where Seq takes fewer products than Precomp."""


# ---- Table 2 ----


class Operated(NamedTuple):
    """An operation or routine: our processor seconds, counted ones extrapolated, and the paper's seconds."""

    name: str
    seconds: float
    paper_seconds: float
    extrapolated: bool


_PAPER = {
    "c + c'": 0.0007,
    "v · c": 0.013,
    "c · c'": 0.083,
    "Rot": 0.08,
    "dot product, 1 x 256": 0.73,
    "Send": 0.026,
    "DBootstrap": 0.49,
    "DKeyGen": 9.0,
}


def table2(rates: Rates) -> Iterator[Operated]:
    """Every line of the paper's Table 2."""
    for name, seconds in _PAPER.items():
        yield Operated(name, rates.fresh[name], seconds, False)
    for routine in routines():
        ours = rates.coordinator(routine.coordinator, ISLANDS) + rates.provider(routine.provider)
        yield Operated(routine.name, ours, routine.paper_seconds, True)


# ---- Table 1 ----


class Step(NamedTuple):
    """A step of Algorithm 1: ciphertexts that a provider sends (refreshes too), and operations."""

    name: str
    ciphertexts: int
    paper_ciphertexts: float
    refreshes: int
    products: int
    weighings: int
    rotations: int


def table1() -> list[Step]:
    """The default parameters; operations are those of coordinator and one provider together."""
    run, setting = counted(default()), default()
    rho, psi = setting.psi + setting.alpha, setting.psi
    first = _paper_refreshes("QR^T", f"{rho} x {setting.columns}", rho)
    last = _paper_refreshes("QR^T", f"{psi} x {setting.columns}", psi)
    small = _paper_refreshes("Eigen", f"{rho} x {rho}", rho)
    theirs = {"2": 1, "3": rho, "4": setting.p * (rho + first), "5": rho, "6": small, "7": psi + last}
    return [_step(run, name, paper) for name, paper in theirs.items()]


def _paper_refreshes(routine: str, sizes: str, rows: int) -> float:
    formulas = costs.formulas(a=rows)
    return next(f.refreshes for f in formulas if f.routine.startswith(routine) and f.sizes == sizes)


def _step(run: Tallies, name: str, paper: float) -> Step:
    here, there = (tally.parts.get(name, Tally().total) for tally in (run.coordinator, run.provider))
    both = here + there
    refreshes = there[Operation.REFRESH]
    kinds = (Operation.MULTIPLY, Operation.WEIGH, Operation.ROTATE)
    return Step(name, there[Operation.SEND] + refreshes, paper, refreshes, *(both[kind] for kind in kinds))


KEYS = (16, log2(SLOTS) + 2.5)
"""Step 1, in parts of keys: the public key, two rounds of relinearisation, 13 rotations; and the paper's."""


# ---- Figure 5 ----


class Extrapolated(NamedTuple):
    """A whole run: processor seconds of all roles, and the forecast of the fast variant for the same."""

    name: str
    letters: str
    method: str
    processor_seconds: float
    island_gigabytes: float
    paper_seconds: float
    fast_processor_seconds: float
    fast_island_gigabytes: float
    times: int
    """More than one where a row takes several ciphertexts."""


def figure5_row(name: str, rates: Rates) -> Extrapolated:
    """One of its tables."""
    setting = SETTINGS[name]
    method = "seq" if name in SEQ else "precomp"
    run = counted(setting, method)
    fast_seconds, fast_bytes = fast(setting)
    return Extrapolated(
        name,
        f"{setting.p},{setting.psi},{setting.alpha},{setting.w}",
        method,
        processor_seconds(run, rates, len(setting.rows)),
        rates.gigabytes(run.provider),
        figure5.CASES[name].paper.own * 3600,
        fast_seconds,
        fast_bytes / 1e9,
        ceil(setting.columns / SLOTS),
    )


def processor_seconds(run: Tallies, rates: Rates, n_providers: int = ISLANDS) -> float:
    """Of all roles together, keys included."""
    provider = rates.steps.keys + rates.provider(run.provider)
    return rates.coordinator(run.coordinator, n_providers) + n_providers * provider


def fast(setting: Setting) -> tuple[float, int]:
    """The fast variant's forecast: processor seconds of all roles, and an island's bytes."""
    study = study_of(setting, FIGURE5, {})
    forecast = PROTOCOLS[FIGURE5].forecast
    assert forecast is not None, "the fast variant is forecast"
    expected, seen = forecast(study, Circumstances(setting.columns, setting.rows))
    return len(setting.rows) * seen.processor_provider + seen.processor_server, expected.bytes_per_provider


# ---- Figures 3, 4 and 7c ----


class Point(NamedTuple):
    """A point of a figure: minutes of processor time, and what the paper says of it."""

    figure: str
    what: str
    method: str
    island_minutes: float
    coordinator_minutes: float
    island_gigabytes: float
    relative: float
    """To the base point: an island and the coordinator together."""
    paper: str


def _points() -> Sequence[tuple[str, str, Setting, str, str]]:
    return (
        ("base", "m 256, n_i 1,024", default(), "precomp", "fastest"),
        ("3", "the same", default(), "seq", "slower"),
        ("3", "m 8,192", even(6144, 8192), "precomp", "x 1"),
        ("3", "m 8,192", even(6144, 8192), "seq", "x 1"),
        ("3", "m 16,384", even(6144, 16_384), "seq", "linear now"),
        ("3", "n_i 8,192", even(49_152, 256), "precomp", "x 1"),
        ("4", "12 islands", even(12 * 1024, 256, 12), "precomp", "x 1.1"),
        ("4", "200 islands", even(200 * 1024, 256, 200), "precomp", "110 min"),
        ("4", "p 20", default(p=20), "precomp", "linear"),
        ("4", "psi 8", default(psi=8), "precomp", "linear"),
        ("7c", "n_i 32,768, any n", _one_large(32_768, 65_536), "seq", "constant"),
    )


def _one_large(largest: int, n: int) -> Setting:
    return Setting((largest, *(ceil((n - largest) / 5),) * 5), 256)


def points(rates: Rates) -> Iterator[Point]:
    """One after the other; the first is the base."""
    base = 0.0
    for figure, what, setting, method, paper in _points():
        run = counted(setting, method)
        island = rates.provider(run.provider)
        coordinator = rates.coordinator(run.coordinator, len(setting.rows))
        base = base or island + coordinator
        yield Point(
            figure,
            what,
            method,
            island / 60,
            coordinator / 60,
            rates.gigabytes(run.provider),
            (island + coordinator) / base,
            paper,
        )


# ---- one run for real ----


class Ran(NamedTuple):
    """An encrypted run, beside what was extrapolated for it."""

    name: str
    seconds: float
    processor_seconds: float
    extrapolated_seconds: float
    island_gigabytes: float
    extrapolated_gigabytes: float
    cosines: list[float]
    squared_error: float


def table_of(name: str, folder: Path | None) -> Floats:
    """One of Figure 5's tables; the folder, or what the environment says."""
    if name not in SETTINGS:
        raise DataError(f"there is no case {name!r}", hint=f"one of {', '.join(SETTINGS)}")
    return figure5.load(figure5.data_folder(folder), figure5.CASES[name])


def run(name: str, table: Floats, rates: Rates) -> Ran:
    """An encrypted run with the paper's letters."""
    setting = SETTINGS[name]
    # The paper splits at random; intervals come from one island's rows, which have to stand for all.
    X = randomness.public(0).permutation(table)
    engine = LocalEngine(latency=figure5.LATENCY, bandwidth=figure5.BANDWIDTH)
    letters = {"p": setting.p, "alpha": setting.alpha, "w": setting.w}
    pca = PCA(
        setting.psi,
        protocol="sfpca",
        variant="paper",
        paper={**letters, "seed": 1},
        bounds=figure5.CASES[name].bounds,
        accept_determined=True,
        engine=engine,
    )
    before, started = time.process_time(), time.perf_counter()
    fitted = pca.fit(np.array_split(X, ISLANDS))
    took, used = time.perf_counter() - started, time.process_time() - before
    counts = counted(even(*X.shape, **letters, psi=setting.psi))
    providers = [cost for role, cost in fitted.transcript_.roles.items() if role.endswith("/provider")]
    cosines, error = figure5.compared(fitted.components_, figure5.exact_components(X, setting.psi))
    return Ran(
        name,
        took,
        used,
        processor_seconds(counts, rates),
        max(cost.bytes_sent for cost in providers) / 1e9,
        rates.gigabytes(counts.provider),
        cosines,
        error,
    )
