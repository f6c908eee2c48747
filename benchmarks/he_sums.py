"""Homomorphic sums against the plain `phe` loop, and at ISOLET's size.

    python -m benchmarks.he_sums

`phe` is timed on a sample of the values, as a user would write the loop (encrypt each number, add,
decrypt), and extrapolated per value. Needs the `phe` package.
"""

from __future__ import annotations

import phe

from atoll.bench.sums import bench_sums
from benchmarks.measure import seconds, show

SAMPLE = 40
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
    d, islands = 90, 3
    n = d * (d + 1) // 2
    plain = phe_loop(n, islands)
    bench_sums(8, islands, HE)  # the library is loaded once per process, not once per sum
    rows = []
    for row, promise in zip(bench_sums(n, islands, HE), (20, 1000, 1000), strict=True):
        work = row.seconds - row.key_seconds
        rows.append([row.method, work, row.key_seconds, plain / work, promise, row.exact])
    show(
        f"Upper triangle of {d} x {d} ({n:,} sums), {islands} islands, 2048-bit: phe loop {plain:.0f} s",
        ["method", "seconds", "key generation s", "times faster than phe", "promise >=", "exact"],
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
