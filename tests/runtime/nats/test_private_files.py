"""Whatever a site, a run or a hub writes is its owner's alone, whatever the umask: whoever comes first on a
shared machine could else read approvals, journals and keys, or put others in their place."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.nats.test_receipts import KEYS, NORTH, STARTS, STUDY, written

from atoll.protocols.own import Own
from atoll.runtime.journal import Journal, erase
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats import kept, requests
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.control import Control, Known
from atoll.runtime.nats.hub_config import HubSettings
from atoll.runtime.nats.node import Node, Options
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import End, RunFolder
from atoll.runtime.nats.site import DataSet, HubAddress, Site
from atoll.runtime.nats.starts import propose
from atoll.runtime.nats.worker import log_to


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """An umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """Everything below that is not its owner's alone, with its mode."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600) and path.name not in but:
            found[str(path.relative_to(folder))] = oct(mode)
    return found


def test_of_a_site_and_its_runs(tmp_path: Path) -> None:
    me = NORTH.party
    site = Site.make(tmp_path / "site")
    KEYS[me].save(site.identity_file)
    site.set_hub(HubAddress("tls://hub.example:4222"))
    site.set_partner("server", KEYS["server"].fingerprint)
    requests.ask(site, Request(does="approve", run="abc"))
    requests.answer(site, "one", requests.Answered(run="abc"))
    kept.keep(site.kept, KEYS[me].public, "abc", "provider", b"a share")
    carrier = MemoryHub().carrier(KEYS[me].fingerprint)
    control = Control(site, KEYS[me], carrier, Known(site))
    Known(site).learn(KEYS["server"].public)
    of = propose(KEYS["consumer"], STUDY, "")
    control.send(KEYS["server"].fingerprint, of.signed, of.proposal.expires)
    folder, state = RunFolder.make(site, of, me, mine=False)
    node = Node(site, KEYS[me], lambda: carrier, Options(data_sets={"": DataSet(path="table.csv")}))
    node._review(folder, state, of)
    folder.approve(KEYS[me])
    folder.set_end(End("finished"))
    Journal(folder.journal, STARTS[me].journal_key, header_of(STARTS[me], Own())).close()
    written(folder.path / "receipt")
    with site.locked():
        assert open_to_others(site.folder) == {}
    assert {path.name for path in folder.path.iterdir()} >= {
        "journal",
        "key.bin",
        "proposal.bin",
        "review.txt",
    }
    erase(folder.journal, b"ended")
    assert open_to_others(site.folder) == {}


def test_of_a_hub(tmp_path: Path) -> None:
    folder = tmp_path / "hub"
    folder.mkdir(mode=0o777)  # somebody made it before
    hub = hubs.make(folder, HubSettings(name="hub.example", web_port=443))
    hubs.invite(hub, "north")
    hubs.add_party(hub, "south", KEYS["server"].public, hubs.Login.of(KEYS["server"]).public)
    hubs.renew(hub, always=True)
    assert open_to_others(folder) == {}
    assert {path.name for path in folder.iterdir()} >= {"agent.key", "ca.key", "server.key", "accounts.conf"}
    fresh = tmp_path / "none" / "yet"
    hubs.make(fresh, HubSettings(name="hub.example"))
    assert open_to_others(fresh) == {}


def test_of_a_given_certificate(tmp_path: Path) -> None:
    """A key that its giver lets others read is not copied as it is."""
    own = hubs.certificates.new_authority("given")
    for name, data in (("given.pem", own.certificate), ("given.key", own.key)):
        (tmp_path / name).write_bytes(data)
    settings = HubSettings(
        name="hub.example", certificate=str(tmp_path / "given.pem"), key=str(tmp_path / "given.key")
    )
    hub = hubs.make(tmp_path / "hub", settings)
    assert hub.path("server.key").read_bytes() == own.key
    assert open_to_others(hub.folder) == {}


def test_of_a_log_which_names_errors_and_quotes_nothing_of_them(tmp_path: Path) -> None:
    """A traceback may hold a row of the table in the words of its error."""
    logger = logging.getLogger("atoll")
    before = logger.level
    handler = log_to(tmp_path / "worker.log")
    try:
        raise ValueError("age 91 of ann")
    except ValueError as error:
        logging.getLogger("atoll.worker").error("unexpected", exc_info=error)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()
    assert stat.S_IMODE((tmp_path / "worker.log").stat().st_mode) == 0o600
    (line,) = (tmp_path / "worker.log").read_text().splitlines()
    told = json.loads(line)
    assert (told["says"], told["error"], told["level"]) == ("unexpected", "ValueError", "error")
    assert set(told) == {"at", "level", "from", "says", "process", "error"}
    assert "ann" not in line
