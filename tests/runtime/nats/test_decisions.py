"""What nodes decide and tell each other before a run begins: proposals, approvals, declines, policies.

Nodes are real and in this process; the hub is one in memory that loses, repeats and reorders.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.sites import identities, identity, pinned

from atoll.crypto.identity import Identity, PublicIdentity, revocation
from atoll.errors import AtollError, MessageError, ParameterError, PrivacyError
from atoll.runtime.nats import requests
from atoll.runtime.nats.carrier import CONTROL, Carrier, MemoryHub
from atoll.runtime.nats.control import Control, Known
from atoll.runtime.nats.node import Node, Options
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder, State, every_run, find_run
from atoll.runtime.nats.site import DataSet, Site
from atoll.runtime.nats.starts import Proposal, approve, open_signed, propose, seal, sign
from atoll.study.model import Study

STUDY = pinned(pppca(n_islands=2).study)
KEYS = identities(STUDY)
PUBLIC = {key.fingerprint: key.public for key in KEYS.values()}
SECONDS = 200.0


async def told(carrier: Carrier, fingerprint: str) -> PublicIdentity | None:
    del carrier
    return PUBLIC.get(fingerprint)


class World:
    """Some of the study's parties, each with a node."""

    def __init__(self, folder: Path, hub: MemoryHub | None = None) -> None:
        self.folder = folder
        self.hub = hub or MemoryHub()
        self.nodes: dict[str, Node] = {}
        self.said: list[tuple[str, str]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def site(self, name: str) -> Site:
        made = Site.make(self.folder / name)
        if not made.identity_file.exists():
            KEYS[name].save(made.identity_file)
        return made

    def start(self, name: str, **options: object) -> Node:
        table = self.folder / f"{name}.csv"
        table.write_text("age,dose,weight,stay,outcome\n" + "1,2,3,4,well\n" * 30)
        chosen = Options(
            data_sets={"": DataSet(path=str(table))},
            say=lambda event, _: self.said.append((name, event)),
            lookup=told,
            **options,  # type: ignore[arg-type]
        )
        node = Node(self.site(name), KEYS[name], lambda: self.hub.carrier(KEYS[name].fingerprint), chosen)
        self.nodes[name] = node
        self._tasks.append(asyncio.create_task(node.run()))
        return node

    async def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()
        await asyncio.gather(*self._tasks)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not holds():
                for task in self._tasks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.02)

    async def ask(self, name: str, request: Request) -> requests.Answered:
        token = requests.ask(self.site(name), request)
        found: list[requests.Answered] = []

        def answered() -> bool:
            got = requests.answer_of(self.site(name), token)
            found.extend([got] if got else [])
            return bool(found)

        await self.until(answered)
        return found[0]

    async def submit(self, study: Study = STUDY, by: str = "consumer") -> str:
        answered = await self.ask(by, Request(does="submit", study=study.canonical(), reason="why"))
        assert not answered.error, answered.error
        return answered.run

    def state(self, name: str, run: str) -> State | None:
        folder = RunFolder(self.site(name), run)
        return folder.state() if (folder.path / "state.json").exists() else None

    def phase(self, name: str, run: str) -> str:
        state = self.state(name, run)
        return state.phase if state else ""


@asynccontextmanager
async def world(folder: Path, *names: str, hub: MemoryHub | None = None) -> AsyncIterator[World]:
    made = World(folder, hub)
    try:
        for name in names or KEYS:
            made.start(name)
        yield made
    finally:
        await made.stop()


def test_everybody_hears_of_every_answer_over_a_bad_hub(tmp_path: Path) -> None:
    async def course() -> None:
        bad = MemoryHub(loss=0.3, duplication=0.3, reorder=0.3, seed=4)
        async with world(tmp_path, hub=bad) as here:
            run = await here.submit()
            for name in ("hospital-0", "hospital-1"):
                await here.until(lambda name=name: here.phase(name, run) == "proposed")  # type: ignore[misc]
                assert not (await here.ask(name, Request(does="approve", run=run))).error
            # One party never answers, so that nothing begins.
            others = ("hospital-0", "hospital-1", "consumer")
            await here.until(
                lambda: all(
                    len(RunFolder(here.site(n), run).given(_proposed(here, n, run))) == 3 for n in others
                )
            )
            assert {here.phase(name, run) for name in others} == {"approved"}
            state = here.state("consumer", run)
            assert state is not None
            assert state.silent == ("server",)

    asyncio.run(course())


def test_a_node_whose_hub_is_away_still_answers_its_owner_and_stops(tmp_path: Path) -> None:
    class Away(MemoryHub):
        """Nothing can be handed over, for ever."""

        def carrier(self, fingerprint: str) -> Carrier:
            made = super().carrier(fingerprint)

            async def publish(*_: object) -> None:
                asked.set()
                await asyncio.Event().wait()

            made.publish = publish  # type: ignore[method-assign]
            return made

    asked = asyncio.Event()

    async def course() -> None:
        async with world(tmp_path, "consumer", hub=Away()) as here:
            run = await here.submit()
            await asyncio.wait_for(asked.wait(), SECONDS)
            assert not (await here.ask("consumer", Request(does="cancel", run=run))).error
            assert here.phase("consumer", run) == "cancelled"
            began = time.monotonic()
            await here.stop()
            assert time.monotonic() - began < 60

    asyncio.run(course())


