"""Going on after a crash, and refusing to: old journals, second nodes, other rows."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.support.crashes import FAST, LOSSES, SLOW_DISK, Crash, Doom, Lab, crash_at, watch_disks
from tests.support.examples import EXAMPLES, summation

from atoll.data.island import Island
from atoll.errors import PartyDoubled, ResumeRefused
from atoll.protocols.own import Own
from atoll.runtime import entries as kinds
from atoll.runtime import journal as j
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.channel import Arrival, Incoming, Payload
from atoll.runtime.nats.hearing import _local_head
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState

VICTIM = "island-1"


@pytest.fixture(autouse=True)
def disks() -> Iterator[None]:
    end = watch_disks()
    yield
    end()


def total_of(lab: Lab) -> np.ndarray:
    learned = {a: value for outcome in lab.outcomes.values() for a, value in outcome.learned.items()}
    return np.asarray(next(one.outputs["total"] for one in learned.values() if "total" in one.outputs))


TOTAL = sum(island.features(island.columns)[0] for island in summation().islands.values())

SUMS = ("summation-shares", "summation-masks", "summation-masks-dropouts", "summation-lattice")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", SUMS)
def test_a_crash_changes_nothing(name: str, loss: str, tmp_path: Path) -> None:
    """A few points of each; benchmarks/network_crashes.py tries them all."""
    for number, (party, point) in enumerate((("island-0", 3), (VICTIM, 30), ("receiver", 45), (VICTIM, 60))):
        lab = crash_at(EXAMPLES[name](), tmp_path / str(number), party, point, LOSSES[loss])
        assert lab.crashes[party] == 1
        assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
        assert lab.outcomes[party].starts == 2


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", [32, 44, 48])
def test_a_power_failure_before_the_bytes_were_on_disk(point: int, tmp_path: Path) -> None:
    """The inbox knows of messages whose bytes are lost; they come again, once, and are found ever after."""
    again, loss = (40, 50, 60), LOSSES["the power failed"]
    example = EXAMPLES["summation-lattice"]()
    lab = crash_at(example, tmp_path, VICTIM, point, loss, again=again, timing=SLOW_DISK)
    assert lab.crashes[VICTIM] == 1 + len(again)
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)


def test_bytes_that_came_again_are_found_by_the_next_start(tmp_path: Path) -> None:
    """They were acknowledged, so nobody else has them any more."""
    lab = Lab(summation(), tmp_path)
    start, data = lab.starts[VICTIM], b"of island-0"
    header = header_of(start, lab.own[VICTIM])

    def opened() -> tuple[j.Journal, Incoming]:
        journal = j.Journal(tmp_path / "j", start.journal_key, header, durable=False)
        return journal, RunState(start, journal).lane_into(0, 1)

    payload = Payload(data, hashlib.sha256(data).digest(), depth=1, lsn=0)
    head = _local_head((0, 1), 1, payload)
    journal, lane = opened()
    assert len(lane.take(head, data, journal)) == 1
    journal.close()
    (tmp_path / "j" / "bulk").write_bytes(b"")
    journal, lane = opened()
    assert (lane.got, len(lane.digests)) == (0, 1)
    assert lane.take(head, data, journal) == []  # its place in the inbox is filled, and no new one made
    assert not lane.hollow
    journal.sync_bulk()
    journal.close()
    journal, lane = opened()
    assert (lane.got, len(lane.digests)) == (1, 1)
    journal.close()


# ---- an old journal ----


def boundaries(folder: Path) -> list[int]:
    """Where the entries of a journal end."""
    return [end for end, _, _ in j._whole((folder / "small").read_bytes())]


def known(folder: Path, lab: Lab) -> tuple[int, list[kinds.Entry]]:
    """How many starts a journal knows, and its entries."""
    copy = folder.with_name("looked-at")
    shutil.copytree(folder, copy)
    start = lab.starts[VICTIM]
    journal = j.Journal(copy, start.journal_key, header_of(start, lab.own[VICTIM]), durable=False)
    journal.close()
    shutil.rmtree(copy)
    return journal.number - 1, journal.entries


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["summation-shares", "summation-masks-dropouts"])
def test_an_old_journal_is_refused_before_anything_leaves(name: str, tmp_path: Path) -> None:
    lab = Lab(EXAMPLES[name](), tmp_path)
    lab.dooms[VICTIM] = Doom(4 if name == "summation-shares" else 8, "publish")
    lab.deadline = 120.0
    crashed, go_on = threading.Event(), threading.Event()

    def others(party: str) -> None:
        lab.outcomes[party] = lab.party(party, Doom())

    def victim() -> None:
        with pytest.raises(Crash):
            lab.party(VICTIM, lab.dooms[VICTIM])
        crashed.set()
        go_on.wait()
        lab.outcomes[VICTIM] = lab.party(VICTIM, Doom())

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        running = [threads.submit(others, party) for party in lab.starts if party != VICTIM]
        running.append(threads.submit(victim))
        try:
            assert crashed.wait(100)
            refused = try_older(lab, tmp_path)
        finally:
            go_on.set()
        for one in running:
            one.result()
    assert refused > 2
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
    lab.wiretap.check()


def try_older(lab: Lab, tmp_path: Path) -> int:
    """Start the victim from every state in which its journal lacks something that another party has seen."""
    time.sleep(3 * FAST.ask)  # what it sent has arrived by now
    whole, refused = tmp_path / VICTIM, 0
    mine = [p for p, a in enumerate(lab.starts[VICTIM].study.addresses()) if a.party == VICTIM]
    ends = [16, *boundaries(whole)[:-1]]
    for size in ends[:: max(1, len(ends) // 10)]:
        old = tmp_path / "old"
        shutil.copytree(whole, old)
        (old / "small").write_bytes((whole / "small").read_bytes()[:size])
        _, entries = known(old, lab)
        sent = sum(isinstance(entry, kinds.Sent) for entry in entries)
        seen = sum(
            lab.starts[VICTIM].study.addresses()[key[0]].party == VICTIM for key in lab.wiretap.digests
        )
        if sent < seen:
            before = [lab.wiretap.by_role[role] for role in mine]
            with pytest.raises(ResumeRefused, match="old one"):
                lab.party(VICTIM, Doom(), old)
            assert [lab.wiretap.by_role[role] for role in mine] == before
            refused += 1
        shutil.rmtree(old)
    return refused


# ---- a second node ----


def while_running(lab: Lab, act: Callable[[], None]) -> dict[str, BaseException]:
    """Start everybody; once all islands have begun to send, cut the receiver off, act, and let it go on."""
    errors: dict[str, BaseException] = {}

    def one(party: str) -> None:
        try:
            lab.outcomes[party] = lab.party(party, lab.dooms[party])
        except BaseException as error:
            errors[party] = error

    receiver = lab.starts["receiver"].fingerprint("receiver")
    islands, is_cut = len(lab.starts) - 1, threading.Event()

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes:
        """Here, before anybody can get further: what an island sends first is for other islands."""
        if len(lab.wiretap.by_role) == islands and not is_cut.is_set():
            lab.hub.cut(receiver)
            is_cut.set()
        return lab.wiretap(sender, to, topic, frame)

    lab.hub.alter = alter
    with ThreadPoolExecutor(len(lab.starts)) as threads:
        running = [threads.submit(one, party) for party in lab.starts]
        try:
            assert is_cut.wait(100)
            time.sleep(5 * FAST.ask)
            act()
        finally:
            lab.hub.mend(receiver)
        for future in running:
            future.result()
    return errors


@pytest.mark.timeout(300)
def test_a_second_node_from_a_copied_journal_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    lab = Lab(summation(), tmp_path)
    boots: set[bytes] = set()

    def second() -> None:
        boots.update(lab.wiretap.data)
        shutil.copytree(tmp_path / VICTIM, tmp_path / "copy")
        with pytest.raises(ResumeRefused, match="another node of this party is at work"):
            lab.party(VICTIM, Doom(), tmp_path / "copy")
        assert set(lab.wiretap.data) <= boots

    assert while_running(lab, second) == {}
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
    lab.wiretap.check()


@pytest.mark.timeout(300)
def test_a_process_that_runs_is_not_joined_by_another_on_the_same_folder(tmp_path: Path) -> None:
    lab = Lab(summation(), tmp_path)

    def second() -> None:
        with pytest.raises(ResumeRefused, match="another process"):
            lab.party(VICTIM, Doom())

    assert while_running(lab, second) == {}


@pytest.mark.timeout(300)
def test_a_second_node_of_a_party_that_is_cut_off_is_found_out(tmp_path: Path) -> None:
    """It cannot hear the first one; but no message gets two payloads, and whoever comes late is told."""
    lab = Lab(summation("masks"), tmp_path)
    fingerprint = lab.starts[VICTIM].fingerprint(VICTIM)
    found: list[BaseException] = []
    second_hub = lab.hub

    def second() -> None:
        shutil.copytree(tmp_path / VICTIM, tmp_path / "copy")
        lab.hub.cut(fingerprint)
        threading.Timer(10 * FAST.ask, lab.hub.mend, (fingerprint,)).start()
        threading.Timer(4 * FAST.ask, lab.hub.mend, (lab.starts["receiver"].fingerprint("receiver"),)).start()
        try:
            lab.party(VICTIM, Doom(), tmp_path / "copy")
        except BaseException as error:
            found.append(error)

    errors = while_running(lab, second)
    assert lab.hub is second_hub
    lab.wiretap.check()
    assert all(isinstance(e, PartyDoubled | ResumeRefused) for e in (*errors.values(), *found))


# ---- other rows, other programs ----


def other_rows(own: Own) -> Own:
    rows = own.table.features(own.table.columns).copy()
    rows[0] += 1.0
    return Own(Island(rows, name=own.table.name))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("noticed", ["when the journal is opened", "when the first bytes would leave"])
def test_other_rows_are_refused_before_anything_leaves(
    noticed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if noticed == "when the first bytes would leave":
        monkeypatch.setattr(Island, "digest", lambda _: "the same")
    lab = Lab(summation("masks"), tmp_path)
    lab.dooms[VICTIM] = Doom(4, "publish")  # what it says of its rows

    def one(party: str) -> None:
        try:
            lab.outcomes[party] = lab.party(party, lab.dooms[party])
        except Crash:
            frames = lab.wiretap.data.copy()
            with pytest.raises(ResumeRefused, match=r"other rows|is not what was sent"):
                lab.party(party, Doom(), own=other_rows(lab.own[party]))
            boots = set(lab.wiretap.data) - set(frames)
            resent = sum(lab.wiretap.data[boot] for boot in boots)
            assert resent == 0 or noticed == "when the first bytes would leave"
            lab.outcomes[party] = lab.party(party, Doom())

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        list(threads.map(one, lab.starts))
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
    lab.wiretap.check()


# ---- a hub that repeats itself ----


@pytest.mark.timeout(300)
def test_old_greetings_and_news_read_again_accuse_nobody(tmp_path: Path) -> None:
    hub = MemoryHub()
    lab = Lab(summation("masks", {"dropouts": 1}), tmp_path, hub)
    kept: list[tuple[str, str, str, bytes]] = []
    tap = lab.wiretap

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes:
        kept.append((sender, to, topic, frame))
        if len(kept) % 5 == 0 and len(kept) < 2000:
            for again in kept[:: max(1, len(kept) // 4)]:
                threading.Thread(target=again_to, args=again).start()
        return tap(sender, to, topic, frame)

    def again_to(sender: str, to: str, topic: str, frame: bytes) -> None:
        hub._keep(to, _kept(topic, sender, frame), False)

    from atoll.runtime.nats.carrier import _Kept

    def _kept(topic: str, sender: str, frame: bytes) -> _Kept:
        return _Kept(0, topic, sender, frame)

    hub.alter = alter
    lab.dooms[VICTIM] = Doom(40)
    lab.run(LOSSES["the process was killed"])
    assert lab.crashes[VICTIM] == 1
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
    tap.check()


@pytest.mark.timeout(300)
def test_a_hub_that_loses_everything_it_has(tmp_path: Path) -> None:
    lab = Lab(summation("masks"), tmp_path)
    wipes = [threading.Timer(0.1 * i, lab.hub.wipe) for i in range(1, 8)]
    for timer in wipes:
        timer.start()
    lab.dooms[VICTIM] = Doom(50)
    lab.run()
    for timer in wipes:
        timer.cancel()
    assert np.allclose(total_of(lab), TOTAL, atol=1e-6)
    lab.wiretap.check()


def test_the_points_are_where_a_crash_would_matter(tmp_path: Path) -> None:
    lab = Lab(summation("masks", {"dropouts": 1}), tmp_path)
    lab.run()
    for party, doom in lab.dooms.items():
        assert {"append", "sync", "synced", "publish", "post", "ack"} <= set(doom.passed), party
    assert any(head for head in lab.wiretap.digests)
    assert wire.DATA == 1


def test_a_message_whose_bytes_come_again_is_not_a_new_one(tmp_path: Path) -> None:
    """Its place in the inbox outlived the crash, its bytes did not: its sender's copy fills the place."""
    journal = j.Journal(tmp_path, bytes(32), kinds.Header(1, b"", "", "", "", {}), durable=False)
    lane = Incoming((0, 1))
    payload = b"what was lost"
    digest = hashlib.sha256(payload).digest()
    lane.digests.append(digest)
    lane.hollow[1] = lost = Arrival(0, 1, digest, 1, (), hollow=True)
    head = wire.Head(wire.DATA, 0, 1, 1, 0, len(payload), 1, digest)
    assert lane.wants(head)
    assert lane.take(head, payload, journal) == []
    assert (lost.hollow, lost.data, lane.got, lane.hollow) == (False, payload, 1, {})
    assert not lane.wants(head)
    journal.close()
