"""What providers compare before anything is opened: that all were told the same, and that sums are sums.

The coordinator adds up what providers send and sends the sums back. Providers do not see each other's
parts, so each keeps account: linear fingerprints of what it contributed and of the sums that it was sent, and
a digest of these and of all other bytes that were broadcast to it. The accounts are exchanged past the
coordinator (``Network.agree``) before a decryption share leaves, and before anything is released: a share of
a ciphertext of the coordinator's choice would tell it the key; of a value that is larger than its mask, the
value. In a round of products they leave before the sum of the products arrives: each provider then compares
that sum with what all others gave, and whether all were sent the same one shows in the next account. The
fingerprints are taken with a secret that the providers drew together and the coordinator does not know, so
that they can be taken as messages come and go, and nothing has to be kept.

A wrong sum passes with probability below 2^-80: each modulus has two independent fingerprints, and
(coefficients and powers; see go/product/fingerprint.go) one is met by chance with 2^-40 at most. Opened
matrices are whole numbers: their fingerprints are taken modulo two primes that are part of the secret. All
messages since the last comparison are added up with random factors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hmac import compare_digest
from typing import NamedTuple

from atoll.crypto import fingerprint
from atoll.crypto import products as go
from atoll.crypto.fingerprint import Pair
from atoll.crypto.products import Buffer, Integers, Ring
from atoll.errors import MessageError
from atoll.secret_matrices.machine import Group
from atoll.secret_matrices.widths import widest_ring

_DIGEST, _RESIDUE, _OPENED = 32, 7, 8


@cache
def _moduli() -> tuple[int, ...]:
    """The moduli of the widest ring; every ring uses the first of them."""
    return widest_ring().moduli


def note_bytes() -> int:
    """Bytes of one group's account."""
    return _DIGEST + _residues() * _RESIDUE + 2 * _OPENED


def _residues() -> int:
    """Fingerprints of a message, modulo all moduli."""
    return go.limits().points * len(_moduli())


_Note = tuple[bytes, list[int], Pair]
"""As it was read: digest, fingerprints of what was given, and of what was opened."""


class Circle(NamedTuple):
    """The members of a group that gives parts of a sum, and those of them who are sent the sum."""

    group: Group
    readers: Group


@dataclass
class Account:
    """One provider's account for one group: fingerprints of what it gave and was sent, and a digest."""

    seen: bytes = b""
    told: bytes = b""
    """The digest as others were told it: what arrives after that is in the next account."""
    given: list[int] = field(default_factory=lambda: [0] * _residues())
    sums: list[int] = field(default_factory=lambda: [0] * _residues())
    opened_given: Pair = (0, 0)
    opened_sum: Pair = (0, 0)

    def note(self) -> bytes:
        """What the others of the group are told."""
        residues = b"".join(value.to_bytes(_RESIDUE, "little") for value in self.given)
        self.told = self.seen
        return self.told + residues + fingerprint.to_bytes([self.opened_given])


