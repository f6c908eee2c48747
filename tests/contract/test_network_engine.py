"""Every protocol, secure sum and later step between parties that share nothing but a hub: the same results,
and journals from which every role can be run again."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.support.examples import EXAMPLES, Example, same
from tests.support.networks import ThreadedParties, kept_by, nats_carriers, pinned, starts_of

from atoll.protocols import protocol_of, resolve
from atoll.protocols.own import Own
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.worker import _expected_rounds
from atoll.runtime.replay import replay

KEPT = {"pppca-shares", "pppca-masks-dropouts", "dpdpca-shares", "dpdpca-lattice"}
AGAIN = {
    name.replace("summation", build)
    for name in EXAMPLES
    if name.startswith("summation")
    for build in ("pppca", "dpdpca")
} - KEPT
"""A hub carries the same messages of a secure sum, whichever protocol adds up: each is tried by itself, and
not a second and a third time."""
LONGER = {"sfpca-standardised", "sfpca-standardised-scores", "sfpca-columns-consumer"}
"""More steps of the same kinds as the other forms of SF-PCA have."""
IN_MEMORY = [name for name in EXAMPLES if name not in AGAIN | LONGER]
OVER_NATS = [
    *("meta", "separate", "privatelocal", "sfpca-scores", "sfpca-later-both", "dpdpca-pairs-replace"),
    *("summation-shares", "summation-masks-dropouts", "summation-paillier", "summation-lattice"),
    *("summation-mix", "sum-mediated-elgamal"),
]


def check(example: Example, engine: ThreadedParties, folder: Path) -> None:
    """Run it, compare it with the local engine where that is exact, and replay each role from its journal."""
    protocol, own = protocol_of(example.study.protocol), example.own
    outcome = engine.run(protocol, example.study, own)
    study = next(iter(engine.starts.values())).study
    assert set(outcome.learned) == set(study.addresses())
    if example.is_exact:
        local = LocalEngine().run(protocol, study, own).learned
        for address, learned in outcome.learned.items():
            assert same(dict(local[address].outputs), dict(learned.outputs)), address
    for party, start in engine.starts.items():
        mine = own.get(party, Own())
        for address, kept in kept_by(start, mine, folder / party).items():
            again, sent = replay(protocol, study, address, mine, kept.drawn, kept.inbox, kept.sendings)
            assert [(to, hashlib.sha256(data).digest()) for to, data in sent] == kept.sendings
            assert same(dict(again.outputs), dict(outcome.learned[address].outputs))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", IN_MEMORY)
def test_over_a_hub_in_memory(name: str, tmp_path: Path) -> None:
    check(EXAMPLES[name](), ThreadedParties(folder=tmp_path), tmp_path)


def test_nothing_is_left_out() -> None:
    """Of protocols and of secure sums with their options."""
    whole, studies = ([EXAMPLES[name]().study for name in names] for names in (EXAMPLES, IN_MEMORY))
    assert {study.protocol for study in studies} == {study.protocol for study in whole}
    sums = [
        {(s.secure_sum, str(s.sum_options)) for s in some if s.protocol == "sum"} for some in (whole, studies)
    ]
    assert sums[0] == sums[1]


def test_a_worker_foresees_every_protocol_from_within_its_loop() -> None:
    """Its progress says how many rounds there are; to count them needs no loop of its own."""
    studies = {example.study.protocol: example.study for example in (make() for make in EXAMPLES.values())}

    async def foreseen() -> dict[str, int]:
        starts = {name: starts_of(pinned(resolve(study))) for name, study in studies.items()}
        return {name: _expected_rounds(next(iter(found.values()))) for name, found in starts.items()}

    rounds = asyncio.run(foreseen())
    assert min(rounds[name] for name in ("sfpca", "pppca", "least-squares-encrypted")) > 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", ["summation-masks-dropouts", "summation-mix", "sfpca-scores", "dpdpca-lattice"]
)
def test_over_a_hub_that_loses_doubles_and_reorders(name: str, tmp_path: Path) -> None:
    hub = MemoryHub(loss=0.1, duplication=0.1, reorder=0.2, seed=5)
    lost: list[bytes] = []

    def lose_one(sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
        """The first frame that holds a message, whatever chance spares: words about messages are shorter."""
        if lost or len(frame) <= 400:
            return frame
        lost.append(frame)
        return None

    hub.alter = lose_one
    engine = ThreadedParties(hub.carrier, folder=tmp_path)
    check(EXAMPLES[name](), engine, tmp_path)
    assert sum(outcome.counts.get("resent", 0) for outcome in engine.outcomes.values()) > 0


@pytest.fixture(scope="module")
def carriers(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    parties = {party.name for name in OVER_NATS for party in EXAMPLES[name]().study.parties}
    with nats_carriers(tmp_path_factory.mktemp("hub"), parties) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OVER_NATS)
def test_over_nats(name: str, tmp_path: Path, carriers) -> None:  # type: ignore[no-untyped-def]
    check(EXAMPLES[name](), ThreadedParties(carriers, folder=tmp_path, durable=True), tmp_path)
