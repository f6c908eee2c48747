"""The heavy steps that a role does alone, several rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.crypto.slots import HEADER_BYTES, RESIDUE_BYTES, Ciphertext, Keys, Secret, Set, Shares
from atoll.errors import MessageError
from atoll.randomness import derive
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.slots.integers import to_words
from atoll.secret_matrices.slots.machine import Integers, Values
from atoll.study.address import Address
from atoll.threads import in_threads

FLOODING_BITS = 14
"""Noise that a part of an opening brings, over which a ciphertext's own is hardly to be seen."""
FLOODED_NUMBERS = 1 << 15
"""So many numbers may be opened with that; with each doubling of what was opened so far, a bit more."""


def flooding_bits(numbers: int) -> int:
    """For an opening after which so many numbers are open, under one key.

    Each is an equation for the key. What a single rescaling leaves, of deviation 30 beside the flooding's
    4,730, tells 2^-15 bits in each, of a key's 26,000; what was computed before may have left more.
    """
    return FLOODING_BITS + max(0, -(-numbers // FLOODED_NUMBERS) - 1).bit_length()


def written(xs: Sequence[Ciphertext]) -> list[memoryview]:
    """Ciphertexts as they travel."""
    return [memoryview(x.to_bytes()) for x in xs]


def encrypted(keys: Keys, rows: Sequence[Values], seed: bytes) -> list[memoryview]:
    """Clear rows under the collective key."""
    return written(keys.encrypt_all(rows, seed))


def rerandomised(keys: Keys, xs: Sequence[Ciphertext], seed: bytes) -> list[memoryview]:
    """Ciphertexts plus fresh encryptions of zero."""
    return written(keys.rerandomised_all(xs, seed))


def refresh_parts(
    secret: Secret, xs: Sequence[Ciphertext], seed: bytes, commons: Sequence[bytes]
) -> list[memoryview]:
    """Decryption shares under masks, and the masks encrypted."""
    return secret.refresh_parts(xs, commons, seed)


def switching_parts(
    secret: Secret,
    receivers: tuple[bytes, memoryview],
    bits: int,
    xs: Sequence[Ciphertext],
    seed: bytes,
    lengths: Sequence[int],
) -> list[memoryview]:
    """Decryption shares of so many first numbers of rows under the receivers' key."""
    return secret.switching_parts(xs, lengths, *receivers, seed, bits)


def opening_parts(
    secret: Secret, bits: int, xs: Sequence[Ciphertext], seed: bytes, lengths: Sequence[int]
) -> list[memoryview]:
    """Decryption shares of so many first numbers of rows."""
    return secret.opening_parts(xs, lengths, seed, bits)


def read(chosen: Set, body: memoryview, level: int, sender: Address) -> Ciphertext:
    """A ciphertext of the level that is due."""
    x = Ciphertext.from_bytes(chosen, body)
    if x.level != level:
        raise MessageError(f"{sender} sent a ciphertext at level {x.level}, level {level} was due")
    return x


def seen(chosen: Set, body: memoryview, level: int, sender: Address) -> tuple[Ciphertext, bytes]:
    """The same, with the digest that providers compare."""
    return read(chosen, body, level, sender), digest_of(body)


def read_half(chosen: Set, half: memoryview, level: int, sender: Address) -> Ciphertext:
    """What parts are made for, of the level that is due."""
    x = Ciphertext.from_half(chosen, half)
    if x.level != level:
        raise MessageError(f"{sender} asks for parts at level {x.level}, level {level} was due")
    return x


def asked(xs: Sequence[Ciphertext]) -> list[tuple[bytes, bytes]]:
    """Of everything that parts are asked for: what tells it apart, and the digest that providers compare."""
    return [(x.mark(), digest_of(x.half())) for x in xs]


def first_half(x: Ciphertext, level: int) -> memoryview:
    """Its rows of residues up to a level, without a header."""
    size = 2 * x.set.slots * RESIDUE_BYTES
    return memoryview(x.to_bytes())[HEADER_BYTES : HEADER_BYTES + size * (min(x.level, level) + 1)]


def share_parts(
    secret: Secret, xs: Sequence[Ciphertext], seed: bytes
) -> tuple[list[memoryview], list[Shares]]:
    """Decryption shares under masks, and the masks' negatives."""
    seeds = [derive(seed, "row", i) for i in range(len(xs))]
    made = in_threads(lambda task: secret.share_part(*task), list(zip(xs, seeds, strict=True)))
    return [part for part, _ in made], [shares for _, shares in made]


def input_parts(
    secret: Secret, rows: Sequence[Integers], seed: bytes, commons: Sequence[bytes]
) -> list[memoryview]:
    """Parts of encryptions of what all parties' whole numbers add up to."""
    seeds = [derive(seed, "row", i) for i in range(len(rows))]

    def part(task: tuple[Integers, bytes, bytes]) -> memoryview:
        values, common, own = task
        return secret.input_part(to_words(values, secret.set.slots), common, own)

    return in_threads(part, list(zip(rows, commons, seeds, strict=True)))