class Checks:
    """One provider's accounts since the last comparison."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._map = go.Fingerprint(self._derived("map", 0))
        # Of opened matrices, which are whole numbers: multiples of a prime that is known would pass.
        self._points = fingerprint.points(self._derived("points", 0))
        self._seen: dict[Circle, bytes] = {}
        self.accounts: dict[Circle, Account] = {}

    def _derived(self, what: str, step: int) -> bytes:
        return hashlib.sha256(b"atoll/sfpca/checks" + self._secret + f"{what} {step}".encode()).digest()

    def account(self, group: Group, readers: Group | None = None) -> Account:
        """The account of a group; all providers open it at the same moment, members or not."""
        circle = Circle(group, group if readers is None else readers)
        return self.accounts.setdefault(circle, Account(self._seen.get(circle, bytes(_DIGEST))))

    def fingerprint(self, ring: Ring, body: Buffer, count: int) -> list[int]:
        """The fingerprints of a message with ``count`` residues per limb and block; slow."""
        return self._map.of(ring, body, count)

    def give(
        self,
        group: Group,
        what: str,
        step: int,
        residues: Sequence[int],
        sign: int = 1,
        readers: Group | None = None,
    ) -> None:
        """Book a contribution to the sum of this name and step."""
        self._add(self.account(group, readers).given, what, step, residues, sign)

    def take(
        self,
        group: Group,
        what: str,
        step: int,
        residues: Sequence[int],
        digest: bytes,
        readers: Group | None = None,
    ) -> None:
        """Book a sum that arrived."""
        self._add(self.account(group, readers).sums, what, step, residues, 1)
        self.see(group, what, step, digest, readers)

    def take_total(
        self, group: Group, step: int, residues: Sequence[int], blind: Sequence[int], digest: bytes
    ) -> None:
        """Book a masked total, and the sum of the blinds that came with it."""
        self._add(self.account(group).sums, "blind", step, blind, 1)
        self.take(group, "total", step, residues, digest)

    def see(self, group: Group, what: str, step: int, digest: bytes, readers: Group | None = None) -> None:
        """Book something else that was broadcast."""
        account = self.account(group, readers)
        account.seen = hashlib.sha256(account.seen + f"{what} {step} ".encode() + digest).digest()
        self._seen[Circle(group, group if readers is None else readers)] = account.seen

    def _add(self, total: list[int], what: str, step: int, residues: Sequence[int], sign: int) -> None:
        weights, points = self._derived(what, step), go.limits().points
        moduli = _moduli()
        for i, value in enumerate(residues):
            point, q = i % points, moduli[i // points]
            weight = int.from_bytes(weights[8 * point : 8 * point + 8], "little")
            total[i] = (total[i] + sign * weight * value) % q

    def open(self, group: Group, step: int, own: Integers, opened: Integers) -> None:
        """Book an opened matrix, the sum of everybody's shares as whole numbers."""
        account = self.account(group)
        account.opened_given = self._plus(account.opened_given, step, own)
        account.opened_sum = self._plus(account.opened_sum, step, opened)
        self.see(group, "opened", step, hashlib.sha256(opened.tobytes()).digest())

    def _plus(self, before: Pair, step: int, words: Integers) -> Pair:
        weight, values = self._derived("opened", step), [int(value) for value in go.to_ints(words).flat]
        found = []
        for i, (modulus, z) in enumerate(self._points):
            total = 0
            for value in values:
                total = (total * z + value) % modulus
            found.append(total * int.from_bytes(weight[8 * i : 8 * i + 8], "little") % modulus)
        return fingerprint.plus(self._points, [before, (found[0], found[1])])

    # ---- comparing ----

    def notes(self, me: str) -> bytes:
        """This provider's accounts, group by group."""
        return b"".join(account.note() for circle, account in self.accounts.items() if me in circle.group)

    def compare(self, me: str, notes: Mapping[str, bytes], coordinator: str) -> None:
        """Refuse to go on unless all of a group saw the same, and sums are those of what was given."""
        split = {name: self._split(name, note) for name, note in notes.items()}
        for circle, own in self.accounts.items():
            if me not in circle.readers:
                continue
            theirs = {name: split[name][circle] for name in sorted(circle.group)}
            different = [
                name for name in sorted(circle.readers) if not compare_digest(theirs[name][0], own.told)
            ]
            if different:
                raise MessageError(
                    f"{coordinator} told {me} something else than it told {', '.join(different)}",
                    hint="nothing was opened; ask the coordinator why",
                )
            totals = [sum(values) for values in zip(*(given for _, given, _ in theirs.values()), strict=True)]
            points = go.limits().points
            right = all(
                (total - value) % _moduli()[i // points] == 0
                for i, (total, value) in enumerate(zip(totals, own.sums, strict=True))
            )
            opened = fingerprint.plus(self._points, [pair for _, _, pair in theirs.values()])
            if not right or opened != own.opened_sum:
                raise MessageError(
                    f"{coordinator} sent {me} a sum that is not that of the providers' parts",
                    hint="nothing more was opened; the coordinator, or a provider's account, is wrong",
                )
        self.accounts = {}

    def _split(self, name: str, note: bytes) -> dict[Circle, _Note]:
        due = [circle for circle in self.accounts if name in circle.group]
        size = note_bytes()
        if len(note) != size * len(due):
            raise MessageError(f"{name} sent an account of {len(note)} bytes, {size * len(due)} were due")
        return {circle: _read(note[i * size : (i + 1) * size]) for i, circle in enumerate(due)}


def _read(note: bytes) -> _Note:
    residues = note[_DIGEST : -2 * _OPENED]
    given = [int.from_bytes(residues[i : i + _RESIDUE], "little") for i in range(0, len(residues), _RESIDUE)]
    return note[:_DIGEST], given, fingerprint.from_bytes(note[-2 * _OPENED :], 1)[0]
