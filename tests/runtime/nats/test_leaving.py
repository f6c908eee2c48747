"""Parties that leave, are silent, or fail: who decides, who is told, and what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.crashes import Crash, Doom, Lab, only_the_dead_are_silent
from tests.support.examples import Example, pppca, sfpca, summation

from atoll.codec import Message
from atoll.errors import AtollError, Deadlock, PartyLeft, RunError
from atoll.network import Network, Record
from atoll.protocols import protocol_of
from atoll.protocols.base import Learned
from atoll.protocols.own import Own
from atoll.runtime.nats import wire
from atoll.runtime.nats.channel import Peer
from atoll.runtime.nats.link import Link
from atoll.runtime.nats.sending import Sending, Timing
from atoll.study.model import Study


class Word(Message, frozen=True):
    """That nobody ever says."""


GONE = "island-2"
PARTS = {name: island.features(island.columns)[0] for name, island in summation().islands.items()}
EVERYBODY = sum(PARTS.values())
SERVER = pppca().study.the("server").party
THE_OTHERS = sum(part for name, part in PARTS.items() if name != GONE)


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    end = only_the_dead_are_silent()
    yield
    end()


def run_all(lab: Lab) -> dict[str, BaseException]:
    """Everybody once; a crash is for good."""
    errors: dict[str, BaseException] = {}

    def one(party: str) -> None:
        try:
            lab.outcomes[party] = lab.party(party, lab.dooms[party])
        except BaseException as error:
            errors[party] = error

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        list(threads.map(one, lab.starts))
    return errors


def total_of(lab: Lab) -> np.ndarray:
    (learned,) = lab.outcomes["receiver"].learned.values()
    return np.asarray(learned.outputs["total"])


def recoverable() -> Example:
    return summation("masks", {"dropouts": 1})


@pytest.mark.timeout(300)
def test_a_sum_goes_on_without_one_that_dies_anywhere(tmp_path: Path) -> None:
    """At some points its input had arrived, at others not; never does the sum hang or come out wrong."""
    included = set()

    def died_at(point: int) -> tuple[Lab, dict[str, BaseException]]:
        lab = Lab(recoverable(), tmp_path / str(point))
        lab.deadline = 2.0
        lab.dooms[GONE] = Doom(point)
        return lab, run_all(lab)

    points = (5, 40, 70, 90, 110, 130, 150, 170)
    with ThreadPoolExecutor(4) as several:  # they mostly wait
        died = list(several.map(died_at, points))
    for point, (lab, errors) in zip(points, died, strict=True):
        if GONE in lab.outcomes:
            continue  # it was done before
        assert set(errors) == {GONE}, (point, errors)
        assert isinstance(errors[GONE], Crash)
        total = total_of(lab)
        with_it, without_it = (
            np.allclose(total, EVERYBODY, atol=1e-6),
            np.allclose(total, THE_OTHERS, atol=1e-6),
        )
        assert with_it != without_it
        included.add(with_it)
        lab.wiretap.check()
    assert False in included


@pytest.mark.timeout(300)
def test_outputs_are_released_without_one_that_dies_after_shares_were_dealt(tmp_path: Path) -> None:
    """SF-PCA with a threshold: wherever a provider dies, all others end, with the output or with an error."""
    whole = Lab(sfpca(threshold=2, bounds=64.0), tmp_path / "whole")
    assert run_all(whole) == {}
    (known,) = whole.outcomes["consumer"].learned.values()
    released = set()
    for before in (3, 5, 9, 20):
        lab = Lab(sfpca(threshold=2, bounds=64.0), tmp_path / str(before))
        lab.deadline = 2.0
        lab.dooms["island-1"] = Doom(whole.dooms["island-1"].passed["publish"] - before, "publish")
        errors = run_all(lab)
        assert isinstance(errors.pop("island-1"), Crash)
        released.add(not errors)
        if errors:
            assert set(errors) == {"coordinator", "consumer", "island-0", "island-2"}
            assert all(isinstance(error, PartyLeft) for error in errors.values())
            continue
        (learned,) = lab.outcomes["consumer"].learned.values()
        assert np.abs(learned.outputs["components"] - known.outputs["components"]).max() < 1e-6
        assert {outcome.missing for outcome in lab.outcomes.values()} == {("island-1",)}
        lab.wiretap.check()
    assert released == {True, False}


@pytest.mark.timeout(300)
def test_all_name_who_left_and_one_that_comes_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared, declare = threading.Event(), Link._declare

    async def declaring(self: Link, peer: Peer) -> None:
        await declare(self, peer)
        declared.set()

    monkeypatch.setattr(Link, "_declare", declaring)
    lab = Lab(recoverable(), tmp_path)
    lab.deadline = 2.0
    lab.dooms[GONE] = Doom(40)
    late: list[BaseException] = []

    def one(party: str) -> None:
        try:
            lab.outcomes[party] = lab.party(party, lab.dooms[party])
        except Crash:
            assert declared.wait(100)
            try:
                lab.party(party, Doom())
            except AtollError as error:
                late.append(error)

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        list(threads.map(one, lab.starts))
    assert {outcome.missing for outcome in lab.outcomes.values()} == {(GONE,)}
    assert np.allclose(total_of(lab), THE_OTHERS, atol=1e-6)
    (error,) = late
    assert isinstance(error, PartyLeft)
    lab.wiretap.check()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("silent", [GONE, "receiver"])
def test_where_nobody_may_leave_everybody_is_told_who_is_missing(silent: str, tmp_path: Path) -> None:
    lab = Lab(summation("shares") if silent == GONE else recoverable(), tmp_path)
    lab.deadline = 2.0
    lab.dooms[silent] = Doom(30)
    errors = run_all(lab)
    assert isinstance(errors.pop(silent), Crash)
    assert set(errors) == set(lab.starts) - {silent}
    for error in errors.values():
        assert isinstance(error, PartyLeft)
        assert error.missing == (silent,)


@pytest.mark.timeout(300)
def test_a_party_that_is_cut_off_itself_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(recoverable(), tmp_path)
    lab.deadline = 1.5
    looked, look = threading.Event(), Link._look_for_silence

    async def looking(self: Link, now: float) -> None:
        await look(self, now)
        for name in lab.starts:  # from now on they run, or are about to
            lab.revive(name)
        looked.set()

    monkeypatch.setattr(Link, "_look_for_silence", looking)
    receiver = lab.starts["receiver"].fingerprint("receiver")
    for name in lab.starts:
        lab.bury(name)
    lab.hub.cut(receiver)
    with ThreadPoolExecutor(1) as threads:
        alone = threads.submit(lab.party, "receiver", Doom())
        time.sleep(2 * lab.deadline)
        assert not alone.done()
        looked.clear()
        lab.hub.mend(receiver)
        assert looked.wait(100)  # it hears itself again, and has looked who is silent
        assert not alone.done()
        lab.starts = {name: start for name, start in lab.starts.items() if name != "receiver"} | {
            "receiver": lab.starts["receiver"]
        }
        with ThreadPoolExecutor(4) as others:
            list(others.map(lambda name: lab.party(name, Doom()), [n for n in lab.starts if n != "receiver"]))
        assert alone.result().missing == ()


# ---- errors ----

Role = Callable[[Network, Study, Own, Record], Coroutine[Any, Any, Learned]]


def with_role(lab: Lab, name: str, role: Role) -> Lab:
    lab.protocol = replace(lab.protocol, roles={**lab.protocol.roles, name: role})
    return lab


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [RunError, ValueError])
def test_an_error_ends_the_run_for_all_and_says_nothing_of_data(
    kind: type[Exception],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: set[str] = set()
    read = wire.read_status

    def reading(body: bytes) -> wire.Status:
        status = read(body)
        told.add(status.error)
        return status

    monkeypatch.setattr(wire, "read_status", reading)

    async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
        raise kind("the patient in row 17 is 93 years old")

    lab = with_role(Lab(pppca(), tmp_path), "server", server)  # everybody waits for what it computes
    failing = f"{SERVER}/server"
    errors = run_all(lab)
    assert set(errors) == set(lab.starts)
    for party, error in errors.items():
        assert isinstance(error, RunError)
        assert error.role == failing
        if party != SERVER:
            assert "patient" not in str(error)
            assert str(error).startswith(f"{failing} ended the run")
    assert "patient" not in caplog.text
    assert told == {"", "RunError" if kind is RunError else "RoleFailed"}
    # A start after the end says the same, at once.
    with pytest.raises(RunError, match="ended the run"):
        lab.party(next(party for party in lab.starts if party != SERVER), Doom())


@pytest.mark.timeout(300)
def test_what_was_done_stands_when_another_fails_later(tmp_path: Path) -> None:
    """Islands that have sent all they had to send are done: they name who failed, and do not wait for it."""
    lab = Lab(summation(), tmp_path)
    waits = who_waits_for_the_receiver(lab, GONE)
    lab.timing = lab.timing._replace(linger=1e6)
    errors = run_all(lab)
    assert set(errors) == {GONE, "receiver"}
    assert str(errors[GONE]).startswith("receiver/receiver ended the run")
    assert waits == [GONE]
    for outcome in lab.outcomes.values():
        assert set(outcome.unconfirmed) == {GONE, "receiver"}
        assert outcome.awaited == ()
    # Nor does a later start wait for them, whose task is to answer those who come back.
    lab.timing = lab.timing._replace(stay=True)
    again = lab.party("island-0", Doom())
    assert (set(again.unconfirmed), again.awaited) == ({GONE, "receiver"}, ())


def who_waits_for_the_receiver(lab: Lab, island: str) -> list[str]:
    """The receiver fails when all islands are done but one, which waits for a word of it; returns that one,
    once it waits."""
    receive, give = lab.protocol.roles["receiver"], lab.protocol.roles["contributor"]
    waits: list[str] = []
    done: set[str] = set()
    others = {name for name in lab.starts if name not in (island, "receiver")}
    tap = lab.wiretap

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes:
        opened = tap.opener(to, frame)
        if opened and opened[0].kind == wire.DONE:
            done.add(sender)
        return tap(sender, to, topic, frame)

    lab.hub.alter = alter

    def until_all_are_done() -> None:
        while len(done) < len(others) or not waits:
            time.sleep(0.01)

    async def contributor(net: Network, study: Study, own: Own, record: Record) -> Learned:
        learned = await give(net, study, own, record)
        if net.me.party == island:
            waits.append(island)
            await net.receive(Word, study.the("receiver"))
        return learned

    async def receiver(net: Network, study: Study, own: Own, record: Record) -> Learned:
        await receive(net, study, own, record)
        await net.compute(until_all_are_done)
        raise RunError("the patient in row 17 is 93 years old")

    with_role(with_role(lab, "receiver", receiver), "contributor", contributor)
    return waits


@pytest.mark.timeout(300)
def test_a_deadlock_is_told_from_slowness(tmp_path: Path) -> None:
    async def idle(net: Network, study: Study, own: Own, record: Record) -> Learned:
        return Learned()

    async def slow(net: Network, study: Study, own: Own, record: Record) -> Learned:
        await net.compute(time.sleep, 4)
        return await original(net, study, own, record)

    original = protocol_of("pppca").roles["server"]
    labs = [
        with_role(Lab(pppca(), tmp_path / name), "server", role) for name, role in (("s", slow), ("d", idle))
    ]
    with ThreadPoolExecutor(2) as both:
        slowly, errors = both.map(run_all, labs)
    assert slowly == {}
    assert {type(error) for party, error in errors.items() if party.startswith("hospital")} == {Deadlock}


# ---- who is believed ----


@pytest.mark.timeout(300)
def test_only_the_judge_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor that says of another that it has left changes nothing."""
    lab = Lab(recoverable(), tmp_path)
    place = [party.name for party in lab.starts[GONE].study.parties].index(GONE)
    begin = Sending.__init__

    def lying(self: Sending, *arguments: Any) -> None:
        begin(self, *arguments)
        if self.state.start.me == "island-0":
            self._declared = (place,)

    monkeypatch.setattr(Sending, "__init__", lying)
    assert run_all(lab) == {}
    assert {outcome.missing for outcome in lab.outcomes.values()} == {()}
    assert np.allclose(total_of(lab), EVERYBODY, atol=1e-6)


