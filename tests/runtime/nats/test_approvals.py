"""What a site's owner decides, and when: of the chosen table, of a run that still waits, of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.sites import identities, pinned

from atoll.errors import ParameterError, PrivacyError, RunError
from atoll.runtime.nats import runs
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.node import Node, Options
from atoll.runtime.nats.runs import RunFolder, State
from atoll.runtime.nats.site import DataSet, Site
from atoll.runtime.nats.starts import Proposed, propose

STUDY = pinned(pppca(n_islands=2).study)
KEYS = identities(STUDY)
ME = "hospital-0"


class Told:
    """Stands for what sends control messages: to whom, and what."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, to: str, signed: bytes, until: float) -> None:
        self.sent.append(to)

    def drop(self, about: Any) -> None:
        """Nothing waits here."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site.make(tmp_path / "site")
    KEYS[ME].save(made.identity_file)
    return made


def node_of(site: Site) -> tuple[Node, Told]:
    """A node with a small table and a large one, which sends to nobody."""
    tables = {}
    for name, rows in (("small", 30), ("large", 60)):
        path = site.folder.parent / f"{name}.csv"
        path.write_text("age,dose,weight,stay,outcome\n" + "1,2,3,4,well\n" * rows)
        tables[name] = DataSet(path=str(path))
    node = Node(site, KEYS[ME], lambda: MemoryHub().carrier(KEYS[ME].fingerprint), Options(data_sets=tables))
    told = Told()
    node._control = told  # type: ignore[assignment]
    return node, told


def proposed(site: Site, by: str = "consumer") -> tuple[Proposed, RunFolder, State]:
    of = propose(KEYS[by], STUDY, "")
    return of, *RunFolder.make(site, of, ME, mine=by == ME)


def test_the_policy_is_asked_again_of_the_table_that_is_chosen(site: Site) -> None:
    """Of two tables nobody could say, when the study came, which it would be."""
    site.policy_file.write_text("[allow]\nmin_rows = 50\n")
    node, told = node_of(site)
    of, folder, state = proposed(site)
    node._judge(folder, state, of)
    assert state.refused == ()
    with pytest.raises(PrivacyError, match="the table has fewer than 50 rows"):
        node._approve(folder, state, "small")
    assert folder.state().phase == runs.PROPOSED
    assert not (folder.path / "key.bin").exists()
    assert told.sent == []
    node._approve(folder, state, "large")
    assert (folder.state().phase, folder.state().data_set) == (runs.APPROVED, "large")
    assert set(told.sent) == {key.fingerprint for name, key in KEYS.items() if name != ME}


def test_a_table_is_chosen_before_anything_is_approved(site: Site) -> None:
    node, told = node_of(site)
    _, folder, state = proposed(site)
    for data_set, words in ((None, "several data sets"), ("other", "no data set 'other'")):
        with pytest.raises(ParameterError, match=words):
            node._approve(folder, state, data_set)
    assert (folder.state().phase, told.sent) == (runs.PROPOSED, [])


@pytest.mark.parametrize("phase", [runs.APPROVED, runs.RUNNING, runs.DECLINED, runs.EXPIRED, runs.FINISHED])
def test_only_a_run_that_waits_is_approved_or_declined(phase: str, site: Site) -> None:
    node, told = node_of(site)
    _, folder, state = proposed(site)
    state.phase = phase
    folder.save(state)
    with pytest.raises(ParameterError, match="only a proposed run is approved"):
        node._approve(folder, state, "large")
    with pytest.raises(ParameterError, match="only a proposed run is declined"):
        node._decline(folder, state, "owner", "")
    assert (folder.state().phase, told.sent) == (phase, [])


def test_whoever_submitted_a_run_cancels_it_and_nobody_else(site: Site) -> None:
    node, told = node_of(site)
    _, folder, state = proposed(site)
    with pytest.raises(ParameterError, match="was submitted elsewhere"):
        node._cancel(folder, state)
    _, mine, state = proposed(site, by=ME)
    node._cancel(mine, state)
    assert mine.state().phase == runs.CANCELLED
    others = len(told.sent)
    assert others == len(KEYS) - 1
    with pytest.raises(ParameterError, match="is cancelled already"):
        node._cancel(mine, state)
    assert len(told.sent) == others


def test_two_proposals_of_one_name_are_not_taken_for_each_other(site: Site) -> None:
    """A name is the beginning of an id: what was approved would be approved of another study."""
    of, folder, _ = proposed(site)
    other = replace(of, id=of.id[:-1] + bytes([of.id[-1] ^ 1]))
    assert other.name == of.name
    with pytest.raises(RunError, match="two proposals begin with"):
        RunFolder.make(site, other, ME, mine=False)
    assert folder.proposed().id == of.id


def test_a_proposal_that_was_judged_is_not_judged_again(site: Site) -> None:
    """The second time would spend what was approved beforehand once more, or overrule its owner."""
    node, _ = node_of(site)
    of, folder, state = proposed(site)
    node._judge(folder, state, of)
    assert folder.review.exists()
    state.phase = runs.DECLINED
    folder.save(state)
    again, known = RunFolder.make(site, of, ME, mine=False)
    assert (again.path, known) == (folder.path, structs.replace(state))
