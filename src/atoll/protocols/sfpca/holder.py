"""What a provider or the coordinator does with its shares alone: linear steps, none of which travels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll.crypto.hazmat import product as go
from atoll.crypto.hazmat.product import Integers, Ring
from atoll.errors import ParameterError
from atoll.network import Address, Network, Record, bind
from atoll.protocols.sfpca.messages import (
    EncryptedShare,
    MaskedShare,
    OpenedShare,
    ProductPart,
    ReleasedShare,
)
from atoll.protocols.sfpca.shared import (
    COEFFICIENT_BITS,
    Coefficient,
    Floats,
    Group,
    Machine,
    Shared,
    coefficient_units,
    scaled_units,
)
from atoll.protocols.sfpca.simulated import at_grid, public_integers
from atoll.randomness import fresh_seed

OwnMessage = EncryptedShare | ProductPart | MaskedShare | OpenedShare | ReleasedShare
"""What is made from a role's secrets."""


class ShareHolder(Machine):
    """A role with its share of every secret matrix: the steps that need nobody else."""

    def __init__(
        self,
        net: Network,
        record: Record,
        digest: str,
        coordinator: Address,
        providers: Sequence[Address],
        guests: Sequence[Address] = (),
    ) -> None:
        self.net = net
        self.record = record
        self.digest = digest
        self.coordinator = coordinator
        self.providers = tuple(providers)
        self.guests = tuple(guests)
        """Roles that hold no share and only receive outputs."""
        self.parties = len(self.providers)
        self.me = str(net.me)
        self.everybody = frozenset(str(a) for a in (coordinator, *providers))
        self.all_providers: Group = frozenset(str(a) for a in providers)
        self.keys: dict[tuple[Ring, Group], go.PublicKey] = {}
        self.session = b""
        self._step = 0

    async def bind(self, message: OwnMessage) -> None:
        """Before it leaves: should this role run again, it sends the same bytes or nothing."""
        data = message.words if isinstance(message, OpenedShare | ReleasedShare) else message.body
        digest = await self.net.compute(_sha256, data)
        bind(self.record, f"{type(message).__name__} {message.step}", digest)

    def private(
        self,
        owner: str | None,
        values: Any,
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        words = (fraction + bits) // 64 + 1
        share = go.from_ints(np.zeros(shape, np.int64) if values is None else values, words)
        holders = frozenset({owner}) if owner else self.everybody - {str(self.coordinator)}
        return Shared(shape, fraction, bits, share, holders, norm_bits, known=True)

    def combine(
        self,
        terms: Sequence[tuple[Coefficient, Shared]],
        *,
        identity: Coefficient = 0.0,
        bits: int,
        fraction: int | None = None,
    ) -> Shared:
        scale = terms[0][1].fraction
        if any(x.fraction != scale for _, x in terms):
            raise ParameterError("only matrices of one scale can be combined")
        out = scale if fraction is None else fraction
        drop = COEFFICIENT_BITS + scale - out
        factors = [coefficient_units(c) for c, _ in terms]
        words = min(go.MAX_WORDS, max(x.share.shape[2] for _, x in terms) + 1)
        share = go.combine([x.share for _, x in terms], factors, max(0, drop), words)
        if drop < 0:
            raise ParameterError("a combination cannot invent digits")
        if identity and self.me == str(self.coordinator):
            share = _plus_identity(share, scaled_units(identity, out))
        holders = frozenset().union(*(x.holders for _, x in terms))
        holders |= frozenset({str(self.coordinator)}) if identity else frozenset()
        known = all(x.known for _, x in terms)
        return Shared(terms[0][1].shape, out, bits, share, holders, known=known)

    def turned(self, x: Shared) -> Shared:
        share = np.ascontiguousarray(x.share.transpose(1, 0, 2))
        return Shared(x.shape[::-1], x.fraction, x.bits, share, x.holders, x.norm_bits, x.known)

    def beside(self, matrices: Sequence[Shared]) -> Shared:
        widest = max(x.share.shape[2] for x in matrices)
        share = np.concatenate([go.widened(x.share, widest) for x in matrices], axis=1)
        holders = frozenset().union(*(x.holders for x in matrices))
        if len({x.fraction for x in matrices}) > 1:
            raise ParameterError("only matrices of one scale can stand side by side")
        known = all(x.known for x in matrices)
        bits = max(x.bits for x in matrices)
        return Shared(share.shape[:2], matrices[0].fraction, bits, share, holders, known=known)

    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        share = np.ascontiguousarray(x.share[rows, cols])
        return Shared(share.shape[:2], x.fraction, x.bits, share, x.holders, x.norm_bits, x.known)

    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        total = public_integers(weights) @ go.to_ints(x.share)
        drop = COEFFICIENT_BITS + x.fraction - fraction
        values = (total + (1 << (drop - 1))) >> drop
        share = go.from_ints(values, x.share.shape[2])
        return Shared(share.shape[:2], fraction, bits, share, x.holders, known=x.known)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:
        drop = COEFFICIENT_BITS + x.fraction - fraction
        values = (public_integers(weights) * go.to_ints(x.share) + (1 << (drop - 1))) >> drop
        share = go.from_ints(values, min(go.MAX_WORDS, x.share.shape[2] + 1))
        return Shared(x.shape, fraction, bits, share, x.holders, known=x.known)

    def plus_public(self, x: Shared, values: Floats) -> Shared:
        share, holders = x.share, x.holders | {str(self.coordinator)}
        if self.me == str(self.coordinator):
            share = go.from_ints(go.to_ints(share) + at_grid(values, x.fraction), share.shape[2])
        return Shared(x.shape, x.fraction, x.bits + 1, share, holders, known=x.known)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        share = np.ascontiguousarray(x.share).reshape(*shape, -1)
        return Shared(shape, x.fraction, x.bits, share, x.holders, None, x.known)

    def next_step(self) -> int:
        """The number of a message, the same for all roles."""
        self._step += 1
        return self._step

    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:
        step, share = self.next_step(), x.share
        if self.me in self.all_providers:
            domain = hashlib.sha256(self.session + f"digits {step}".encode()).digest()
            share = go.smudge(share, smudge_bits, self.record(f"digits {step}", fresh_seed), domain)
        return Shared(x.shape, x.fraction, x.bits, share, self.everybody, known=x.known)

    def trace(self, x: Shared, *, bits: int) -> Shared:
        values = np.array([[np.trace(go.to_ints(x.share))]], dtype=object)
        share = go.from_ints(values, x.share.shape[2] + 1)
        return Shared((1, 1), x.fraction, bits, share, x.holders, known=x.known)

    def diagonal(self, x: Shared) -> Shared:
        at = np.arange(x.shape[0])
        share = np.ascontiguousarray(x.share[at, at][:, None])
        return Shared((len(at), 1), x.fraction, x.bits, share, x.holders, known=x.known)

    def spread(self, x: Shared) -> Shared:
        at = np.arange(x.shape[0])
        share = np.zeros((len(at), *x.share.shape[::2]), np.uint64)
        share[at, at] = x.share[:, 0]
        return Shared((len(at), len(at)), x.fraction, x.bits, share, x.holders, known=x.known)


def _plus_identity(share: Integers, value: int) -> Integers:
    values = go.to_ints(share)
    for i in range(len(values)):
        values[i, i] += value
    return go.from_ints(values, share.shape[2])


def _sha256(data: Any) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(data).data if isinstance(data, np.ndarray) else data).digest()
