"""Homomorphic sums against the plain `phe` loop, and at ISOLET's size.

    python -m benchmarks.he_sums

`phe` is timed on a sample of the values, as a user would write the loop (encrypt each number, add,
decrypt), and extrapolated per value. Needs the `phe` package.
"""

from __future__ import annotations

from statistics import median

import phe

from atoll.bench.sums import bench_sums
from benchmarks.measure import seconds, show

SAMPLE = 40
SIZES = (4_095, 10_000, 65_536)  # the first: the upper triangle of 90 x 90
RUNS = 5
HE = (("paillier", {}), ("lattice", {"key": "server"}), ("lattice", {"key": "collective"}))


def phe_loop(n_values: int, n_islands: int) -> float:
    """Seconds for n_values sums over n_islands, from a sample."""
    public, private = phe.generate_paillier_keypair(n_length=2048)
    vectors = [[(i + 1) * (j - 17.5) / 3 for j in range(SAMPLE)] for i in range(n_islands)]

    def loop() -> list[float]:
        encrypted = [[public.encrypt(value) for value in vector] for vector in vectors]
        totals = [sum(column[1:], column[0]) for column in zip(*encrypted, strict=True)]
        return [private.decrypt(total) for total in totals]

    took, _ = seconds(loop)
    return took / SAMPLE * n_values


def main() -> None:
    islands = 3
    each = phe_loop(1, islands)
    bench_sums(8, islands, HE)  # the library is loaded once per process, not once per sum
    rows = []
    for n in SIZES:
        for form, promise in zip(HE, (20, 1000, 1000), strict=True):
            runs = [bench_sums(n, islands, (form,))[0] for _ in range(RUNS if form[0] == "lattice" else 1)]
            work = median(row.seconds - row.key_seconds for row in runs)
            keys, exact = median(row.key_seconds for row in runs), all(row.exact for row in runs)
            rows.append([f"{n:,}", runs[0].method, work, keys, each * n / work, promise, exact])
    show(
        f"{islands} islands, 2048-bit: phe loop {each * 1e3:.0f} ms a sum",
        ["sums", "method", "seconds", "key generation s", "times faster than phe", "promise >=", "exact"],
        rows,
    )
    d = 617
    n = d * (d + 1) // 2
    rows = []
    for row, promise in zip(bench_sums(n, islands, HE), (120, 3, 3), strict=True):
        rows.append(
            [row.method, row.seconds, promise, row.island_bytes / 1e6, row.total_bytes / 1e6, row.exact]
        )
    show(
        f"{d} features ({n:,} sums), {islands} islands",
        ["method", "seconds", "promise <=", "MB per island", "MB in all", "exact"],
        rows,
    )


if __name__ == "__main__":
    main()
