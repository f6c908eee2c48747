"""DPDPCA at 90 features: what the proxy and the data user do, in seconds, and how it grows with owners.

python -m benchmarks.dpdpca_scale            100 owners on every form, then 10, 30, 100 and more owners
python -m benchmarks.dpdpca_scale --quick    without more than 100 owners and without the paper's own form

A whole study runs once in this process; then the proxy and the data user alone are run again from their
records and inboxes, which is what is timed (the best of three): all that they decode, add, decrypt and
decompose, and nothing that owners do. The making of their keys is recorded, so it is timed apart and added.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np

from atoll import randomness
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.paillier import generate, parameters_for
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.network import Address
from atoll.protocols import protocol_of
from atoll.runtime.local import LocalEngine, Observer
from atoll.runtime.records import MemoryRecord
from atoll.runtime.replay import replay
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

MOST_OWNERS = {"lattice, collective key": 256, "lattice, data user's key": 300}
"""How far growth is measured; a collective key has at most 256 members."""


class Kept(Observer):
    """What the proxy and the data user received and drew."""

    def __init__(self) -> None:
        self.inboxes: dict[Address, list[tuple[Address, bytes | None]]] = defaultdict(list)
        self.records: dict[Address, MemoryRecord] = {}

    def delivered(self, receiver: Address, sender: Address, data: bytes | None) -> None:
        if receiver.role != "owner":
            self.inboxes[receiver].append((sender, data))

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


def measured(form: str, owners: int) -> tuple[float, float, float]:
    """Seconds of the whole run, of the proxy alone and of the data user alone."""
    study, islands = study_of(form, owners)
    protocol, kept = protocol_of("dpdpca"), Kept()
    started = time.perf_counter()
    LocalEngine().run(protocol, study, islands, observer=kept)
    whole = time.perf_counter() - started
    alone = []
    for role in ("proxy", "data_user"):
        address = study.the(role)
        drawn, inbox = kept.records[address].drawn, kept.inboxes[address]
        alone.append(
            seconds(lambda a=address, r=drawn, i=inbox: replay(protocol, study, a, None, r, i), 3)[0]
        )
    return whole, alone[0], alone[1] + key_seconds(form)


def main() -> None:
    quick = "--quick" in sys.argv
    forms = [form for form in FORMS if not (quick and "paper" in form)]
    rows: list[list[object]] = []
    for form in forms:
        whole, proxy, user = measured(form, 100)
        rows.append([form, proxy, user, proxy + user, FORMS[form][3], whole])
    show(
        f"{FEATURES} features, 100 owners",
        ["", "proxy s", "data user s", "together", "promise <=", "whole run, all owners s"],
        rows,
    )
    growth: list[list[object]] = []
    for form, most in MOST_OWNERS.items():
        counts = [10, 30, 100] if quick else [10, 30, 100, most]
        together = [sum(measured(form, owners)[1:]) for owners in counts]
        exponent = float(np.polyfit(np.log(counts), np.log(together), 1)[0])
        growth += [
            [
                form,
                owners,
                took,
                exponent if owners == counts[-1] else "",
                1.0 if owners == counts[-1] else "",
            ]
            for owners, took in zip(counts, together, strict=True)
        ]
    show(
        "Proxy and data user together, by owners",
        ["", "owners", "seconds", "fitted exponent", "promise <="],
        growth,
    )


if __name__ == "__main__":
    main()
