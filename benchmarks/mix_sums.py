"""The mixing secure sum: onions beside shares, ElGamal per element and hop, orders in turn and in parallel.

    python -m benchmarks.mix_sums

Ratios and times of one run on this machine; run it with nothing else.
"""

from __future__ import annotations

import resource
import time

import numpy as np

import atoll
from atoll import fixedpoint, randomness
from atoll.bench.sums import bench_sums
from atoll.estimators.base import parties
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study
from atoll.secure_sums.mix.elgamal import PIECES, ElGamal
from atoll.secure_sums.mix.form import Hop
from atoll.study.model import Study
from benchmarks import plain_elgamal
from benchmarks.measure import seconds, show

ISLANDS, SEGMENTS = 3, 2
FORMS = (("shares", {}), ("mix", {}))


def beside_shares() -> list[list[object]]:
    """Onions on the sums of a 90 x 90 triangle, and of a 617 x 617 one."""
    bench_sums(100, ISLANDS, FORMS)
    rows: list[list[object]] = []
    for n, promise in ((4_095, "<= 5 x shares"), (190_653, "<= 5 s")):
        best = {
            name: min(bench_sums(n, ISLANDS, ((name, {}),))[0].seconds for _ in range(5)) for name, _ in FORMS
        }
        rows.append([f"{n:,}", best["shares"], best["mix"], best["mix"] / best["shares"], promise])
    return rows


def processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def elgamal_hop(values: int = 500) -> float:
    """Processor seconds for each group element that a party strips, re-randomises and permutes."""
    form, root = ElGamal(), randomness.fresh_seed()
    private = [form.private_key(randomness.derive(root, k), "bench") for k in range(ISLANDS + 1)]
    public = [form.public_key(key) for key in private]
    hop = Hop("bench", "b", 0, 0)
    segments = [
        fixedpoint.encode(np.random.default_rng(1).normal(size=values)) for _ in range(ISLANDS * SEGMENTS)
    ]
    batch = form.wrap(segments, public, hop, root).items
    form.strip(batch, private[-1], public[:-1], hop.at(ISLANDS), root)
    started = processor()
    form.strip(batch, private[-1], public[:-1], hop.at(ISLANDS), root)
    return (processor() - started) / (len(batch) * PIECES * values)


def beside_the_plain_form(values: int = 4) -> tuple[float, float]:
    """Seconds a value from cutting to reading, for 2048-bit residues and for ours."""
    numbers = [[k * 1_000 + j for j in range(SEGMENTS * values)] for k in range(ISLANDS)]
    plain, read = seconds(lambda: plain_elgamal.mixed(numbers))
    assert sorted(read) == sorted(x for own in numbers for x in own)
    vectors = [np.random.default_rng(k).normal(size=50 * values) for k in range(ISLANDS)]
    ours, _ = seconds(lambda: atoll.secure_sum(vectors, "mix", form="elgamal", segments=SEGMENTS), 3)
    return plain / values, ours / (50 * values)


def apart_seconds(parallel: bool, n: int = 1_000) -> tuple[float, int]:
    """By every role's own clock, over links of 20 ms."""
    vectors = {f"i{k}": np.random.default_rng(k).normal(size=(1, n)) for k in range(ISLANDS)}
    islands = {name: atoll.Island.from_array(vector, name=name) for name, vector in vectors.items()}
    study = Study(
        name="bench",
        analysis="sum",
        protocol="sum",
        secure_sum="mix",
        sum_options={"form": "elgamal", "parallel": parallel},
        parties=parties(islands, "contributor", "receiver"),
        parameters={"length": n},
        release={"total": ("receiver",)},
    )
    engine = atoll.LocalEngine(latency=0.02, one_at_a_time=True)
    transcript = run_study(study, owned(islands), engine=engine).result.transcript
    return transcript.apart_seconds, transcript.messages


def main() -> None:
    started = time.perf_counter()
    show(
        f"Onions beside shares, {ISLANDS} islands, best of 5",
        ["sums", "shares s", "mix s", "ratio", "promise"],
        beside_shares(),
    )
    plain, ours = beside_the_plain_form()
    show(
        "ElGamal",
        ["", "found", "promise"],
        [
            ["processor us for each element, party and hop", 1e6 * elgamal_hop(), "<= 150"],
            ["times faster than 2048-bit layers, seconds a value", plain / ours, ">= 50"],
        ],
    )
    (one, few), (many, more) = apart_seconds(False), apart_seconds(True)
    show(
        "1,000 sums, ElGamal, every party on a machine of its own, links of 20 ms",
        ["orders", "seconds", "messages", "times faster"],
        [["one (ssp_v1)", one, few, ""], [f"{ISLANDS} rotated (ssp_v2)", many, more, one / many]],
    )
    print(f"promise: ssp_v2 >= 1.5 times faster; took {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
