"""Lattice sums against a plain `phe` loop: seconds and bytes for 3 islands, in one run.

    PYTHONPATH=src python benchmarks/lattice_sums.py [--phe-values 24] [--islands 3]

The `phe` loop encrypts, adds and decrypts a sample of values, one ciphertext each with a 2048-bit key; its
time for the whole vector is that sample's, scaled. Lattice times are medians and include opening the keys
from bytes and all serialisation; key generation is reported apart.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import phe

from atoll.crypto.hazmat import lattice

SIZES = {"mean and triangle of 12": 90, "triangle of 90": 4_095, "triangle of 617": 190_653}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def phe_seconds_per_value(islands: int, sample: int) -> float:
    public, private = phe.generate_paillier_keypair(n_length=2048)

    def loop() -> None:
        for value in range(sample):
            total = public.encrypt(value + 0.5)
            for island in range(1, islands):
                total += public.encrypt(value * island - 0.25)
            private.decrypt(total)

    return seconds(loop) / sample


def single(values: list[lattice.Limbs]) -> tuple[float, float, int]:
    """Key generation, everything after it, and bytes per island."""
    chosen = lattice.plan(values[0].shape[1])
    start = time.perf_counter()
    pair = lattice.keygen(parameters=chosen.parameters, width=chosen.width)
    made = time.perf_counter()
    with lattice.PublicKey(pair.public) as key, lattice.SecretKey(pair.secret) as secret:
        parts = [key.encrypt(v) for v in values]
        secret.decrypt(lattice.add(parts))
    return made - start, time.perf_counter() - made, len(pair.public) + len(parts[0])


def collective(values: list[lattice.Limbs]) -> tuple[float, float, int]:
    """The same with a key shared by the islands."""
    chosen = lattice.plan(values[0].shape[1], collective=True)
    start = time.perf_counter()
    pairs = [lattice.key_share(bytes(32), parameters=chosen.parameters, width=chosen.width) for _ in values]
    public = lattice.aggregate([pair.public for pair in pairs])
    made = time.perf_counter()
    with lattice.PublicKey(public) as key:
        total = lattice.add(parts := [key.encrypt(v) for v in values])
        shares = [lattice.SecretKey(pair.secret).decryption_share(key, total) for pair in pairs]
        key.combine(total, shares)
    travelled = len(pairs[0].public) + len(public) + len(parts[0]) + len(total) + len(shares[0])
    return made - start, time.perf_counter() - made, travelled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--phe-values", type=int, default=24)
    parser.add_argument("--islands", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    per_value = phe_seconds_per_value(options.islands, options.phe_values)
    print(f"plain phe loop, 2048 bits, {options.islands} islands: {1e3 * per_value:.1f} ms per value")
    rng = np.random.default_rng(0)
    for name, n in SIZES.items():
        values = [rng.integers(0, 2**61, (3, n), dtype=np.uint64) for _ in range(options.islands)]
        for form, run in (("single", single), ("collective", collective)):
            runs = [run(values) for _ in range(options.repeats)]
            key, total = (statistics.median(r[i] for r in runs) for i in (0, 1))
            print(
                f"{name:24s} {n:8,d} values  {form:10s}  {1e3 * total:8.1f} ms (keys {1e3 * key:6.1f} ms)  "
                f"{runs[0][2] / 1e6:6.2f} MB per island  {per_value * n / total:9,.0f} x phe"
            )


if __name__ == "__main__":
    main()
