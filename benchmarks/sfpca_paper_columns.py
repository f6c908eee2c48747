"""The paper variant where islands hold columns (its D.2), at N = 2^14: Pima's eight columns on three islands.

    python -m benchmarks.sfpca_paper_columns --data FOLDER

Letters are those of the paper's Figure 5 for this table; intervals are stated, of a simulation on the pooled
table. Prints what ``atoll review`` says beforehand and what then happens, in processor time of all roles.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from atoll.bench import figure5
from atoll.bench.paper import SETTINGS, table_of
from atoll.data.island import Island, Matrix, as_islands
from atoll.estimators.base import parties
from atoll.protocols import PROTOCOLS, resolve
from atoll.protocols.base import Circumstances
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca.paper.algorithm1 import Shape
from atoll.protocols.pca.sfpca.paper.intervals import simulated, taken
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.protocols.pca.sfpca.paper.sketch import public_seed, spreading
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Study

SEED = 1
WIDTHS = (3, 3, 2)
NAME = "pima"


def islands_of(table: Matrix) -> dict[str, Island]:
    """Columns on three islands."""
    ends = np.cumsum((0, *WIDTHS))
    names = [f"x{j}" for j in range(table.shape[1])]
    return as_islands([pd.DataFrame(table[:, a:b], columns=names[a:b]) for a, b in pairwise(ends)])


def study_of(table: Matrix, islands: dict[str, Island]) -> Study:
    """With the paper's letters; components and scores to everybody."""
    setting = SETTINGS[NAME]
    letters = {"p": setting.p, "alpha": setting.alpha, "w": setting.w, "seed": SEED}
    paper = {**letters, "intervals": stated(table, Algorithm(**letters), setting.psi)}
    study = Study(
        name="columns",
        protocol="sfpca-paper",
        partition="vertical",
        parties=parties(islands, "provider", "coordinator"),
        parameters={"accept_determined": True, "n_components": setting.psi, "paper": paper},
        release=dict.fromkeys(("components", "scores", "certificate"), ("provider",)),
    )
    return resolve(study)


def stated(table: Matrix, paper: Algorithm, psi: int) -> dict[str, object]:
    """What a simulation on the pooled table says, as a study states it."""
    n, m = table.shape
    exponent = int(np.ceil(np.log2(np.abs(table).max())))
    told_by = Study(name="", protocol="sfpca-paper", parties=(), parameters={"paper": {"seed": SEED}})
    seed = public_seed(told_by)
    turn = spreading(seed, m)
    assert turn is not None, "few columns are spread"
    shape = Shape((n,), m, psi, psi + paper.alpha)
    told = simulated(np.ldexp(table, -exponent) @ turn.T, shape, Course("seq", "qr"), paper, seed)
    known = taken(told, shape.rho, Address("island-0", "provider"))
    return {
        "scale": known.scale,
        "variances": list(known.variances),
        "places": {place: list(ends) for place, ends in known.of.items()},
        "stretches": {place: list(powers) for place, powers in known.stretches.powers.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path)
    table = table_of(NAME, parser.parse_args().data)
    islands = islands_of(table)
    study, psi = study_of(table, islands), SETTINGS[NAME].psi
    protocol = PROTOCOLS["sfpca-paper"]
    assert protocol.forecast is not None
    expected, seen = protocol.forecast(study, Circumstances(table.shape[1], (len(table),) * len(WIDTHS)))
    said = len(WIDTHS) * seen.processor_provider + seen.processor_server
    print(
        f"said: {expected.messages} messages, {expected.rounds} rounds, "
        f"{expected.bytes_per_provider / 1e6:.0f} MB an island, {said:.0f} CPU s",
        flush=True,
    )
    before, started = time.process_time(), time.perf_counter()
    outcome = LocalEngine().run(protocol, study, owned(islands))
    used, took = time.process_time() - before, time.perf_counter() - started
    transcript = outcome.transcript
    sent = max(c.bytes_sent for role, c in transcript.roles.items() if role.endswith("/provider"))
    print(
        f"run:  {transcript.messages} messages, {transcript.rounds} rounds, {sent / 1e6:.0f} MB an island, "
        f"{used:.0f} CPU s, {took:.0f} s elapsed"
    )
    found = next(v.outputs for a, v in outcome.learned.items() if a.role == "provider")
    cosines, error = figure5.compared(found["components"], figure5.exact_components(table, psi))
    (scores,) = found["scores"].values()
    off = np.abs(scores - (table - table.mean(axis=0)) @ found["components"].T).max() / np.abs(scores).max()
    print(
        f"cosine {min(cosines):.10f}, MSE {error:.1e}, tau {found['certificate']['tau']:.1e}, "
        f"scores off by {off:.1e} of the largest"
    )


if __name__ == "__main__":
    main()