def _proposed(here: World, name: str, run: str):  # type: ignore[no-untyped-def]
    return RunFolder(here.site(name), run).proposed()


def test_an_approval_is_made_once_and_the_first_of_others_counts(tmp_path: Path) -> None:
    site = Site.make(tmp_path / "server")
    KEYS["server"].save(site.identity_file)
    of = propose(KEYS["consumer"], STUDY, "")
    folder, _ = RunFolder.make(site, of, "server", mine=False)
    assert folder.approve(KEYS["server"]).signed == folder.approve(KEYS["server"]).signed
    first, _ = approve(KEYS["hospital-0"], of)
    second, _ = approve(KEYS["hospital-0"], of)
    assert folder.take(first)
    assert not folder.take(second)
    assert folder.given(of)["hospital-0"].signed == first.signed
    folder.erase()
    with pytest.raises(AtollError, match="the key of this run is gone"):
        folder.start(KEYS["server"])


def test_a_proposal_that_comes_again_starts_nothing_new(tmp_path: Path) -> None:
    async def course() -> None:
        async with world(tmp_path, "hospital-0") as here:
            of = propose(KEYS["consumer"], STUDY, "")
            frame = seal(of.signed, KEYS["hospital-0"].public)
            for _ in range(3):
                here.hub.put(KEYS["consumer"].fingerprint, KEYS["hospital-0"].fingerprint, CONTROL, frame)
            await here.until(lambda: here.phase("hospital-0", of.name) == "proposed")
            assert (await here.ask("hospital-0", Request(does="decline", run=of.name))).error == ""
            here.hub.put(KEYS["consumer"].fingerprint, KEYS["hospital-0"].fingerprint, CONTROL, frame)
            await asyncio.sleep(0.5)
            assert here.phase("hospital-0", of.name) == "declined"
            assert (await here.ask("hospital-0", Request(does="approve", run=of.name))).error
            assert len(list(every_run(here.site("hospital-0")))) == 1

    asyncio.run(course())


def test_what_the_policy_refuses_nobody_approves_and_others_are_not_told_why(tmp_path: Path) -> None:
    async def course() -> None:
        made = World(tmp_path)
        site = made.site("hospital-0")
        site.policy_file.write_text("[allow]\nmin_rows = 1000\n")
        try:
            made.start("hospital-0")
            made.start("consumer")
            run = await made.submit()
            await made.until(lambda: made.phase("consumer", run) == "declined")
            state = made.state("consumer", run)
            assert state is not None
            assert state.answers["hospital-0"].words == "policy"
            mine = made.state("hospital-0", run)
            assert mine is not None
            assert mine.refused == ("the table has fewer than 1000 rows",)
            folder = RunFolder(site, run)
            with pytest.raises(PrivacyError, match="refuses it"):
                made.nodes["hospital-0"]._approve(folder, structs.replace(mine, phase="proposed"), None)
        finally:
            await made.stop()

    asyncio.run(course())


def test_a_policy_binds_parties_without_a_table_too(tmp_path: Path) -> None:
    async def course() -> None:
        made = World(tmp_path)
        made.site("server").policy_file.write_text('[allow]\nprotocols = ["sfpca"]\n')
        try:
            made.start("server")
            made.start("consumer")
            run = await made.submit()
            await made.until(lambda: made.phase("server", run) == "declined")
            mine = made.state("server", run)
            assert mine is not None
            folder = RunFolder(made.site("server"), run)
            with pytest.raises(PrivacyError, match="the protocol pppca is not allowed"):
                made.nodes["server"]._approve(folder, structs.replace(mine, phase="proposed"), None)
            assert not (folder.path / "key.bin").exists()
        finally:
            await made.stop()

    asyncio.run(course())


def test_a_digest_is_approved_unattended_once_unless_the_policy_repeats(tmp_path: Path) -> None:
    async def course() -> None:
        made = World(tmp_path)
        made.site("hospital-1").policy_file.write_text(
            f'[approve]\ndigests = ["{STUDY.digest}"]\nrepeat = true\n'
        )
        try:
            made.start("hospital-0", approve=(STUDY.digest,))
            made.start("hospital-1")
            made.start("consumer")
            first, second = await made.submit(), await made.submit()
            await made.until(
                lambda: (
                    made.phase("hospital-0", second) != "" and made.phase("hospital-1", second) == "approved"
                )
            )
            await made.until(lambda: made.phase("hospital-1", first) == "approved")
            phases = sorted(made.phase("hospital-0", run) for run in (first, second))
            assert phases == ["approved", "proposed"]
        finally:
            await made.stop()

    asyncio.run(course())


