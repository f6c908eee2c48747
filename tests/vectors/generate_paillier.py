"""Known answers for Paillier, computed from the definitions with Python's own integers.

    python tests/vectors/generate_paillier.py        writes paillier.json beside this file

Nothing of ``atoll.crypto`` is used: primes, powers, packing and messages are written out again, slowly. Only
the stretching of seeds comes from ``atoll.randomness``.
"""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from atoll.randomness import derive, expand

HERE = Path(__file__).parent
SMALL_PRIMES = [p for p in range(3, 2000, 2) if all(p % d for d in range(3, math.isqrt(p) + 1, 2))]


def seed(label: str) -> bytes:
    """A fixed seed per label."""
    return hashlib.sha256(label.encode()).digest()


def little(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def is_prime(number: int) -> bool:
    """Trial division, then Miller-Rabin to twelve bases."""
    if any(number % p == 0 for p in SMALL_PRIMES):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


class Key:
    """A key pair from a seed."""

    def __init__(self, name: str, code: int, bits: int, label: str) -> None:
        self.name, self.code, self.bits, self.seed = name, code, bits, seed(label)
        size = bits // 16
        primes: list[int] = []
        block = 0
        while len(primes) < 2:
            stream = expand(self.seed, 64 * size, "paillier/prime/v1", name, block)
            for start in range(0, len(stream), size):
                x = int.from_bytes(stream[start : start + size], "little")
                x |= 3 | (3 << (8 * size - 2))
                fits = not primes or math.gcd(primes[0] - 1, x - 1) == 2
                if len(primes) < 2 and is_prime(x) and fits:
                    primes.append(x)
            block += 1
        self.p, self.q = primes
        self.n = self.p * self.q
        x = int.from_bytes(expand(self.seed, bits // 8 + 16, "paillier/base/v1", name, 0), "little") % self.n
        self.h = -x * x % self.n
        self.public = bytes([1, code]) + little(self.n, bits // 8) + little(self.h, bits // 8)
        self.secret = (
            bytes([1, code])
            + little(self.p, bits // 16)
            + little(self.q, bits // 16)
            + little(self.h, bits // 8)
        )
        self.id = hashlib.blake2b(self.public, digest_size=16, person=b"atoll/paillier").digest()

    def encrypt(self, plaintexts: list[int], fresh: bytes, *domain: bytes) -> list[int]:
        """(1 + m n) h_s^r' mod n^2 with r' stretched from the seed."""
        contents = hashlib.blake2b(digest_size=32, person=b"atoll/paillier")
        for m in plaintexts:
            contents.update(little(m % self.n, self.bits // 8))
        stretched = derive(fresh, "paillier/obfuscator/v1", self.id, contents.digest(), *domain)
        size = self.bits // 16
        stream = expand(stretched, size * len(plaintexts), "paillier/obfuscator/v1")
        square = self.n**2
        h_s = pow(self.h, self.n, square)
        found = []
        for i, m in enumerate(plaintexts):
            r = int.from_bytes(stream[i * size : (i + 1) * size], "little")
            found.append((1 + m * self.n) * pow(h_s, r, square) % square)
        return found

    def message(
        self,
        kind: int,
        description: bytes,
        ciphertexts: list[int],
        version: int = 1,
        length: int | None = None,
    ) -> bytes:
        """A batch with its checksum."""
        claimed = len(description) if length is None else length
        content = bytes([version, kind]) + self.id + little(claimed, 4) + description
        content += b"".join(little(c, self.bits // 4) for c in ciphertexts)
        return content + hashlib.blake2b(content, digest_size=16, person=b"atoll/batch").digest()


def description(value_bits: int, slot_bits: int, slots: int, count: int, load: int) -> bytes:
    head = little(value_bits, 2) + little(slot_bits, 2) + little(slots, 2) + little(count, 8)
    return head + little(load, (load.bit_length() + 7) // 8)


def pack(values: list[int], slot_bits: int, slots: int) -> list[int]:
    rows = [values[i : i + slots] for i in range(0, len(values), slots)]
    return [sum(v << (slot_bits * j) for j, v in enumerate(row)) for row in rows]


def sum_case(key: Key, label: str, value_bits: int, islands: list[list[int]]) -> dict[str, Any]:
    """Every island's batch, their sum, and what it opens to."""
    slot_bits = value_bits + (len(islands) - 1).bit_length()
    slots = (key.bits - 2) // slot_bits
    count = len(islands[0])
    fresh = description(value_bits, slot_bits, slots, count, 1)
    ciphertexts = []
    seeds = [seed(f"{label}/{i}") for i in range(len(islands))]
    for values, own in zip(islands, seeds, strict=True):
        ciphertexts.append(key.encrypt(pack(values, slot_bits, slots), own, b"encrypt", fresh))
    total = [math.prod(column) % key.n**2 for column in zip(*ciphertexts, strict=True)]
    summed = description(value_bits, slot_bits, slots, count, len(islands))
    return {
        "key": key.name,
        "value_bits": value_bits,
        "values": [[str(v) for v in values] for values in islands],
        "seeds": [own.hex() for own in seeds],
        "batches": [key.message(1, fresh, c).hex() for c in ciphertexts],
        "sum": key.message(1, summed, total).hex(),
        "opened": [str(sum(column)) for column in zip(*islands, strict=True)],
    }


def significand_case(key: Key, values: list[float]) -> dict[str, Any]:
    """Clear exponents of base 16, encrypted significands."""
    own = seed("significands")
    exponents = [(math.frexp(x)[1] - 53) // 4 for x in values]
    significands = [int(Fraction(x) / Fraction(16) ** e) for x, e in zip(values, exponents, strict=True)]
    clear = b"".join(e.to_bytes(2, "little", signed=True) for e in exponents)
    ciphertexts = key.encrypt(significands, own, b"significands", clear)
    head = little(57, 2) + little(len(values), 8) + clear
    return {
        "key": key.name,
        "values": [x.hex() for x in values],
        "seed": own.hex(),
        "exponents": exponents,
        "batch": key.message(2, head, ciphertexts).hex(),
    }


def bad_cases(key: Key, other: Key) -> list[dict[str, str]]:
    """Messages that must be refused, and how."""
    plain = description(192, 194, 2, 3, 1)
    good = key.encrypt(pack([1, -2, 3], 194, 2), seed("bad"), b"encrypt", plain)
    message = key.message(1, plain, good)
    altered = bytearray(message)
    altered[-40] ^= 1
    overloaded, padded = description(192, 194, 2, 3, 5), plain + b"\0"
    cases = {
        "another key": ("KeyMismatch", other.message(1, plain, good)),
        "empty": ("MessageError", b""),
        "truncated in the head": ("MessageError", message[:20]),
        "truncated by a byte": ("MessageError", message[:-1]),
        "truncated by a ciphertext": ("MessageError", message[: -16 - key.bits // 4] + message[-16:]),
        "one bit altered": ("MessageError", bytes(altered)),
        "unknown version": ("MessageError", key.message(1, plain, good, version=2)),
        "another kind": ("MessageError", key.message(2, plain, good)),
        "a ciphertext of n^2": ("MessageError", key.message(1, plain, [good[0], key.n**2])),
        "a ciphertext of 0": ("MessageError", key.message(1, plain, [good[0], 0])),
        "a multiple of p": ("MessageError", key.message(1, plain, [good[0], 5 * key.p])),
        "one ciphertext too few": ("MessageError", key.message(1, plain, good[:1])),
        "one ciphertext too many": ("MessageError", key.message(1, plain, good + good[:1])),
        "a load beyond the headroom": ("MessageError", key.message(1, overloaded, good)),
        "a load of none": ("MessageError", key.message(1, description(192, 194, 2, 3, 0), good)),
        "a padded description": ("MessageError", key.message(1, padded, good)),
        "a short description": ("MessageError", key.message(1, plain[:9], good)),
        "a layout beyond the key": ("MessageError", key.message(1, description(192, 194, 3, 6, 1), good)),
        "slots narrower than values": ("MessageError", key.message(1, description(195, 194, 2, 3, 1), good)),
        "a description beyond the end": ("MessageError", key.message(1, plain, good, length=2**32 - 1)),
        "half a ciphertext": ("MessageError", key.message(1, plain, good, length=1)),
    }
    return [{"name": name, "expect": expect, "batch": data.hex()} for name, (expect, data) in cases.items()]


def build() -> dict[str, Any]:
    """All vectors."""
    small = Key("insecure-test-512", 255, 512, "small key")
    other = Key("insecure-test-512", 255, 512, "other key")
    large = Key("paillier-2048", 1, 2048, "large key")
    edge = 2**190
    mixed = [[edge - 1, -edge, 0, 1, -1], [edge, -edge, 5, -1, -1]]
    wide = [[(-1) ** i * (7**i + i * island) for i in range(13)] for island in range(3)]
    return {
        "keys": [
            {
                "parameters": key.name,
                "seed": key.seed.hex(),
                "secret": key.secret.hex(),
                "public": key.public.hex(),
                "id": key.id.hex(),
            }
            for key in (small, large)
        ],
        "sums": [
            sum_case(small, "mixed", 192, mixed),
            sum_case(small, "narrow", 40, wide),
            sum_case(large, "wide", 192, wide),
        ],
        "significands": [significand_case(small, [0.0, 1.0, -1.5, 3.14159, -2.5e-7, 1e300, 5e-324])],
        "bad": bad_cases(small, other),
    }


if __name__ == "__main__":
    (HERE / "paillier.json").write_text(json.dumps(build(), indent=1) + "\n")
