"""Every study of the contract between parties that share nothing but a hub: the same results, and journals
from which every role can be run again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tests.support.examples import EXAMPLES, Example
from tests.support.networks import ThreadedParties, kept_by, nats_carriers

from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.replay import replay

EXACT = ("meta", "separate", "pppca", "summation", "sum")
"""What these compute does not depend on what they draw."""

ONE_OF_EACH = ("meta", "separate", "privatelocal", "sfpca-scores", "sfpca-later-both", "dpdpca-pairs-replace")
UNDER_FAULTS = ("summation-masks-dropouts", "summation-mix", "sfpca-scores", "dpdpca-lattice")
OVER_NATS = [*ONE_OF_EACH, *(name for name in EXAMPLES if name.startswith(("summation", "sum-")))]


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))  # type: ignore[arg-type]


def check(example: Example, engine: ThreadedParties, folder: Path) -> None:
    """Run it, compare it with the local engine where that is exact, and replay each role from its journal."""
    protocol, own = protocol_of(example.study.protocol), example.own
    outcome = engine.run(protocol, example.study, own)
    study = next(iter(engine.starts.values())).study
    assert set(outcome.learned) == set(study.addresses())
    if example.study.protocol in EXACT and "epsilon" not in example.study.parameters:
        local = LocalEngine().run(protocol, study, own).learned
        for address, learned in outcome.learned.items():
            assert same(dict(local[address].outputs), dict(learned.outputs)), address
    for party, start in engine.starts.items():
        mine = own.get(party, Own())
        for address, kept in kept_by(start, mine, folder / party).items():
            again, sent = replay(protocol, study, address, mine, kept.drawn, kept.inbox, kept.sendings)
            assert [(to, hashlib.sha256(data).digest()) for to, data in sent] == kept.sendings
            assert same(dict(again.outputs), dict(outcome.learned[address].outputs))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", EXAMPLES)
def test_over_a_hub_in_memory(name: str, tmp_path: Path) -> None:
    check(EXAMPLES[name](), ThreadedParties(folder=tmp_path), tmp_path)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", ["summation-masks-dropouts", "summation-mix", "sfpca-scores", "dpdpca-lattice"]
)
def test_over_a_hub_that_loses_doubles_and_reorders(name: str, tmp_path: Path) -> None:
    hub = MemoryHub(loss=0.1, duplication=0.1, reorder=0.2, seed=5)
    engine = ThreadedParties(hub.carrier, folder=tmp_path)
    check(EXAMPLES[name](), engine, tmp_path)
    assert sum(outcome.counts.get("resent", 0) for outcome in engine.outcomes.values()) > 0


@pytest.fixture(scope="module")
def carriers(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    parties = {party.name for name in OVER_NATS for party in EXAMPLES[name]().study.parties}
    with nats_carriers(tmp_path_factory.mktemp("hub"), parties) as made:
        yield made


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", OVER_NATS)
def test_over_nats(name: str, tmp_path: Path, carriers) -> None:  # type: ignore[no-untyped-def]
    check(EXAMPLES[name](), ThreadedParties(carriers, folder=tmp_path, durable=True), tmp_path)