@pytest.mark.timeout(300)
def test_a_contributor_promises_only_what_is_on_other_disks(tmp_path: Path) -> None:
    """While one neighbour cannot be reached, nobody says that its backups are made."""
    lab = Lab(recoverable(), tmp_path)
    lab.deadline = 30.0
    study = lab.starts["receiver"].study
    far, receiver = lab.starts[GONE].fingerprint(GONE), study.addresses().index(study.the("receiver"))
    lost: list[bytes] = []
    cut = threading.Event()

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
        opened = lab.wiretap.opener(to, frame)
        head = opened[0] if opened else None
        if head and head.kind == wire.DATA and to == far and head.seq == 2 and not cut.is_set():
            lost.append(frame)  # a backup
            return None
        return lab.wiretap(sender, to, topic, frame)

    lab.hub.alter = alter
    promises: list[int] = []

    def promised() -> int:
        return sum(key[1] == receiver for key in list(lab.wiretap.digests))

    def watch() -> None:
        while not promised():
            time.sleep(0.01)
        time.sleep(1.0)  # for others that promise too much
        promises.append(promised())
        cut.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert run_all(lab) == {}
    watcher.join()
    assert lost
    assert promises == [1]  # of the one whose own backups all arrived
    assert np.allclose(total_of(lab), EVERYBODY, atol=1e-6)


def test_a_party_that_died_counts_as_waiting_only_if_it_says_so_again() -> None:
    """Its last word may be older than what reached it afterwards."""
    failed: list[BaseException] = []
    peer = Peer(1, "south", "", [0], [1])
    peer.waits = True
    link = SimpleNamespace(
        state=SimpleNamespace(peers={1: peer}),
        roles_wait=lambda: True,
        circle=SimpleNamespace(whole=True, is_chair=False),
        timing=Timing(beat=2.0),
        done=False,
        _quiet_since=0.0,
        _fail=lambda error, **_: failed.append(error),
    )
    for now in range(100, 160):
        Link._look_for_deadlock(link, float(now))  # type: ignore[arg-type]
    assert failed == []
    peer.said = 150.0
    Link._look_for_deadlock(link, 160.0)  # type: ignore[arg-type]
    assert [type(error) for error in failed] == [Deadlock]
