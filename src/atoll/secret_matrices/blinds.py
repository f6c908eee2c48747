"""Blinds: random residues that hide the fingerprints of masked shares until the total of a product is out.

Providers tell each other fingerprints of their masked shares while the coordinator still waits for shares.
All of them know the map, and of few entries it tells the entries. Whoever heard the others before it sends
its own share would know the total first, and could take out of its share what makes the total too wide. So
every provider adds random residues to what it tells, and sends them to the coordinator with its masked share;
their sum is sent with the total. The coordinator cannot use them: what it adds to either sum is weighted by
numbers that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atoll import randomness
from atoll.crypto import products as go
from atoll.crypto.products import Buffer, Ring
from atoll.errors import MessageError

_RESIDUE, _DRAWN = 7, 16


def blind_bytes(ring: Ring) -> int:
    """Bytes of one blind."""
    return len(_moduli(ring)) * _RESIDUE


def drawn(ring: Ring, seed: bytes, domain: bytes) -> bytes:
    """A blind, one residue for each fingerprint; bound to what the masks are bound to."""
    moduli = _moduli(ring)
    words = randomness.expand(seed, _DRAWN * len(moduli), "atoll/blind/v1", ring.name, domain)
    parts = (words[_DRAWN * i : _DRAWN * (i + 1)] for i in range(len(moduli)))
    return _packed(int.from_bytes(part, "little") % q for part, q in zip(parts, moduli, strict=True))


def residues(ring: Ring, blind: Buffer) -> list[int]:
    """A blind as it was sent, number by number."""
    if len(blind) != blind_bytes(ring):
        raise MessageError(f"a blind has {len(blind)} bytes, not {blind_bytes(ring)}")
    data, moduli = bytes(blind), _moduli(ring)
    found = [int.from_bytes(data[i : i + _RESIDUE], "little") for i in range(0, len(data), _RESIDUE)]
    if any(value >= q for value, q in zip(found, moduli, strict=True)):
        raise MessageError("a blind has a residue beyond its modulus")
    return found


def added(ring: Ring, blinds: Sequence[Buffer]) -> bytes:
    """The sum of everybody's."""
    columns = zip(*(residues(ring, blind) for blind in blinds), strict=True)
    return _packed(sum(column) % q for column, q in zip(columns, _moduli(ring), strict=True))


def _moduli(ring: Ring) -> list[int]:
    return [q for q in ring.moduli for _ in range(go.limits().points)]


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(value.to_bytes(_RESIDUE, "little") for value in values)
