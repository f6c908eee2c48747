"""Whether a key is the sum of the providers' parts, although nobody is sent the parts of all others.

Providers tell each other fingerprints of their parts, which add up as the parts do, taken with a secret that
they drew together and the coordinator does not know. A sum that is wrong anywhere passes with a probability
below 2^-39.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from atoll.crypto import fingerprint
from atoll.crypto.fingerprint import Pair
from atoll.crypto.slots import HEADER_BYTES, Set


def _moduli(chosen: Set) -> tuple[int, ...]:
    return (*chosen.moduli, chosen.special)


def note_bytes(chosen: Set) -> int:
    """Bytes of the fingerprints of one key."""
    return 16 * len(_moduli(chosen))


def fingerprints(chosen: Set, coin: bytes, part: memoryview) -> bytes:
    """Of a part of a key, or of the sum of parts: two modulo each modulus."""
    moduli = _moduli(chosen)
    rows = np.frombuffer(part, "<u8", offset=HEADER_BYTES).reshape(-1, len(moduli), 2 * chosen.slots)
    pairs = [
        fingerprint.evaluate(rows[:, i].tobytes(), 8, fingerprint.points_modulo(q, coin))
        for i, q in enumerate(moduli)
    ]
    return fingerprint.to_bytes(pairs)


def add_up(chosen: Set, coin: bytes, parts: Sequence[bytes], total: bytes) -> bool:
    """Whether these fingerprints of parts are those of this sum."""
    moduli = _moduli(chosen)
    read = [fingerprint.from_bytes(part, len(moduli)) for part in parts]
    due = fingerprint.from_bytes(total, len(moduli))
    points = [fingerprint.points_modulo(q, coin) for q in moduli]
    found: list[Pair] = [fingerprint.plus(at, pairs) for at, *pairs in zip(points, *read, strict=True)]
    return found == due


class KeyAccounts:
    """One provider's fingerprints of keys under way: of its own parts, and of the sums that it was sent."""

    def __init__(self, chosen: Set, coin: bytes) -> None:
        self._set = chosen
        self._coin = coin
        self.given: list[bytes] = []
        self._sums: list[bytes] = []

    def book(self, part: memoryview, total: memoryview) -> None:
        """One more key; slow."""
        self.given.append(fingerprints(self._set, self._coin, part))
        self._sums.append(fingerprints(self._set, self._coin, total))

    def note(self) -> bytes:
        """What the other providers are told."""
        return b"".join(self.given)

    def right(self, notes: Mapping[str, bytes]) -> bool:
        """Whether every key booked so far is the sum of what everybody gave; then starts anew."""
        size = note_bytes(self._set)
        if any(len(note) != size * len(self._sums) for note in notes.values()):
            return False
        pieces = [[note[i * size :][:size] for note in notes.values()] for i in range(len(self._sums))]
        found = all(
            add_up(self._set, self._coin, parts, total)
            for parts, total in zip(pieces, self._sums, strict=True)
        )
        self.given, self._sums = [], []
        return found
