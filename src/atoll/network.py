"""What a role sees of the world: a network to send and receive on, and a record.

A role is a function of its study, its data, its ordered inbox and its recorded draws, and of nothing
else. It cannot tell which engine carries it: engines implement :class:`Network` and :class:`Record`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from hmac import compare_digest
from typing import Any, Final, TypeVar

from atoll import codec
from atoll.codec import Message
from atoll.errors import MessageError
from atoll.study.address import Address

KEPT_BYTES: Final = 1 << 22
"""The most of a number, or of many, that a record keeps because it was computed."""

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class Record(ABC):
    """Keeps what a role draws, before the role uses it, and what it sends, before that leaves."""

    @abstractmethod
    def __call__(self, tag: str, draw: Callable[[], bytes]) -> bytes:
        """Call ``draw`` once and return its bytes.

        A role that runs again from its record gets the same bytes back without a second draw. A tag is
        used once: a second draw under the same tag could give two different shares of one value, so it is
        an error.
        """

    @abstractmethod
    def sent(self, to: Address, digest: bytes) -> None:
        """Told by the engine, in order, of every message that is about to leave.

        A role that runs again must send what it sent: other bytes under the same draws (masks, noise,
        encryptions of zero) would show the difference. So they are an error, and do not leave.
        """

    def kept(self, tag: str, found: T, kind: Any = None) -> T:
        """``found``, as it was when the role first ran; of ``kind``, where its own type does not say all.

        For what a decomposition or an optimiser made of opened sums, and others are told. Its last digits,
        the sign of an eigenvector, where an iteration ends: these may depend on the machine's cores, on where
        arrays lie in memory, on a library. A role that runs again goes on with what it told. What is too
        large to be kept is found anew, and if it differs the run does not go on. Not for what is made of
        a role's own rows: other rows under the same draws must be noticed.
        """
        data = codec.encode(found)
        kept = self(f"kept {tag}", lambda: data if len(data) <= KEPT_BYTES else b"")
        again: T = codec.decode(kept, type(found) if kind is None else kind) if kept else found
        return again

    @abstractmethod
    def sync(self) -> None:
        """Return when everything so far is on disk, where the record has one.

        For whatever is charged or promised by a drawn name: forgotten, it would be drawn and charged again.
        """

    def under(self, name: str) -> Record:
        """The same record, for a part of the role whose tags are its own."""
        return _Scoped(self, name)


class _Scoped(Record):
    """Another record, with a name before every tag."""

    def __init__(self, whole: Record, name: str) -> None:
        self._whole = whole
        self._name = name

    def __call__(self, tag: str, draw: Callable[[], bytes]) -> bytes:
        return self._whole(f"{self._name} {tag}", draw)

    def sent(self, to: Address, digest: bytes) -> None:
        self._whole.sent(to, digest)

    def sync(self) -> None:
        self._whole.sync()


class Compared(Message, frozen=True):
    """Member -> every other member of a group: the digest of what it was told, before anything is opened."""

    topic: str
    digest: bytes
    note: bytes


class Network(ABC):
    """Sends and receives messages for one role."""

    me: Address

    @abstractmethod
    async def send(self, to: Address, message: Message) -> None:
        """Hand one message to the engine, which delivers it in order and once."""

    @abstractmethod
    async def next(
        self, kind: type[M], senders: Iterable[Address], *, absent: set[Address] | None = None
    ) -> tuple[Address, M] | None:
        """The next message of ``kind`` from any of ``senders``.

        When a sender has left the run: an error, or, where ``absent`` is given, the sender is put
        there; None says that all of ``senders`` have left.
        """

    async def settled(self, to: Iterable[Address]) -> None:
        """Wait until everything sent so far to ``to`` is where it cannot be lost, whatever happens here.

        For a promise to a third role that rests on it. Whoever has left is not waited for. An engine that
        delivers whatever a role has sent, even one that died, has nothing to wait for.
        """
        del to

    @abstractmethod
    async def compute(self, step: Callable[..., T], *args: object) -> T:
        """Run a heavy step beside the event loop; its time is booked under the step's name."""

    async def receive(self, kind: type[M], sender: Address) -> M:
        """The next message of ``kind`` from ``sender``."""
        arrived = await self.next(kind, (sender,))
        assert arrived is not None
        return arrived[1]

    async def fold(
        self,
        kind: type[M],
        senders: Iterable[Address],
        combine: Callable[[Address, M], None],
        *,
        absent: set[Address] | None = None,
    ) -> None:
        """One message from each sender, combined as they arrive; ``combine`` must not mind the order."""
        pending = set(senders)
        while pending:
            arrived = await self.next(kind, pending, absent=absent)
            if arrived is None:
                break
            combine(*arrived)
            pending.discard(arrived[0])
            pending -= absent or set()

    async def gather(
        self, kind: type[M], senders: Sequence[Address], *, absent: set[Address] | None = None
    ) -> dict[Address, M]:
        """One message from each sender, in the order of ``senders``."""
        arrived: dict[Address, M] = {}
        await self.fold(kind, senders, arrived.__setitem__, absent=absent)
        return {sender: arrived[sender] for sender in senders if sender in arrived}

    async def broadcast(self, to: Iterable[Address], message: Message) -> None:
        """The same message to each of ``to``."""
        for address in to:
            await self.send(address, message)

    async def agree(
        self,
        topic: str,
        digest: bytes,
        group: Sequence[Address],
        note: bytes = b"",
        *,
        absent: set[Address] | None = None,
    ) -> dict[Address, bytes]:
        """Go on only if every member of ``group`` was told the same; returns everybody's ``note``.

        Members send each other the digest of what a third role told them, not through that role: one
        that told two members different things is found out before anything is opened on the strength
        of it. A ``note`` travels along: a contribution to a common coin, a fingerprint. One round.
        Members that have left are an error, or, where ``absent`` is given, are put there.
        """
        await self.tell(topic, digest, group, note)
        return await self.agreed(topic, digest, group, note, absent=absent)

    async def tell(self, topic: str, digest: bytes, group: Sequence[Address], note: bytes = b"") -> None:
        """The first half of :meth:`agree`: what others are told does not wait for what they tell."""
        if self.me not in group:
            raise ValueError(f"{self.me} is no member of the group that compares {topic!r}")
        await self.broadcast([m for m in group if m != self.me], Compared(topic, digest, note))

    async def agreed(
        self,
        topic: str,
        digest: bytes,
        group: Sequence[Address],
        note: bytes = b"",
        *,
        absent: set[Address] | None = None,
    ) -> dict[Address, bytes]:
        """The second half: go on only if all others told the same; returns everybody's ``note``."""
        others = [member for member in group if member != self.me]
        arrived = await self.gather(Compared, others, absent=absent)
        for member, message in arrived.items():
            if message.topic != topic:
                raise MessageError(f"{member} compares {message.topic!r} where {topic!r} was due")
        differing = [str(m) for m, message in arrived.items() if not compare_digest(message.digest, digest)]
        if differing:
            raise MessageError(
                f"{self.me} was told something else than {', '.join(differing)} about {topic}",
                hint="whoever relays told two parties different things: nothing was opened; ask it why",
            )
        notes = {member: message.note for member, message in arrived.items()} | {self.me: note}
        return {member: notes[member] for member in group if member in notes}
