"""Outputs for those who may have them: encrypted again under a key that only they know (DKeySwitch).

The receivers of one output share a key, which the first of them draws: so a provider gives one part for one
ciphertext, however many receivers there are; whoever adds parts up and passes the result on reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.crypto import slots
from atoll.crypto.slots import Secret, Set
from atoll.errors import MessageError
from atoll.network import Network, Record
from atoll.randomness import SEED_BYTES, derive, fresh_seed
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.slots.levelled import lengths_of_parts, pasted
from atoll.secret_matrices.slots.machine import Values
from atoll.secret_matrices.slots.messages import ReceiverKey, ReceiverSecret, SwitchedRow, placed
from atoll.study.address import Address


class Circle:
    """The receivers of an output, as one role sees them."""

    def __init__(
        self,
        net: Network,
        record: Record,
        digest: str,
        chosen: Set,
        addresses: Sequence[Address],
        providers: Sequence[Address],
        receivers: frozenset[str],
    ) -> None:
        """``addresses``: the coordinator, then providers, then guests."""
        self.net = net
        self.record = record
        self.set = chosen
        self.coordinator = addresses[0]
        self.providers = providers
        self.members = [a for a in addresses if str(a) in receivers]
        if len(self.members) != len(receivers):
            raise ValueError("an output for somebody who takes no part")
        names = sorted(receivers)
        self._tag = f"receiving key of {', '.join(names)}"
        self.common = digest_of(digest, "slots", "receivers", *names)
        self._secret: Secret | None = None
        self._public: memoryview | None = None

    async def public(self) -> memoryview:
        """The key that providers encrypt under; a provider or a receiver calls it, all at the same step."""
        if self._public is None:
            first = self.members[0]
            if self.net.me in self.members:
                await self._share()
            else:
                self._public = (await self.net.receive(ReceiverKey, first)).body
        assert self._public is not None
        return self._public

    async def _share(self) -> None:
        first, others = self.members[0], self.members[1:]
        if self.net.me == first:
            seed = self.record(self._tag, fresh_seed)
            await self.net.broadcast(others, ReceiverSecret(seed))
        else:
            seed = (await self.net.receive(ReceiverSecret, first)).seed
            if len(seed) != SEED_BYTES:
                raise MessageError(f"{first} sent a seed of {len(seed)} bytes, {SEED_BYTES} were due")
        self._secret, public = await self.net.compute(_receiving_key, self.set, self.common, seed)
        self._public = public
        if self.net.me == first:
            readers = [p for p in self.providers if p not in self.members]
            await self.net.broadcast(readers, ReceiverKey(public))

    async def rows(self, lengths: Sequence[int], step: int | None = None) -> list[Values]:
        """The rows of one output, as the coordinator passes them on."""
        found = []
        for place, length in enumerate(lengths):
            message = await self.net.receive(SwitchedRow, self.coordinator)
            step = message.step if step is None else step
            found.append(await self.read(placed(message, self.coordinator, step, place), length))
        return found

    async def body(self, step: int, place: int) -> memoryview:
        """One row as it came."""
        return placed(await self.net.receive(SwitchedRow, self.coordinator), self.coordinator, step, place)

    async def read(self, switched: memoryview, length: int) -> Values:
        """A row under the receivers' key, in the clear."""
        assert self._secret is not None, "public() comes first"
        values: Values = await self.net.compute(self._secret.decrypt, switched, length)
        return values


class Receiver:
    """A role without a machine that receives outputs: a consumer."""

    def __init__(
        self,
        net: Network,
        record: Record,
        digest: str,
        coordinator: Address,
        providers: Sequence[Address],
        guests: Sequence[Address],
        *,
        set_name: str = "paper-14",
        for_tests: bool = False,
    ) -> None:
        self._circle = (net, record, digest, slots.find(set_name, for_tests=for_tests))
        self._addresses = (coordinator, *providers, *guests)
        self._providers = tuple(providers)
        self._circles: dict[frozenset[str], Circle] = {}

    async def opened(self, lengths: Sequence[int], receivers: frozenset[str]) -> list[Values]:
        """What the machines' ``opened`` gives the receivers, this role among them."""
        if receivers not in self._circles:
            self._circles[receivers] = Circle(*self._circle, self._addresses, self._providers, receivers)
        circle = self._circles[receivers]
        await circle.public()
        found = pasted(
            await circle.rows(lengths_of_parts(lengths, circle.set.slots)), lengths, circle.set.slots
        )
        assert found is not None, "whoever is in the circle receives"
        return found


def _receiving_key(chosen: Set, common: bytes, seed: bytes) -> tuple[Secret, memoryview]:
    secret = Secret.generate(chosen, derive(seed, "secret"))
    return secret, memoryview(secret.public_part(common, derive(seed, "public")))
