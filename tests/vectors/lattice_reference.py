"""An independent reading of the lattice messages, in plain Python integers: no ring library, no residues.

It expands secrets with the `cryptography` package, multiplies polynomials as big integers, and opens
ciphertexts directly modulo the wire's power of two. Slow, and only for small rings.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from atoll.crypto.hazmat.parameters import LATTICE_TABLE, LatticeParameters

HEADER = struct.Struct("<BBBBIQ16sI")
VALUE_BITS = 192
DIGEST_BYTES = 32


@dataclass(frozen=True)
class Message:
    kind: int
    row: LatticeParameters
    width: int
    count: int
    values: int
    key: bytes
    body: bytes


def parse(message: bytes, rows: Sequence[LatticeParameters] = LATTICE_TABLE) -> Message:
    version, kind, set_id, width, count, values, key, _ = HEADER.unpack_from(message)
    assert version == 1
    row = next(row for row in rows if row.id == set_id)
    return Message(kind, row, width, count, values, key, message[HEADER.size :])


def derive(seed: bytes, domain: str, *parts: bytes) -> bytes:
    mac = hmac.new(seed, digestmod=hashlib.sha256)
    for part in (domain.encode(), *parts):
        mac.update(struct.pack("<Q", len(part)) + part)
    return mac.digest()


def expand(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def secret(seed: bytes, j: int, degree: int) -> list[int]:
    stream = expand(derive(seed, "atoll/lattice/secret/1", struct.pack("<Q", j)), 8 * degree)
    return [3 * word // 2**64 - 1 for (word,) in struct.iter_unpack("<Q", stream)]


def negacyclic(values: list[int], small: list[int], bits: int) -> list[int]:
    """The product modulo X^N + 1 and 2^bits, by Kronecker substitution."""
    n, slot = len(values), bits + 32
    step = slot // 8

    def pack(coefficients: list[int]) -> int:
        return int.from_bytes(b"".join(c.to_bytes(step, "little") for c in coefficients), "little")

    def unpack(product: int) -> list[int]:
        data = product.to_bytes(2 * n * step, "little")
        return [int.from_bytes(data[i * step : (i + 1) * step], "little") for i in range(2 * n)]

    wide = pack(values)
    plus = unpack(wide * pack([max(c, 0) for c in small]))
    minus = unpack(wide * pack([max(-c, 0) for c in small]))
    return [(plus[i] - minus[i] - plus[i + n] + minus[i + n]) % 2**bits for i in range(n)]


def integers(body: bytes, size: int) -> list[int]:
    return [int.from_bytes(body[i : i + size], "little") for i in range(0, len(body), size)]


def products(ciphertext: Message, seed: bytes) -> list[int]:
    """c1 s_j for every slot, modulo 2^w."""
    row, n = ciphertext.row, ciphertext.row.degree
    bits, slots = 8 * row.cipher_bytes, ciphertext.values * row.coefficients
    polynomials = -(-slots // n)
    groups = -(-polynomials // ciphertext.width)
    c1 = integers(ciphertext.body[: groups * n * row.cipher_bytes], row.cipher_bytes)
    out: list[int] = []
    for p in range(polynomials):
        group, slot = divmod(p, ciphertext.width)
        out += negacyclic(c1[group * n : (group + 1) * n], secret(seed, slot, n), bits)
    return out[:slots]


def second_half(ciphertext: Message) -> list[int]:
    """c0, as integers."""
    size = ciphertext.row.cipher_bytes
    return integers(ciphertext.body[-ciphertext.values * ciphertext.row.coefficients * size :], size)


def rounded(phase: int, bits: int, modulus: int) -> tuple[int, float]:
    """The nearest step of so many around the circle, and the signed distance from it in steps."""
    steps = phase * modulus
    value = (steps + (1 << (bits - 1))) >> bits
    return value % modulus, (steps - (value << bits)) / 2**bits


def pieces(ciphertext: Message, phases: list[int]) -> tuple[list[int], list[float]]:
    """What each coefficient opens to, before any of them are put together, and its noise."""
    row, bits = ciphertext.row, 8 * ciphertext.row.cipher_bytes
    moduli = [row.moduli[slot // ciphertext.values] for slot in range(len(phases))]
    opened = [rounded(p % 2**bits, bits, modulus) for p, modulus in zip(phases, moduli, strict=True)]
    return [whole for whole, _ in opened], [distance for _, distance in opened]


def phases(message: Message, secret_key: Message) -> list[int]:
    """c0 + c1 s: what the holder of the whole key sees."""
    c1_s = products(message, secret_key.body[:32])
    return [c0 + c1 for c0, c1 in zip(second_half(message), c1_s, strict=True)]


def opened_phases(message: Message, shares: list[Message]) -> list[int]:
    """c0 and everybody's shares: what the receiver of a collective sum sees."""
    total = second_half(message)
    for share in shares:
        drop = 8 * (share.row.cipher_bytes - share.row.share_bytes)
        parts = integers(share.body[DIGEST_BYTES:], share.row.share_bytes)
        total = [t + (part << drop) for t, part in zip(total, parts, strict=True)]
    return total


def together(row: LatticeParameters, wholes: list[int]) -> list[int]:
    """Values from their coefficients, modulo 2^192."""
    n, product = len(wholes) // row.coefficients, math.prod(row.moduli)
    values = []
    for v in range(n):
        value = 0
        for k, modulus in enumerate(row.moduli):
            others = product // modulus
            value += wholes[k * n + v] * others * pow(others, -1, modulus)
        value %= product
        values.append((value - product if value > product // 2 else value) % 2**VALUE_BITS)
    return values


def decrypt(ciphertext: bytes, secret_key: bytes) -> tuple[list[int], list[float]]:
    """All values, and the noise of every coefficient."""
    message = parse(ciphertext)
    wholes, noise = pieces(message, phases(message, parse(secret_key)))
    return together(message.row, wholes), noise


def smudging(share: bytes, ciphertext: bytes, secret_share: bytes) -> list[float]:
    """What a decryption share adds to c1 s, in units of the last carried place."""
    message, ours = parse(ciphertext), parse(share)
    seed, share_bits = parse(secret_share).body[:32], 8 * ours.row.share_bytes
    drop = 8 * message.row.cipher_bytes - share_bits
    sent = integers(ours.body[DIGEST_BYTES:], ours.row.share_bytes)
    half = 1 << (share_bits - 1)
    differences = (
        (s - (exact >> drop) + half) % 2**share_bits - half
        for s, exact in zip(sent, products(message, seed), strict=True)
    )
    return [difference / 2 ** (share_bits - ours.row.carried_bits) for difference in differences]


def to_integers(limbs: object) -> list[int]:
    """Planar limbs as integers modulo 2^192."""
    low, middle, high = (row.tolist() for row in limbs)  # type: ignore[attr-defined]
    return [a + (b << 64) + (c << 128) for a, b, c in zip(low, middle, high, strict=True)]
