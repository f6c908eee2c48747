"""Fuzz the Go library's C surface: damaged messages, wrong handles, absurd numbers, several threads at once.

    PYTHONPATH=src python benchmarks/fuzz_golib.py [--seconds 300] [--seed N]

Every call must either succeed or raise an AtollError. The fuzzing runs in a child process: should that
be aborted, or raise anything else, this program says so and ends with 1. Buffers are always as long as
they are said to be: a caller that lies about its memory is beyond any library's help.
"""

from __future__ import annotations

import argparse
import collections
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from atoll.crypto.hazmat import golib, lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE,
    INSECURE_TEST_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE,
    INSECURE_TEST_SINGLE_SHORT,
    LATTICE_SINGLE,
    LatticeParameters,
)
from atoll.errors import AtollError

THREADS = 4
INTERESTING = (0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 130, 255, 256, 1024, 1025, 2**26, 2**31, 2**32 - 1)
WIDE = (*INTERESTING, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
BODY_AT, CHECKSUM_AT = 36, 32


def crc_table() -> list[int]:
    """CRC-32C of single bytes."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def crc_step(state: int, data: bytes | bytearray) -> int:
    """The checksum's state after more bytes."""
    for byte in data:
        state = (state >> 8) ^ CRC_TABLE[(state ^ byte) & 0xFF]
    return state


class Sound:
    """A sound message, and its body's effect on the checksum: an affine map of 32 bits.

    Knowing the map, the checksum of a damaged header before the same body takes no pass over the body.
    """

    def __init__(self, message: bytes) -> None:
        self.message = message
        body = message[BODY_AT:]
        self.constant = crc_step(0, body)
        self.images = [crc_step(1 << bit, body) ^ self.constant for bit in range(32)]

    def mend(self, damaged: bytearray) -> None:
        """Make the checksum right, so that the damage gets past it."""
        state = crc_step(0xFFFFFFFF, damaged[:CHECKSUM_AT])
        if damaged[BODY_AT:] == self.message[BODY_AT:]:
            total = self.constant
            for bit, image in enumerate(self.images):
                if state >> bit & 1:
                    total ^= image
        else:
            total = crc_step(state, damaged[BODY_AT:])
        struct.pack_into("<I", damaged, CHECKSUM_AT, total ^ 0xFFFFFFFF)


class Corpus:
    """Sound messages of every kind, and live handles, to start from."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.handles: list[Any] = []
        vector = np.arange(3 * 40, dtype=np.uint64).reshape(3, 40)
        for width, short in ((1, False), (3, False), (1, True)):
            self._add_single(width, vector, INSECURE_TEST_SINGLE_SHORT if short else INSECURE_TEST_SINGLE)
            row = INSECURE_TEST_COLLECTIVE_SHORT if short else INSECURE_TEST_COLLECTIVE
            self._add_collective(width, vector, row)
        self.sound = [Sound(message) for message in self.messages]
        closed = lattice.Adder(for_tests=True)
        self.numbers = [handle._handle.number for handle in self.handles] + [
            closed._handle.number,
            0,
            2**64 - 1,
        ]
        closed.close()

    def _add_single(self, width: int, vector: lattice.Limbs, row: LatticeParameters) -> None:
        pair = lattice.keygen(parameters=row, width=width, for_tests=True)
        key = lattice.PublicKey(pair.public, for_tests=True)
        parts = [key.encrypt(vector) for _ in range(2)]
        self.messages += [pair.secret, pair.public, *parts, lattice.add(parts, for_tests=True)]
        self.handles += [key, lattice.SecretKey(pair.secret, for_tests=True), lattice.Adder(for_tests=True)]

    def _add_collective(self, width: int, vector: lattice.Limbs, row: LatticeParameters) -> None:
        pairs = [lattice.key_share(bytes(32), parameters=row, width=width, for_tests=True) for _ in range(2)]
        public = lattice.aggregate([pair.public for pair in pairs], for_tests=True)
        key = lattice.PublicKey(public, for_tests=True)
        secrets = [lattice.SecretKey(pair.secret, for_tests=True) for pair in pairs]
        total = key.encrypt(vector)
        shares = [secret.decryption_share(key, total) for secret in secrets]
        self.messages += [pairs[0].secret, pairs[0].public, pairs[1].public, public, total, *shares]
        self.handles += [key, *secrets]


class Fuzzer:
    """One thread's random calls."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self.corpus, self.random = corpus, random.Random(seed)
        self.outcomes: collections.Counter[str] = collections.Counter()

    def message(self) -> bytes:
        """A sound message, or one damaged in one of many ways."""
        r = self.random
        sound = r.choice(self.corpus.sound)
        data = bytearray(sound.message)
        damage = r.randrange(8)
        if damage == 0:
            return bytes(data)
        if damage == 1:
            return bytes(data[: r.randrange(len(data) + 1)])
        if damage == 2:
            return bytes(data) + r.randbytes(r.randrange(1, 100))
        if damage == 3:
            return r.randbytes(r.choice((0, 1, 35, 36, 37, 100, 5000)))
        if damage == 4:
            struct.pack_into("<Q", data, 8, r.choice(WIDE))
        elif damage == 5:
            struct.pack_into("<I", data, 4, r.choice(INTERESTING))
        else:
            for _ in range(r.randrange(1, 5)):
                at = r.randrange(32) if r.random() < 0.9 else r.randrange(len(data))
                data[at] = r.randrange(256)
        if r.random() < 0.7:
            sound.mend(data)
        return bytes(data)

    def buffer(self) -> tuple[Any, int]:
        return golib.bytes_in(self.message())

    def number(self) -> int:
        return self.random.choice(self.corpus.numbers)

    def room(self) -> tuple[Any, int]:
        sizes = (0, 1, 36, 100, *(len(message) for message in self.corpus.messages))
        if self.random.random() < 0.05:
            return golib.ffi.NULL, self.random.choice((0, 8, 2**63))
        size = self.random.choice(sizes)
        return golib.ffi.new("uint8_t[]", size), size

    def limbs(self) -> tuple[Any, int]:
        size = self.random.choice((0, 1, 3, 120, 120, 120, 121, 3000))
        return golib.ffi.new("uint64_t[]", size), size

    def seed(self) -> tuple[Any, int]:
        size = self.random.choice((32, 32, 32, 0, 31, 33))
        return golib.ffi.new("uint8_t[]", self.random.randbytes(size)), size

    def small(self) -> int:
        return self.random.choice((1, 1, 2, 3, 129, 130, *INTERESTING))

    def list(self) -> tuple[Any, Any, int]:
        self.kept = golib.BufferList([self.message() for _ in range(self.random.randrange(4))])
        return self.kept.arguments

    def place(self) -> Any:
        return golib.ffi.NULL if self.random.random() < 0.05 else golib.ffi.new("uint64_t*")

    def call(self) -> None:
        """One call of a function chosen at random."""
        r, ffi = self.random, golib.ffi
        flags = r.choice((0, 1, 1, 1, 2**32 - 1))
        facts = ffi.new(
            "uint64_t[6]",
            [r.choice(WIDE) if r.random() < 0.3 else r.choice((1, 2, 3, 129)) for _ in range(6)],
        )
        choices: list[Callable[[], None]] = [
            lambda: golib.call("atoll_additive_table", *self.room(), self.place()),
            lambda: golib.call("atoll_additive_size", facts, flags, self.place()),
            lambda: golib.call("atoll_additive_inspect", *self.buffer(), flags, facts),
            lambda: golib.call(
                "atoll_additive_keygen",
                self.small(),
                self.small(),
                flags,
                *self.seed(),
                *self.room(),
                *self.room(),
            ),
            lambda: golib.call(
                "atoll_additive_key_share",
                *(self.small(), self.small(), flags, *self.seed(), *self.seed(), *self.room(), *self.room()),
            ),
            lambda: golib.call("atoll_additive_aggregate", *self.list(), flags, *self.room()),
            lambda: self.open_and_close("atoll_additive_open_public", flags),
            lambda: self.open_and_close("atoll_additive_open_secret", flags),
            lambda: golib.call(
                "atoll_additive_encrypt",
                self.number(),
                *self.limbs(),
                self.small(),
                *self.seed(),
                *self.room(),
            ),
            lambda: golib.call("atoll_additive_decrypt", self.number(), *self.buffer(), flags, *self.limbs()),
            lambda: golib.call(
                "atoll_additive_decryption_share",
                *(self.number(), self.number(), *self.buffer(), flags, *self.room()),
            ),
            lambda: golib.call(
                "atoll_additive_combine", self.number(), *self.buffer(), *self.list(), flags, *self.limbs()
            ),
            lambda: golib.call("atoll_additive_adder_add", self.number(), *self.buffer()),
            lambda: golib.call("atoll_additive_adder_size", self.number(), self.place()),
            lambda: golib.call("atoll_additive_adder_finish", self.number(), *self.room()),
            lambda: golib.call("atoll_release", r.choice((0, r.getrandbits(64) | 1 << 63))),
        ]
        try:
            r.choice(choices)()
        except AtollError as problem:
            self.outcomes[type(problem).__name__] += 1
        else:
            self.outcomes["accepted"] += 1

    def open_and_close(self, opener: str, flags: int) -> None:
        golib.Handle(opener, *self.buffer(), flags).close()


def fuzz(seconds: float, seed: int) -> int:
    """The child: fuzz for so long; 1 if anything but an AtollError came out."""
    corpus = Corpus()
    fuzzers = [Fuzzer(corpus, seed + i) for i in range(THREADS)]
    unexpected: list[BaseException] = []
    end = time.monotonic() + seconds

    def work(fuzzer: Fuzzer) -> None:
        try:
            while time.monotonic() < end and not unexpected:
                fuzzer.call()
        except BaseException as problem:
            unexpected.append(problem)

    threads = [threading.Thread(target=work, args=(fuzzer,)) for fuzzer in fuzzers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum((fuzzer.outcomes for fuzzer in fuzzers), collections.Counter())
    print(f"{sum(total.values()):,} calls on {THREADS} threads:", dict(total.most_common()))
    # After all that the library still works.
    pair = lattice.keygen(parameters=LATTICE_SINGLE)
    vector = np.full((3, 5), 7, np.uint64)
    opened = lattice.SecretKey(pair.secret).decrypt(lattice.PublicKey(pair.public).encrypt(vector))
    print("live handles:", golib.live_handles(), "| still exact:", bool(np.array_equal(opened, vector)))
    for problem in unexpected:
        print("unexpected:", repr(problem))
    return 1 if unexpected or total["RunError"] or not np.array_equal(opened, vector) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else time.time_ns() % 2**32
    if options.child:
        return fuzz(options.seconds, seed)
    command = [sys.executable, __file__, "--child", "--seconds", str(options.seconds), "--seed", str(seed)]
    code = subprocess.run(command, check=False).returncode
    print(
        f"{options.seconds:.0f} s, seed {seed}: "
        + ("no abort, no surprise" if code == 0 else f"FAILED, exit {code}")
    )
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
