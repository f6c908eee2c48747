"""Whether a key, or a row, is the sum of the providers' parts, although nobody is sent the parts of others.

Providers tell each other fingerprints of their parts, which add up as the parts do, taken with a secret that
they drew together and the coordinator does not know. A key that is wrong anywhere passes with a probability
below 2^-39. Rows since the last comparison are added up with random factors: below 2^-47.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from atoll.crypto import fingerprint
from atoll.crypto.fingerprint import Pair
from atoll.crypto.slots import HEADER_BYTES, RESIDUE_BYTES, Set
from atoll.errors import MessageError
from atoll.randomness import expand_words
from atoll.secret_matrices.slots.messages import InputPart, PlacedBody, RefreshPart, SharePart


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


class RowAccounts:
    """One provider's fingerprints of rows since the last comparison: of what it gave, and of the sums."""

    def __init__(self, chosen: Set, coin: bytes) -> None:
        self._moduli = chosen.moduli
        self._refresh_level = chosen.refresh_level
        self._coin = coin
        self._count = 2 * chosen.slots
        self._points = [fingerprint.points_modulo(q, coin) for q in chosen.moduli]
        self._forget()

    def _forget(self) -> None:
        self._given: list[Pair] = [(0, 0)] * len(self._moduli)
        self._sums: list[Pair] = [(0, 0)] * len(self._moduli)

    def give(self, kind: type[PlacedBody], step: int, place: int, body: memoryview) -> None:
        """Book an own part; slow."""
        self._add(self._given, kind, step, place, body)

    def take(self, kind: type[PlacedBody], step: int, place: int, body: memoryview) -> None:
        """Book what is said to be the sum of all parts of this kind; slow."""
        self._add(self._sums, kind, step, place, body)

    def take_with(
        self, kind: type[PlacedBody], step: int, place: int, body: memoryview, first: memoryview
    ) -> None:
        """The same of a sum to whose first half these rows were added, without a header; slow."""
        residues = np.frombuffer(body, "<u8", offset=HEADER_BYTES).reshape(-1, self._count).copy()
        added = np.frombuffer(first, "<u8").reshape(-1, self._count)
        for i, row in enumerate(added):
            q = np.uint64(self._moduli[i])
            residues[i] = (residues[i] + (q - row % q)) % q
        self._add(
            self._sums, kind, step, place, memoryview(body[:HEADER_BYTES].tobytes() + residues.tobytes())
        )

    def _places(self, kind: type[PlacedBody], rows: int) -> tuple[int, ...]:
        """Which modulus each row of residues has."""
        if kind is RefreshPart:
            low = self._refresh_level + 1
            return (*range(low), *range(rows - low))
        if kind in (SharePart, InputPart):
            return tuple(range(rows))
        return 2 * tuple(range(rows // 2))  # of both halves of a ciphertext

    def _add(
        self, total: list[Pair], kind: type[PlacedBody], step: int, place: int, body: memoryview
    ) -> None:
        size = self._count * RESIDUE_BYTES
        moduli = self._places(kind, (len(body) - HEADER_BYTES) // size)
        if len(body) != HEADER_BYTES + size * len(moduli) or len(set(moduli)) > len(self._moduli):
            raise MessageError(f"a part, or a sum of parts, has {len(body)} bytes")
        at = [self._points[i] for i in moduli]
        found = fingerprint.evaluate_rows(body[HEADER_BYTES:], RESIDUE_BYTES, self._count, at)
        for row, (i, (x, y)) in enumerate(zip(moduli, found, strict=True)):
            weight = expand_words(self._coin, 2, "atoll/slots/rows/1", step, place, row)
            q, (a, b) = self._moduli[i], total[i]
            total[i] = ((a + int(weight[0]) * x) % q, (b + int(weight[1]) * y) % q)

    def note(self) -> bytes:
        """What the other providers are told."""
        return fingerprint.to_bytes(self._given)

    def right(self, notes: Sequence[bytes]) -> bool:
        """Whether all sums are those of what everybody gave; then starts anew."""
        told = [fingerprint.from_bytes(note, len(self._moduli)) for note in notes]
        found = [fingerprint.plus(at, pairs) for at, *pairs in zip(self._points, *told, strict=True)]
        right = found == self._sums
        self._forget()
        return right


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
