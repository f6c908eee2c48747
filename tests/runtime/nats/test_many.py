"""Runs of many parties: few greetings, a chair that hears all, approvals that the submitter collects.

``many`` makes seven parties many, so that what is meant for hundreds is tried in seconds.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.support.crashes import (
    FAST,
    LOSSES,
    Crash,
    Doom,
    Lab,
    crash_at,
    only_the_dead_are_silent,
    watch_disks,
)
from tests.support.examples import Example, summation
from tests.support.networks import QUICK, ThreadedParties
from tests.support.sites import identities, pinned

from atoll.codec import encode
from atoll.errors import AtollError, MessageError, PartyLeft, ResumeRefused
from atoll.protocols import protocol_of
from atoll.runtime import entries
from atoll.runtime import journal as j
from atoll.runtime.nats import bundles, circle, wire
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.circle import beat_of, circle_of
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.nats.site import Site
from atoll.runtime.nats.starts import Approvals, approve, begin, open_signed, propose, sign

VICTIM = "island-3"


@pytest.fixture(autouse=True)
def disks() -> Iterator[None]:
    ends = watch_disks(), only_the_dead_are_silent()
    yield
    for end in ends:
        end()


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (circle, bundles):
        monkeypatch.setattr(module, "ALL_UP_TO", 6)


def wanted(example: Example) -> np.ndarray:
    return np.sum([i.features(i.columns)[0] for i in example.islands.values()], axis=0)


def total_of(lab: Lab) -> np.ndarray:
    learned = [one for outcome in lab.outcomes.values() for one in outcome.learned.values()]
    return np.asarray(next(one.outputs["total"] for one in learned if "total" in one.outputs))


def test_circles_are_small_and_mutual() -> None:
    assert circle_of(3, 32, 0).near == tuple(i for i in range(32) if i != 3)
    assert circle_of(3, 32, 0).whole
    assert circle_of(30, 500, 7) == ((7, 28, 29, 31, 32), 7, False, False)
    assert circle_of(499, 500, 7).near == (0, 1, 7, 497, 498)
    assert len(circle_of(7, 500, 7).near) == 499
    everybody = [set(circle_of(me, 100, 7).near) for me in range(100)]
    assert all(me in everybody[other] for me in range(100) for other in everybody[me])
    assert (beat_of(2, 600, 50), beat_of(2, 600, 500), beat_of(2, 30, 500)) == (2, 10, 7.5)


@pytest.mark.timeout(300)
def test_forty_parties_on_a_sparse_graph() -> None:
    """Exact, and nothing moves between parties that are neither neighbours nor in one circle."""
    example, hub = summation("masks", {"graph": "sparse", "colluders": 4}, 40), MemoryHub()
    pairs: set[tuple[str, str]] = set()
    hub.alter = lambda sender, to, _, frame: pairs.add((sender, to)) or frame  # type: ignore[func-returns-value]
    outcome = ThreadedParties(hub.carrier, timing=QUICK).run(protocol_of("sum"), example.study, example.own)
    total = next(one.outputs["total"] for one in outcome.learned.values() if one.outputs)
    np.testing.assert_allclose(total, wanted(example), rtol=1e-12)
    # Six neighbours, four beside, the receiver, oneself; both ways for the receiver.
    assert len(pairs) <= 40 * (6 + 4 + 1 + 1) + 41
    assert len(pairs) < 41 * 40 / 2


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("options", [{}, {"dropouts": 1}], ids=["masks", "dropouts"])
def test_a_crash_changes_nothing(options: dict[str, int], tmp_path: Path) -> None:
    example = summation("masks", options, 7)
    for number, (party, point) in enumerate(((VICTIM, 4), (VICTIM, 40), ("receiver", 60))):
        loss = list(LOSSES.values())[number]
        lab = crash_at(example, tmp_path / str(number), party, point, loss)
        assert lab.crashes[party] == 1
        assert lab.outcomes[party].starts == 2
        assert not any(outcome.unconfirmed for outcome in lab.outcomes.values())
        np.testing.assert_allclose(total_of(lab), wanted(example), rtol=1e-12)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
def test_an_old_journal_is_refused_also_where_few_were_greeted(tmp_path: Path) -> None:
    """From nothing (a first start, to all appearances) to all but the last entry, before anything leaves."""
    lab = Lab(summation("masks", {"dropouts": 1}, 9), tmp_path)
    lab.deadline = 120.0
    crashed, go_on = threading.Event(), threading.Event()

    def victim() -> None:
        with pytest.raises(Crash):
            # Late: a journal is old only if something left or was acknowledged since.
            lab.party(VICTIM, Doom(16, "publish"))
        crashed.set()
        go_on.wait()
        lab.outcomes[VICTIM] = lab.party(VICTIM, Doom())

    def other(party: str) -> None:
        lab.outcomes[party] = lab.party(party, Doom())

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        running = [threads.submit(other, party) for party in lab.starts if party != VICTIM]
        running.append(threads.submit(victim))
        try:
            assert crashed.wait(100)
            time.sleep(3 * FAST.ask)
            refuse_older(lab, tmp_path)
        finally:
            go_on.set()
        for one in running:
            one.result()
    np.testing.assert_allclose(total_of(lab), wanted(summation("masks", {}, 9)), rtol=1e-12)
    lab.wiretap.check()


def refuse_older(lab: Lab, tmp_path: Path) -> None:
    whole = (tmp_path / VICTIM / "small").read_bytes()
    ends = [end for end, _, _ in j._whole(whole)]
    role = next(p for p, a in enumerate(lab.starts[VICTIM].study.addresses()) if a.party == VICTIM)
    assert lab.wiretap.by_role[role] > 8
    for size in (None, 16, ends[len(ends) // 4], ends[len(ends) // 2]):
        old = tmp_path / "old"
        if size is not None:
            shutil.copytree(tmp_path / VICTIM, old)
            (old / "small").write_bytes(whole[:size])
        before = lab.wiretap.by_role[role]
        with pytest.raises(ResumeRefused, match="the journal is an old one"):
            lab.party(VICTIM, Doom(), old)
        assert lab.wiretap.by_role[role] == before
        shutil.rmtree(old)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
def test_an_old_journal_is_refused_by_one_that_was_never_greeted(tmp_path: Path) -> None:
    """Only the last neighbour has more than the journal says: whoever starts again asks everybody."""
    example = summation("masks", {}, 9)
    lab, doom, silence = Lab(example, tmp_path), Doom(), Silence(VICTIM)
    lab.deadline = 120.0
    role = next(p for p, a in enumerate(lab.starts[VICTIM].study.addresses()) if a.party == VICTIM)
    assert 8 not in circle_of(3, 10, 9).near
    silence.begin(lab)

    def one(party: str) -> None:
        lab.outcomes[party] = lab.party(party, Doom())

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        running = [threads.submit(one, party) for party in lab.starts if party != VICTIM]
        first = threads.submit(lab.party, VICTIM, doom)
        while lab.wiretap.by_role[role] < 8:  # a key to each neighbour; none of theirs comes
            time.sleep(0.01)
        doom.at = 0  # at its next sign of life
        try:
            with pytest.raises(Crash):
                first.result()
            refuse_without_the_last_message(lab, tmp_path)
        finally:  # whatever was found: the others wait for it
            silence.over.set()
            running.append(threads.submit(one, VICTIM))
        for future in running:
            future.result()
    np.testing.assert_allclose(total_of(lab), wanted(example), rtol=1e-12)
    lab.wiretap.check()


class Silence:
    """No message reaches a party until it is over. So all that its journal has is what it sent."""

    def __init__(self, party: str) -> None:
        self.party = party
        self.over = threading.Event()

    def begin(self, lab: Lab) -> None:
        victim, tap, opener = lab.starts[self.party].fingerprint(self.party), lab.wiretap, lab.wiretap.opener

        def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
            frame = tap(sender, to, topic, frame)
            opened = opener(to, frame) if to == victim and not self.over.is_set() else None
            return None if opened is not None and opened[0].kind == wire.DATA else frame

        lab.hub.alter = alter


def refuse_without_the_last_message(lab: Lab, tmp_path: Path) -> None:
    whole = (tmp_path / VICTIM / "small").read_bytes()
    before = last_sent(lab, tmp_path, whole)
    shutil.copytree(tmp_path / VICTIM, tmp_path / "old")
    (tmp_path / "old" / "small").write_bytes(whole[:before])
    with pytest.raises(ResumeRefused, match="old one: island-8 has messages that this journal"):
        lab.party(VICTIM, Doom(), tmp_path / "old")


def last_sent(lab: Lab, tmp_path: Path, whole: bytes) -> int:
    """Where the journal ends, if its last message was not yet sent."""
    start, own = lab.starts[VICTIM], lab.own[VICTIM]
    shutil.copytree(tmp_path / VICTIM, tmp_path / "looked-at")
    journal = j.Journal(tmp_path / "looked-at", start.journal_key, header_of(start, own), durable=False)
    journal.close()
    ends = [end for end, _, _ in j._whole(whole)]
    last = max(i for i, entry in enumerate(journal.entries) if isinstance(entry, entries.Sent))
    assert start.study.addresses()[journal.entries[last].to].party == "island-8"  # type: ignore[union-attr]
    # Entries of headers and starts stand before those of the roles.
    return ends[len(ends) - len(journal.entries) + last - 1]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("silent", ["island-5", "receiver"])
def test_everybody_is_told_who_is_missing(silent: str, tmp_path: Path) -> None:
    """Also those who never exchange a word with whoever is missing."""
    lab, errors = Lab(summation("masks", {}, 9), tmp_path), {}
    lab.deadline = 1.5

    def one(party: str) -> None:
        try:
            lab.party(party, Doom())
        except AtollError as error:
            errors[party] = error

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        lab.bury(silent)
        list(threads.map(one, [party for party in lab.starts if party != silent]))
    assert set(errors) == set(lab.starts) - {silent}
    assert all(isinstance(error, PartyLeft) and error.missing == (silent,) for error in errors.values())


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
def test_a_sum_goes_on_without_one_and_all_name_it(tmp_path: Path) -> None:
    example = summation("masks", {"dropouts": 1}, 9)
    lab = Lab(example, tmp_path)
    lab.deadline = 1.5

    def one(party: str) -> None:
        try:
            lab.outcomes[party] = lab.party(party, Doom(60 if party == VICTIM else None))
        except Crash:
            return

    with ThreadPoolExecutor(len(lab.starts)) as threads:
        list(threads.map(one, lab.starts))
    assert set(lab.outcomes) == set(lab.starts) - {VICTIM}
    assert {outcome.missing for outcome in lab.outcomes.values()} == {(VICTIM,)}
    all_of, without = wanted(example), example.islands[VICTIM].features(example.islands[VICTIM].columns)[0]
    got = total_of(lab)
    assert np.allclose(got, all_of) or np.allclose(got, all_of - without)


# ---- approvals ----

STUDY = pinned(summation("masks", {}, 7).study)
KEYS = identities(STUDY)


def test_collected_approvals_are_checked_one_by_one(tmp_path: Path) -> None:
    of = propose(KEYS["receiver"], STUDY, "")
    given = {name: approve(key, of) for name, key in KEYS.items()}
    approvals = {name: one for name, (one, _) in given.items()}
    bundle = bundles.collected(KEYS["receiver"], of, approvals)
    found = bundles.read_collected(of, open_signed(bundle))
    assert [one.signed for one in found] == [approvals[party.name].signed for party in STUDY.parties]
    site = Site.make(tmp_path)
    KEYS[VICTIM].save(site.identity_file)
    folder, _ = RunFolder.make(site, of, VICTIM, mine=False)
    folder.approve(KEYS[VICTIM])
    for one in found:
        folder.take(one)
    assert not folder.is_approved_by_all() or folder.given(of)[VICTIM].signed != approvals[VICTIM].signed
    starts = {name: begin(KEYS[name], of, approvals, private) for name, (_, private) in given.items()}
    assert len({start.run_id for start in starts.values()}) == 1
    forged = Approvals(of.id, "receiver", tuple(one.signed[:-1] + b"x" for one in found))
    with pytest.raises(MessageError):
        bundles.read_collected(of, open_signed(sign(KEYS["receiver"], forged)))
    other = propose(KEYS["receiver"], STUDY, "another")
    with pytest.raises(MessageError, match="belongs to another proposal"):
        bundles.read_collected(other, open_signed(bundle))
    by_another = sign(KEYS[VICTIM], Approvals(of.id, VICTIM, tuple(one.signed for one in found)))
    with pytest.raises(MessageError, match="only a run's submitter collects"):
        bundles.read_collected(of, open_signed(by_another))
    assert len(encode(open_signed(bundle).message)) < 500 * len(KEYS)  # so 500 parties fit into a frame


@pytest.mark.usefixtures("many")
def test_many_answer_the_submitter_alone(tmp_path: Path) -> None:
    of = propose(KEYS["receiver"], STUDY, "")
    _, state = RunFolder.make(Site.make(tmp_path / "a"), of, VICTIM, mine=False)
    assert bundles.listeners(state) == [KEYS["receiver"].fingerprint]
    _, mine = RunFolder.make(Site.make(tmp_path / "b"), of, "receiver", mine=True)
    assert len(bundles.listeners(mine)) == 7
