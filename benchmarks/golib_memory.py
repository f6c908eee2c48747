"""Does the Go library give memory back? 1,000 encrypt-add-decrypt cycles, resident memory printed.

    PYTHONPATH=src python benchmarks/golib_memory.py [--cycles 1000] [--values 20000]

The yardstick is the peak after the first 100 cycles, when every pool is filled. Ends with 1 if memory
then grows by more than 10 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from atoll.crypto.hazmat import golib, lattice

WARM_UP = 100
ALLOWED_GROWTH = 0.10


def resident_mebibytes() -> float:
    """This process's resident memory, from the kernel."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not say how much memory is resident")


def single_cycle(values: list[lattice.Limbs], pair: lattice.KeyPair) -> lattice.Limbs:
    """Keys opened anew each time, so that handles and what hangs on them are counted too."""
    with lattice.PublicKey(pair.public) as key, lattice.SecretKey(pair.secret) as secret:
        return secret.decrypt(lattice.add(key.encrypt(v) for v in values))


def collective_cycle(
    values: list[lattice.Limbs], public: bytes, pairs: list[lattice.KeyPair]
) -> lattice.Limbs:
    """The same with a collective key; objects are left to the collector on purpose."""
    key = lattice.PublicKey(public)
    total = lattice.add(key.encrypt(v) for v in values)
    return key.combine(total, [lattice.SecretKey(p.secret).decryption_share(key, total) for p in pairs])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--values", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 2**61, (3, options.values), dtype=np.uint64) for _ in range(3)]
    wanted = values[0] + values[1] + values[2]  # limbs below 2^61: three of them carry nothing
    chosen, together = lattice.plan(options.values), lattice.plan(options.values, collective=True)
    pair = lattice.keygen(parameters=chosen.parameters, width=chosen.width)
    pairs = [
        lattice.key_share(bytes(32), parameters=together.parameters, width=together.width) for _ in range(3)
    ]
    public = lattice.aggregate([p.public for p in pairs])
    peak_before = peak = 0.0
    for cycle in range(1, options.cycles + 1):
        # One cycle in ten with a collective key: the rest with the usual one.
        opened = collective_cycle(values, public, pairs) if cycle % 10 == 0 else single_cycle(values, pair)
        assert np.array_equal(opened, wanted)
        now = resident_mebibytes()
        if cycle <= WARM_UP:
            peak_before = max(peak_before, now)
        peak = max(peak, now)
        if cycle in (1, 10, WARM_UP) or cycle % 200 == 0:
            print(f"cycle {cycle:5d}: {now:7.1f} MiB resident, {golib.live_handles()} live handles")
    growth = peak / peak_before - 1
    print(f"peak {peak_before:.1f} MiB in the first {WARM_UP} cycles, {peak:.1f} MiB overall: {growth:+.1%}")
    return 0 if growth <= ALLOWED_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
