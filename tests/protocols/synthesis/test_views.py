"""What reaches whom: inboxes tapped, and what the curator opens compared with the rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.synthesis_examples import synthesis
from tests.support.taps import tapped

from atoll.codec import Decoder, Message
from atoll.protocols import protocol_of
from atoll.protocols.synthesis import moments
from atoll.protocols.synthesis.release import SynthesisParameters
from atoll.protocols.synthesis.schema import encode
from atoll.runtime.execute import run_study

PROTOCOLS = ("ppca-synthesis", "marginal-synthesis")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_curator_receives_parts_of_sums_and_owners_the_model(protocol: str) -> None:
    example = synthesis(protocol)
    tap, decoder = tapped(example), Decoder[Message](protocol_of(protocol).all_messages(example.study))
    received: dict[str, set[str]] = {}
    for address in tap.inboxes:
        kinds = {type(decoder.decode(data)).__name__ for _, data in tap.received(address)}
        received[address.role] = received.get(address.role, set()) | kinds
    told = {"Tree"} if protocol == "marginal-synthesis" else set()
    assert received == {
        "curator": {"ShareSum"},
        "owner": {"ShareSeed", "Compared", "SyntheticModel"} | told,
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_opened_differs_from_the_rows_by_the_stated_noise(protocol: str) -> None:
    example = synthesis(protocol, epsilon=1.0, rows=600)
    p = example.study.read_parameters(protocol_of(protocol).parameters)
    assert isinstance(p, SynthesisParameters)
    codes = [encode(island, p.schema, p.bins, p.outside) for island in example.islands.values()]
    plan = moments.Plan(p.sizes, 1.0, 1e-5)
    exact = moments.finish(plan, moments.contribution(plan, np.concatenate(codes)))
    block = exact.owner[:, None] < exact.owner[None, :]
    found = []
    for _ in range(16):  # of one run's few numbers alone nothing could be said
        opened = run_study(example.study, example.own).result["moments"]
        width = opened["second_noise"][exact.owner][:, exact.owner][block]
        off = (opened["second"] * opened["count"] - exact.second * exact.count)[block] / opened["count"]
        found.append(off / width)
        assert opened["count"] != exact.count
    assert np.size(found) > 150
    assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.4


def test_a_single_owners_rows_do_not_show_in_what_it_sends() -> None:
    """One message of an owner is uniform: two runs on the same rows have nothing in common."""
    example = synthesis()
    owner = example.study.who("owner")[0]
    runs = [tapped(example).outboxes[owner] for _ in range(2)]
    curator = example.study.the("curator")
    first, second = ([data for to, data in run if to == curator] for run in runs)
    assert [len(data) for data in first] == [len(data) for data in second]
    for one, other in zip(first, second, strict=True):
        same = np.mean(np.frombuffer(one, np.uint8)[64:] == np.frombuffer(other, np.uint8)[64:])
        assert same < 0.05