def test_a_proposal_expires_and_says_who_did_not_answer(tmp_path: Path) -> None:
    async def course() -> None:
        async with world(tmp_path, "consumer", "hospital-0") as here:
            asked = Request(does="submit", study=STUDY.canonical(), lifetime=2)
            run = (await here.ask("consumer", asked)).run
            await here.until(lambda: here.phase("consumer", run) == "expired")
            state = here.state("consumer", run)
            assert state is not None
            assert set(state.missing) == {"hospital-0", "hospital-1", "server"}

    asyncio.run(course())


def test_a_node_that_was_killed_knows_what_it_had_said(tmp_path: Path) -> None:
    async def course() -> None:
        hub = MemoryHub()
        async with world(tmp_path, "consumer", hub=hub) as here:
            run = await here.submit()
            assert (
                len(list(here.site("consumer").outbox.iterdir())) == 6
            )  # to three others, two messages each
        async with world(tmp_path, "consumer", "hospital-0", hub=hub) as here:
            await here.until(lambda: here.phase("hospital-0", run) == "proposed")
            await here.until(lambda: len(list(here.site("consumer").outbox.iterdir())) == 4)

    asyncio.run(course())


def test_a_revoked_key_is_refused(tmp_path: Path) -> None:
    async def course() -> None:
        made = World(tmp_path)
        notice = revocation(KEYS["consumer"], 0).encode()
        (made.site("hospital-0").notices / "revoked-consumer.notice").write_bytes(notice)
        try:
            made.start("hospital-0")
            made.start("hospital-1")
            made.start("consumer")
            run = await made.submit()
            await made.until(lambda: made.phase("hospital-1", run) == "proposed")
            await asyncio.sleep(1.0)
            assert made.phase("hospital-0", run) == ""
        finally:
            await made.stop()

    asyncio.run(course())


def test_a_key_that_the_hub_makes_up_is_not_used(tmp_path: Path) -> None:
    hub_key = identity("the hub")

    async def lying(fingerprint: str) -> PublicIdentity | None:
        return hub_key.public

    async def course() -> None:
        site = Site.make(tmp_path / "consumer")
        hub = MemoryHub()
        carrier = hub.carrier(KEYS["consumer"].fingerprint)
        await carrier.connect()
        known = Known(site, lying)
        control = Control(site, KEYS["consumer"], carrier, known)
        of = propose(KEYS["consumer"], STUDY, "")
        control.send(KEYS["server"].fingerprint, of.signed, 1e12)
        await control.resend()
        assert hub.kept(KEYS["server"].fingerprint) == 0
        assert await known.of(KEYS["server"].fingerprint) is None
        await carrier.close()

    asyncio.run(course())


def test_strangers_and_junk_are_counted_and_dropped(tmp_path: Path) -> None:
    async def course() -> None:
        async with world(tmp_path, "hospital-0") as here:
            me, stranger = KEYS["hospital-0"], Identity.new()
            of = propose(KEYS["consumer"], STUDY, "")
            late = structs.replace(of.proposal, expires=of.proposal.made - 1)
            bad = (
                b"",
                b"junk" * 100,
                seal(b"not signed", me.public),
                seal(sign(stranger, of.proposal), me.public),
                seal(sign(KEYS["consumer"], late), me.public),
                seal(of.signed, stranger.public),
            )
            await here.nodes["hospital-0"].connected.wait()
            for frame in bad:
                here.hub.put(stranger.fingerprint, me.fingerprint, CONTROL, frame)
            control = here.nodes["hospital-0"]._control
            await here.until(lambda: control.refused == len(bad))
            assert list(every_run(here.site("hospital-0"))) == []
            assert here.hub.kept(me.fingerprint) == 0

    asyncio.run(course())


def test_what_others_write_does_not_reach_the_terminal_as_commands(tmp_path: Path) -> None:
    from atoll.cli.node import review_text

    site = Site.make(tmp_path / "server")
    KEYS["server"].save(site.identity_file)
    nasty = pinned(structs.replace(pppca(n_islands=2).study, name="icu\x1b[2J\x07 [red]x[/]"))
    of = propose(KEYS["consumer"], nasty, "because\x1b]0;title\x07\r\nit is")
    folder, state = RunFolder.make(site, of, "server", mine=False)
    text = review_text(site, of, state)
    assert "because" in text
    for shown in (text.replace("\n", ""), state.study, state.reason, folder.state().study):
        assert shown.isprintable()
    assert "[red]x" in text


def test_runs_are_found_by_their_first_digits(tmp_path: Path) -> None:
    site = Site.make(tmp_path / "server")
    of = propose(KEYS["consumer"], STUDY, "")
    RunFolder.make(site, of, "server", mine=False)
    assert find_run(site, of.name[:4])[0].name == find_run(site, "last")[0].name == of.name
    for wrong in ("", "zzz"):
        with pytest.raises(ParameterError, match="with"):
            find_run(site, wrong)
    assert isinstance(open_signed(of.signed).message, Proposal)
    with pytest.raises(MessageError):
        open_signed(b"")
