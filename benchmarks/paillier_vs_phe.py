"""Secure sums by Paillier: packed batches beside the plain ``phe`` loop, in one run.

    python benchmarks/paillier_vs_phe.py             the upper triangle of 90 x 90, three islands
    python benchmarks/paillier_vs_phe.py --features 617 --bits 3072

The ``phe`` loop is what its documentation shows: one ciphertext per number, ``+``, decrypt. It is timed on a
sample of the numbers and scaled up to all of them (every number costs the same); the line says so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import phe

from atoll.crypto.hazmat import ciphertexts
from atoll.crypto.hazmat.packing import Layout, Limbs, integers_from_limbs
from atoll.crypto.hazmat.paillier import SecretKey, generate, parameters_for
from atoll.randomness import expand_words, fresh_seed
from atoll.threads import cores

R = TypeVar("R")


def timed(work: Callable[[], R]) -> tuple[float, R]:
    """Seconds of wall clock, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def island_values(count: int, island: int) -> Limbs:
    """Numbers of any sign over the whole grid, halved twice so that three of them stay on it."""
    words = expand_words(bytes(32), 3 * count, "benchmark", island).reshape(3, count).copy()
    words[2] = (words[2].view(np.int64) >> 2).view(np.uint64)
    return words


def ours(key: SecretKey, islands: list[Limbs]) -> float:
    """Encrypt, add and decrypt; every sum is checked outside the clock."""
    public = key.public
    layout = Layout.plan(public.parameters.modulus_bits, summands=len(islands))
    encrypting = 0.0
    batches = []
    processor = time.process_time()
    for island in islands:
        seconds, batch = timed(
            lambda island=island: ciphertexts.encrypt(public, island, layout, fresh_seed())
        )
        encrypting += seconds
        batches.append(batch)
    adding, total = timed(lambda: ciphertexts.add(public, batches))
    opening, opened = timed(lambda: ciphertexts.decrypt(key, total))
    processor = time.process_time() - processor
    expected = [sum(column) for column in zip(*map(integers_from_limbs, islands), strict=True)]
    if integers_from_limbs(opened) != expected:
        raise SystemExit("the opened sums are wrong")
    seconds = encrypting + adding + opening
    print(
        f"  atoll  {seconds:10.2f} s   encrypt {encrypting:.2f}, add {adding:.2f}, decrypt {opening:.2f}"
        f" ({processor:.2f} s of processor)   {len(batches[0]) / 1e6:.2f} MB per island, sums exact"
    )
    return seconds


def plain_loop(bits: int, count: int, islands: int, sample: int, as_floats: bool) -> float:
    """The ``phe`` loop on ``sample`` numbers, scaled to ``count``."""
    public, private = phe.generate_paillier_keypair(n_length=bits)
    vectors = [integers_from_limbs(island_values(sample, i)) for i in range(islands)]
    numbers = [[v / 2**100 if as_floats else v for v in vector] for vector in vectors]

    def loop() -> None:
        encrypted = [[public.encrypt(x) for x in vector] for vector in numbers]
        total = encrypted[0]
        for vector in encrypted[1:]:
            total = [a + b for a, b in zip(total, vector, strict=True)]
        for x in total:
            private.decrypt(x)

    seconds = timed(loop)[0] * count / sample
    kind = "floats" if as_floats else "integers"
    print(f"  phe    {seconds:10.2f} s   {kind}; timed on {sample} numbers, extrapolated to {count}")
    return seconds


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=90)
    parser.add_argument("--islands", type=int, default=3)
    parser.add_argument("--bits", type=int, default=2048)
    parser.add_argument("--sample", type=int, default=40)
    arguments = parser.parse_args()
    count = arguments.features * (arguments.features + 1) // 2
    print(
        f"{count} sums of 192-bit numbers, {arguments.islands} islands, "
        f"{arguments.bits}-bit key, {cores()} cores"
    )
    seconds, key = timed(lambda: generate(parameters_for(arguments.bits), fresh_seed()))
    print(f"  key generation {seconds:.2f} s (not counted)")
    total = ours(key, [island_values(count, i) for i in range(arguments.islands)])
    for as_floats in (False, True):
        reference = plain_loop(arguments.bits, count, arguments.islands, arguments.sample, as_floats)
        print(f"  ratio  {reference / total:10.1f} x")


if __name__ == "__main__":
    main()
