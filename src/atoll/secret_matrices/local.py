"""Linear steps, which a provider or the coordinator does with its own shares; nothing is sent."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Integers
from atoll.errors import ParameterError
from atoll.network import Network, Record
from atoll.randomness import fresh_seed
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.coefficients import (
    COEFFICIENT_BITS,
    Coefficient,
    Floats,
    at_grid,
    coefficient_units,
    public_integers,
    scaled_units,
)
from atoll.secret_matrices.machine import Group, Machine, Shared
from atoll.secret_matrices.messages import (
    EncryptedShare,
    MaskedShare,
    OpenedShare,
    ProductPart,
    ReleasedShare,
    SecondPart,
)
from atoll.study.address import Address

OwnMessage = EncryptedShare | ProductPart | SecondPart | MaskedShare | OpenedShare | ReleasedShare
"""What is made from a role's secrets."""


class LocalMachine(Machine):
    """The machine of one role, as far as it needs nobody else: steps on the role's own shares."""

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
        self.n_providers = len(self.providers)
        self.me = str(net.me)
        self.everybody = frozenset(str(a) for a in (coordinator, *providers))
        self.all_providers: Group = frozenset(str(a) for a in providers)
        self.session = b""
        self.has_opened = False
        """Whether a number may have been opened, by what this role did or saw."""
        self._step = 0

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

    # ---- linear steps ----

    def _made(
        self,
        matrices: Sequence[Shared],
        step: Callable[..., Integers],
        constant: Callable[[Integers], Integers] | None = None,
        **public: Any,
    ) -> Shared:
        """A linear step on this role's shares; ``constant`` is added to the coordinator's."""
        share = step(*(x.share for x in matrices))
        holders = frozenset().union(*(x.holders for x in matrices))
        carrier = self._carrier_of(matrices, constant is not None)
        if constant is not None:
            holders |= {str(self.coordinator), str(carrier)}
            share = constant(share) if self.me == str(self.coordinator) else share
        shown = self._shown_to(matrices) if carrier is not None else frozenset[str]()
        carried = None
        if self.me in shown:
            carried = Carried(partial(_carry, matrices, step, constant))
        public.setdefault("shape", share.shape[:2])
        public.setdefault("known", all(x.known for x in matrices))
        return Shared(share=share, holders=holders, carrier=carrier, shown=shown, carried=carried, **public)

    def _shown_to(self, matrices: Sequence[Shared]) -> Group:
        """Who knows the coordinator's part of every matrix; constants are known to all."""
        return self.all_providers.intersection(*(x.shown for x in matrices if x.carrier is not None))

    def _carrier_of(self, matrices: Sequence[Shared], needed: bool) -> str | None:
        carriers = {x.carrier for x in matrices if x.carrier is not None}
        if len(carriers) > 1:
            raise ParameterError("matrices of different groups of providers cannot be combined")
        return next(iter(carriers), str(self.providers[0]) if needed else None)

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
            raise ParameterError("only matrices with the same number of fractional bits can be combined")
        out = scale if fraction is None else fraction
        drop = COEFFICIENT_BITS + scale - out
        if drop < 0:
            raise ParameterError(f"a combination of matrices with {scale} fractional bits cannot have {out}")
        factors = [coefficient_units(c) for c, _ in terms]
        words = min(go.limits().max_words, max(x.share.shape[2] for _, x in terms) + 1)

        def step(*shares: Integers) -> Integers:
            return go.combine(shares, factors, drop, words)

        constant = partial(_plus_identity, value=scaled_units(identity, out)) if identity else None
        return self._made([x for _, x in terms], step, constant, fraction=out, bits=bits)

    def transpose(self, x: Shared) -> Shared:
        return self._made([x], _transposed, fraction=x.fraction, bits=x.bits, norm_bits=x.norm_bits)

    def hstack(self, matrices: Sequence[Shared]) -> Shared:
        widest = max(x.share.shape[2] for x in matrices)
        if len({x.fraction for x in matrices}) > 1:
            raise ParameterError("only matrices with the same number of fractional bits can be stacked")

        def step(*shares: Integers) -> Integers:
            return np.concatenate([go.widened(share, widest) for share in shares], axis=1)

        bits = max(x.bits for x in matrices)
        return self._made(matrices, step, fraction=matrices[0].fraction, bits=bits)

    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        def step(share: Integers) -> Integers:
            return np.ascontiguousarray(share[rows, cols])

        return self._made([x], step, fraction=x.fraction, bits=x.bits, norm_bits=x.norm_bits)

    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        factors, drop = public_integers(weights), COEFFICIENT_BITS + x.fraction - fraction

        def step(share: Integers) -> Integers:
            values = (factors @ go.to_ints(share) + (1 << (drop - 1))) >> drop
            return go.from_ints(values, share.shape[2])

        return self._made([x], step, fraction=fraction, bits=bits)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:
        factors, drop = public_integers(weights), COEFFICIENT_BITS + x.fraction - fraction

        def step(share: Integers) -> Integers:
            values = (factors * go.to_ints(share) + (1 << (drop - 1))) >> drop
            return go.from_ints(values, min(go.limits().max_words, share.shape[2] + 1))

        return self._made([x], step, fraction=fraction, bits=bits)

    def plus_public(self, x: Shared, values: Floats) -> Shared:
        added = at_grid(values, x.fraction)

        def constant(share: Integers) -> Integers:
            return go.from_ints(go.to_ints(share) + added, share.shape[2])

        return self._made([x], _same, constant, fraction=x.fraction, bits=x.bits + 1)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        def step(share: Integers) -> Integers:
            return np.ascontiguousarray(share).reshape(*shape, -1)

        return self._made([x], step, fraction=x.fraction, bits=x.bits)

    def next_step(self) -> int:
        """The number of a message, the same for all roles."""
        self._step += 1
        return self._step

    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:
        step, share = self.next_step(), x.share
        if self.me in self.all_providers:
            domain = hashlib.sha256(self.session + f"digits {step}".encode()).digest()
            share = go.smudge(share, smudge_bits, self.record(f"digits {step}", fresh_seed), domain)
        # The coordinator's part, which providers know too, stays as it is.
        return replace(x, share=share, holders=x.holders | self.all_providers, norm_bits=None, cache={})

    def trace(self, x: Shared, *, bits: int) -> Shared:
        def step(share: Integers) -> Integers:
            values = np.array([[np.trace(go.to_ints(share))]], dtype=object)
            return go.from_ints(values, share.shape[2] + 1)

        return self._made([x], step, fraction=x.fraction, bits=bits)

    def diagonal(self, x: Shared) -> Shared:
        at = np.arange(x.shape[0])

        def step(share: Integers) -> Integers:
            return np.ascontiguousarray(share[at, at][:, None])

        return self._made([x], step, fraction=x.fraction, bits=x.bits)

    def diag(self, x: Shared) -> Shared:
        at = np.arange(x.shape[0])

        def step(share: Integers) -> Integers:
            out = np.zeros((len(at), *share.shape[::2]), np.uint64)
            out[at, at] = share[:, 0]
            return out

        return self._made([x], step, fraction=x.fraction, bits=x.bits)

    def triangle(self, x: Shared) -> Shared:
        upper = np.triu_indices(x.shape[0])

        def step(share: Integers) -> Integers:
            return np.ascontiguousarray(share[upper][:, None])

        return self._made([x], step, fraction=x.fraction, bits=x.bits)

    # ---- what leaves ----

    async def own_part(self, x: Shared) -> Integers | None:
        """What this role adds where a matrix is multiplied or opened; a carrier, the coordinator's too."""
        if self.me == str(self.coordinator):
            return None
        if self.me != x.carrier:
            return np.asarray(x.share)
        words = min(go.limits().max_words, x.share.shape[2] + 1)
        return go.combine([x.share, await x.carried.value()], [1, 1], 0, words)

    @abstractmethod
    async def check(self, *, last: bool = False) -> None:
        """Compare with the other providers what was received, before anything is opened."""


async def _carry(
    matrices: Sequence[Shared],
    step: Callable[..., Integers],
    constant: Callable[[Integers], Integers] | None,
) -> Integers:
    """What the coordinator does with its shares; it has none of what nobody carries for it."""
    parts = [np.zeros_like(x.share) if x.carried is None else await x.carried.value() for x in matrices]
    out = step(*parts)
    return out if constant is None else constant(out)


def _same(share: Integers) -> Integers:
    return share


def _transposed(share: Integers) -> Integers:
    return np.ascontiguousarray(share.transpose(1, 0, 2))


def _plus_identity(share: Integers, *, value: int) -> Integers:
    values = go.to_ints(share)
    for i in range(len(values)):
        values[i, i] += value
    return go.from_ints(values, share.shape[2])
