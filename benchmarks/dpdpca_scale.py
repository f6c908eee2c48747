"""DPDPCA at 90 features: what the proxy and the data user do, in seconds, and how it grows with owners.

    python -m benchmarks.dpdpca_scale [--quick]

100 owners on every form; then fewer and more owners, on lattices and on Paillier, and the exponent with which
time grows. --quick leaves out the paper's own form and more than 100 owners.

A whole study runs once in this process; then the proxy and the data user alone are run again from their
records and inboxes, which is what is timed (the best of three): all that they decode, add, decrypt and
decompose, and nothing that owners do. The making of their keys is recorded, so it is timed apart and added.
Growth is fitted to processor seconds, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import linregress

from atoll import randomness
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.paillier import generate, parameters_for
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.own import Own, owned
from atoll.runtime.engine import Observer
from atoll.runtime.inbox import Event, Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord
from atoll.runtime.replay import replay
from atoll.study.address import Address
from atoll.study.model import Study
from benchmarks.measure import seconds, show

FEATURES, ROWS = 90, 20
FORMS: dict[str, tuple[str, dict[str, Any], dict[str, Any], float]] = {
    "lattice, collective key": ("lattice", {"key": "collective"}, {}, 5.0),
    "lattice, data user's key": ("lattice", {"key": "server"}, {}, 5.0),
    "paillier": ("paillier", {}, {}, 60.0),
    "paillier, the paper's own form": ("paillier", {}, {"calibration": "paper"}, 60.0),
}
"""Secure sum, its options, parameters, and the promise in seconds for 100 owners."""

GROWTH = {
    "lattice, collective key": (10, 30, 100, 256),
    "lattice, data user's key": (10, 30, 100, 300),
    "paillier": (10, 20, 40, 100),
}
"""Owners for which growth is measured; a collective key has at most 256 members."""


class Kept(Observer):
    """What the proxy and the data user received and drew."""

    def __init__(self) -> None:
        self.inboxes: dict[Address, list[Event]] = defaultdict(list)
        self.records: dict[Address, MemoryRecord] = {}

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        if receiver.role != "owner":
            self.inboxes[receiver].append(Received(sender, data))

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.records[address] = record


def study_of(form: str, owners: int) -> tuple[Study, dict[str, Any]]:
    secure_sum, options, parameters, _ = FORMS[form]
    rng = np.random.default_rng(0)
    islands = as_islands([rng.normal(size=(ROWS, FEATURES)) for _ in range(owners)])
    study = Study(
        name="scale",
        protocol="dpdpca",
        secure_sum=secure_sum,
        sum_options=options,
        parties=parties(islands, "owner", "proxy", "data_user"),
        parameters={"n_components": 5, "epsilon": 1.0, "delta": 1e-5, "row_norm": 20.0, **parameters},
        release={"components": ("data_user",), "explained_variance": ("data_user",)},
    )
    return study, islands


def key_seconds(form: str) -> float:
    secure_sum, options, _, _ = FORMS[form]
    if secure_sum == "paillier":
        return seconds(lambda: generate(parameters_for(2048), randomness.fresh_seed()))[0]
    if options["key"] == "collective":  # nobody makes it alone
        return 0.0
    plan = lattice.plan(FEATURES * (FEATURES + 1) // 2)
    make = {"width": plan.width, "parameters": plan.parameters, "seed": randomness.fresh_seed()}
    return seconds(lambda: lattice.keygen(**make))[0]


class Measured(NamedTuple):
    """Seconds of the whole run, of the proxy and the data user alone, and processor seconds of these two."""

    whole: float
    proxy: float
    user: float
    processor: float


@cache
def measured(form: str, owners: int) -> Measured:
    study, islands = study_of(form, owners)
    protocol, kept = protocol_of("dpdpca"), Kept()
    started = time.perf_counter()
    LocalEngine().run(protocol, study, owned(islands), observer=kept)
    whole = time.perf_counter() - started
    alone, processor = [], 0.0
    for role in ("proxy", "data_user"):
        address = study.the(role)
        drawn, inbox = kept.records[address].drawn, kept.inboxes[address]

        def again(a: Address = address, r: Any = drawn, i: Any = inbox) -> float:
            before = time.process_time()
            replay(protocol, study, a, Own(), r, i)
            return time.process_time() - before

        took = [seconds(again) for _ in range(3)]
        alone.append(min(wall for wall, _ in took))
        processor += min(busy for _, busy in took)
    return Measured(whole, alone[0], alone[1] + key_seconds(form), processor)


def promises(forms: list[str]) -> None:
    rows: list[list[object]] = []
    for form in forms:
        took = measured(form, 100)
        rows.append([form, took.proxy, took.user, took.proxy + took.user, FORMS[form][3], took.whole])
    show(
        f"{FEATURES} features, 100 owners",
        ["", "proxy s", "data user s", "together", "promise <=", "whole run, all owners s"],
        rows,
    )


def growth(most: int) -> None:
    rows: list[list[object]] = []
    exponents = {}
    for form, counts in GROWTH.items():
        owners = [count for count in counts if count <= most]
        together = [measured(form, count).processor for count in owners]
        exponents[form] = linregress(np.log(owners), np.log(together))
        rows += [[form, *point] for point in zip(owners, together, strict=True)]
    show("Proxy and data user together, by owners", ["", "owners", "processor s"], rows)
    for form, fit in exponents.items():
        said = "no faster than linearly" if fit.slope <= 1.0 + 2 * fit.stderr else "FASTER THAN LINEARLY"
        print(f"{form}: time grows as owners^{fit.slope:.2f} (standard error {fit.stderr:.2f}), {said}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    promises([form for form in FORMS if not (quick and "paper" in form)])
    growth(100 if quick else max(max(counts) for counts in GROWTH.values()))


if __name__ == "__main__":
    main()
