"""The heavy steps that a role does alone, several rows at a time on all cores."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.crypto.slots import Ciphertext, Keys, Secret, Set
from atoll.errors import MessageError
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.slots.machine import Values
from atoll.study.address import Address
from atoll.threads import in_threads

FLOODING_BITS = 14
"""Noise that a part of an opening brings, over which rounding noise is not to be seen."""


def encrypted(keys: Keys, tasks: Sequence[tuple[Values, bytes]]) -> list[memoryview]:
    """Clear rows under the collective key."""
    return in_threads(lambda task: keys.encrypt(*task).to_bytes(), tasks)


def rerandomised(keys: Keys, tasks: Sequence[tuple[Ciphertext, bytes]]) -> list[memoryview]:
    """Ciphertexts plus fresh encryptions of zero."""
    return in_threads(lambda task: keys.rerandomised(*task).to_bytes(), tasks)


def refresh_parts(secret: Secret, tasks: Sequence[tuple[Ciphertext, bytes, bytes]]) -> list[memoryview]:
    """Decryption shares under masks, and the masks encrypted."""
    return in_threads(lambda task: secret.refresh_part(*task), tasks)


def switching_parts(
    secret: Secret, tasks: Sequence[tuple[Ciphertext, bytes, memoryview, bytes]]
) -> list[memoryview]:
    """Decryption shares under a receiver's key."""
    return in_threads(lambda task: secret.switching_part(*task, FLOODING_BITS), tasks)


def opening_parts(secret: Secret, tasks: Sequence[tuple[Ciphertext, bytes]]) -> list[memoryview]:
    """Decryption shares."""
    return in_threads(lambda task: secret.opening_part(*task, FLOODING_BITS), tasks)


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
