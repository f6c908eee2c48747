"""Messages for several receivers: their content leaves once, and whatever happens to it, each gets it."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.crashes import LOSSES, Doom, Lab, watch_disks
from tests.support.examples import Example

from atoll.codec import Message
from atoll.errors import MessageError
from atoll.network import Compared, Network, Record
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import MemoryHub
from atoll.study.model import Parameters, Party, Study

SIZE = 3 * wire.CHUNK // 2
LISTENERS = 3


class Told(Message, frozen=True):
    """Speaker -> every listener."""

    body: bytes


def body(number: int) -> bytes:
    return hashlib.sha256(bytes([number])).digest() * (SIZE // 32)


async def speaker(net: Network, study: Study, _: Own, record: Record) -> Learned:
    listeners = study.who("listener")
    for number in range(3):
        await net.broadcast(listeners, Told(body(number)))
        for one in listeners:
            await net.receive(Told, one)
    return Learned()


async def listener(net: Network, study: Study, _: Own, record: Record) -> Learned:
    me, group, speaker_ = net.me, study.who("listener"), study.the("speaker")
    for number in range(3):
        told = (await net.receive(Told, speaker_)).body
        await net.agree(f"message {number}", hashlib.sha256(told).digest(), group)
        assert told == body(number), me
        await net.send(speaker_, Told(b""))
    return Learned()


@pytest.fixture(autouse=True)
def protocol() -> Iterator[Protocol]:
    made = Protocol(
        name="speech",
        title="",
        roles={"speaker": speaker, "listener": listener},
        data_roles=frozenset(),
        messages=(Told, Compared),
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset({"speaker"}),
        uses_sum=False,
    )
    PROTOCOLS._loaded["speech"] = made  # starts look protocols up by name
    yield made
    del PROTOCOLS._loaded["speech"]


def example() -> Example:
    parties = [Party("speaker", ("speaker",))]
    parties += [Party(f"listener-{i}", ("listener",)) for i in range(LISTENERS)]
    return Example(Study(name="speech", protocol="speech", parties=tuple(parties)), {})


class Uplink:
    """Counts what the speaker's node hands to the hub."""

    def __init__(self, lab: Lab) -> None:
        self.bytes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._next = lab.hub.alter
        lab.hub.alter = self

    def __call__(self, sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
        with self._lock:
            self.bytes[sender] += len(frame)
        return self._next(sender, to, topic, frame) if self._next and to else frame


def speaker_of(lab: Lab) -> str:
    return lab.starts["speaker"].fingerprint("speaker")


def test_a_content_leaves_once_and_is_removed_when_all_have_it(tmp_path: Path) -> None:
    lab = Lab(example(), tmp_path)
    uplink = Uplink(lab)
    outcomes = lab.run()
    assert outcomes["speaker"].counts["shared"] == 3
    # However slow a machine is: whoever is asked answers after whatever left before the question.
    assert not any(outcome.counts.get("resent") for outcome in outcomes.values())
    assert 3 * SIZE < uplink.bytes[speaker_of(lab)] < 3.2 * SIZE
    assert outcomes["speaker"].counts["bytes"] < 3.1 * SIZE
    assert lab.hub.contents() == 0
    lab.wiretap.check()


def test_a_hub_that_loses_doubles_and_reorders_is_made_up_for(tmp_path: Path) -> None:
    lab = Lab(example(), tmp_path, MemoryHub(loss=0.4, duplication=0.1, reorder=0.1, seed=3))
    outcomes = lab.run()
    assert outcomes["speaker"].counts["resent"] > 0
    lab.wiretap.check()


def changed(frame: bytes) -> bytes:
    return frame[:100] + bytes([frame[100] ^ 1]) + frame[101:]


@pytest.mark.parametrize(
    "lie",
    [lambda _: None, changed, lambda frame: frame[:-1], lambda frame: frame + frame, lambda _: b""],
    ids=["dropped", "changed", "cut", "doubled", "emptied"],
)
def test_a_hub_that_changes_contents_is_noticed_and_made_up_for(
    lie: Callable[[bytes], bytes | None], tmp_path: Path
) -> None:
    lab = Lab(example(), tmp_path)
    tap = lab.hub.alter
    assert tap is not None
    lab.hub.alter = lambda sender, to, topic, frame: tap(sender, to, topic, frame) if to else lie(frame)
    outcomes = lab.run()
    assert outcomes["speaker"].counts["resent"] >= 3 * LISTENERS
    refused = [outcomes[name].counts.get("refused", 0) for name in lab.starts if name != "speaker"]
    assert min(refused) >= 3


def test_a_content_under_anothers_number_is_refused() -> None:
    """Also the parts of one content are not taken for each other."""
    ticket = wire.Ticket.new()
    first, second = wire.seal_content(ticket, bytes(16), bytes(2 * wire.CHUNK))
    head = wire.Head(wire.SHARED, 0, 1, 1, 0, 2 * wire.CHUNK, 1, bytes(32))
    assert len(wire.open_content(ticket, bytes(16), head, 1, second)) == wire.CHUNK
    with pytest.raises(MessageError):
        wire.open_content(ticket, bytes(16), head, 1, first)


def test_a_hub_that_gives_one_content_for_another_is_noticed(tmp_path: Path) -> None:
    """Of two broadcasts that were both sealed by their sender, the hub hands out the first twice."""
    lab = Lab(example(), tmp_path)
    tap, first = lab.hub.alter, dict[int, bytes]()
    assert tap is not None

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
        return tap(sender, to, topic, frame) if to else first.setdefault(len(frame), frame)

    lab.hub.alter = alter
    outcomes = lab.run()
    assert outcomes["speaker"].counts["resent"] >= 2 * LISTENERS


@pytest.mark.parametrize("place", ["speaker", "listener-1"])
def test_a_crash_on_the_way_changes_nothing(place: str, tmp_path: Path) -> None:
    """At some points of either side, with what was not on disk lost."""
    end = watch_disks()
    try:
        for point in (12, 24, 37, 51):
            lab = Lab(example(), tmp_path / f"{point}")
            lab.dooms[place] = Doom(point)
            lab.run(LOSSES["the power failed"])
            assert lab.crashes[place] == 1
            assert lab.hub.contents() == 0
            lab.wiretap.check()
    finally:
        end()


def test_a_hub_whose_disk_is_lost_is_made_up_for(tmp_path: Path) -> None:
    lab = Lab(example(), tmp_path)
    timers = [threading.Timer(0.05 * i, lab.hub.wipe) for i in range(1, 12)]
    for timer in timers:
        timer.start()
    lab.run()
    for timer in timers:
        timer.cancel()
    lab.wiretap.check()


def test_a_sender_that_tells_two_receivers_different_contents_is_found_out(
    tmp_path: Path, protocol: Protocol
) -> None:
    """Each of its contents is sealed as it must be; what the listeners compare differs."""

    async def liar(net: Network, study: Study, _: Own, record: Record) -> Learned:
        *honest, victim = study.who("listener")
        await net.broadcast(honest, Told(body(0)))
        await net.broadcast([victim], Told(body(1)))
        for one in study.who("listener"):
            await net.receive(Told, one)
        return Learned()

    protocol.roles["speaker"] = liar  # type: ignore[index]
    lab = Lab(example(), tmp_path)
    with pytest.raises(MessageError, match=r"told something else|ended the run"):
        lab.run()


def test_one_content_under_two_keys_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket to another's key opens nothing, and one to another content has another digest."""
    lab = Lab(example(), tmp_path)
    real, seen = wire.Sealer.shared, Counter[int]()

    def other(self: wire.Sealer, sender: int, to: int, *rest: object) -> bytes:
        seen[to] += 1
        *about, ticket = rest
        assert isinstance(ticket, wire.Ticket)
        if to == 3:
            ticket = wire.Ticket(ticket.name, bytes(32))
        return real(self, sender, to, *about, ticket)  # type: ignore[arg-type]

    monkeypatch.setattr(wire.Sealer, "shared", other)
    outcomes = lab.run()
    assert seen[3] == 3
    assert outcomes["listener-2"].counts["refused"] >= 3  # and got them from the speaker itself
