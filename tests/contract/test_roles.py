"""What every protocol must keep: replay, views, faults. New ones join in tests/support/examples.py."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, frames, pppca
from tests.support.streams import streams
from tests.support.taps import Tap, resumed, tapped

import atoll
from atoll.codec import Decoder, Message
from atoll.data.island import Island, as_islands
from atoll.errors import AtollError, Deadlock, RoleFailed, RunError, StudyError
from atoll.protocols import PROTOCOLS, protocol_of
from atoll.protocols.base import Circumstances, Protocol, with_helpers
from atoll.protocols.own import Own
from atoll.runtime.engine import Outcome
from atoll.runtime.execute import run_study
from atoll.runtime.inbox import Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.local.links import FaultyLink, Frame
from atoll.runtime.replay import replay
from atoll.study.address import Address
from atoll.study.model import Party


def test_every_protocol_has_an_example() -> None:
    assert {build().study.protocol for build in EXAMPLES.values()} == set(PROTOCOLS)


class Ran(NamedTuple):
    """One run of an example, which several tests look at."""

    example: Example
    protocol: Protocol
    tap: Tap
    outcome: Outcome


@pytest.fixture(scope="module", params=list(EXAMPLES))
def ran(request: pytest.FixtureRequest) -> Ran:
    example, tap = EXAMPLES[request.param](), Tap()
    protocol = protocol_of(example.study.protocol)
    protocol = protocol.prepare(protocol, example.study)
    outcome = LocalEngine().run(protocol, example.study, example.own, observer=tap)
    return Ran(example, protocol, tap, outcome)


def test_a_role_run_again_from_its_record_sends_the_same_bytes(ran: Ran) -> None:
    study, tap = ran.example.study, ran.tap
    assert set(tap.records) == set(study.addresses())
    for address, record in tap.records.items():
        own = ran.example.own.get(address.party, Own())
        with streams() as stretched:
            _, sent = replay(ran.protocol, study, address, own, record.drawn, tap.inboxes[address])
        assert sent == tap.outboxes[address]
        # Two texts under one stream would show their difference, two values one noise.
        assert stretched.twice == set()


def test_a_role_without_its_record_cannot_be_replayed_or_sends_other_bytes(ran: Ran) -> None:
    if not ran.protocol.uses_sum:
        pytest.skip("draws nothing")
    address = next(a for a, record in ran.tap.records.items() if record.drawn)
    own = ran.example.own.get(address.party, Own())
    with pytest.raises(RunError, match="holds no draw"):
        replay(ran.protocol, ran.example.study, address, own, {}, ran.tap.inboxes[address])


def test_a_role_receives_only_what_the_study_says(ran: Ran) -> None:
    study = ran.example.study
    protocol = with_helpers(ran.protocol, study)
    decoder = Decoder[Message](protocol.all_messages(study))
    allowed: dict[str, set[type]] = defaultdict(set)
    for disclosure in protocol.learns(study):
        allowed[disclosure.role] |= set(disclosure.messages)
    received: dict[str, set[type]] = defaultdict(set)
    for address in list(ran.tap.inboxes):
        received[address.role] |= {type(decoder.decode(data)) for _, data in ran.tap.received(address)}
    for role, kinds in received.items():
        assert kinds <= allowed[role], role
        # And nothing is announced that does not come: an announcement that is too wide hides a leak.
        assert allowed[role] <= kinds, role


def test_nobody_learns_an_output_that_is_not_released_to_it(ran: Ran) -> None:
    for address, learned in ran.outcome.learned.items():
        released = {
            value
            for output, o in ran.protocol.outputs.items()
            if ran.example.study.releases(output, address)
            for value in o.values
        }
        # The statement of the noise comes along with variances where there is noise.
        assert released - {"noise"} <= set(learned.outputs) <= released


def test_messages_and_rounds_are_those_that_review_predicts(ran: Ran) -> None:
    study, protocol, transcript = ran.example.study, ran.protocol, ran.outcome.transcript
    if protocol.expect is None:
        pytest.skip("predicts nothing")
    five = protocol.name in ("sum", "sfpca-paper")
    n_columns = 5 if five else len(study.parameters.get("columns") or range(4))
    expected = protocol.expect(study, n_columns)
    if protocol.forecast is not None:  # where rows matter too
        rows = tuple(island.n_rows for island in ran.example.islands.values())
        expected, _ = protocol.forecast(study, Circumstances(n_columns, rows))
    elif protocol.counted is not None:
        rows = tuple(island.n_rows for island in ran.example.islands.values())
        expected = protocol.counted(study, Circumstances(n_columns, rows), 0)
    if protocol.further is not None:  # the number of steps is the fit's own
        step = protocol.further(study, n_columns)
        more = (transcript.messages - expected.messages) // step.messages
        expected = expected._replace(
            messages=expected.messages + more * step.messages, rounds=expected.rounds + more * step.rounds
        )
    assert transcript.messages == expected.messages
    assert transcript.rounds == expected.rounds
    if "least-squares-encrypted" in protocol.name:  # tests/review has the bytes of other studies
        assert expected.bytes_total == pytest.approx(transcript.bytes, rel=0.05)


def test_providers_receive_shares_mean_n_and_t_and_the_server_only_sums_of_shares() -> None:
    example = pppca()
    study = structs.replace(example.study, release={"components": ("provider",), "scores": ("consumer",)})
    decoder = Decoder[Message](protocol_of("pppca").all_messages(study))
    tap = tapped(Example(study, example.islands))
    received: dict[str, set[str]] = defaultdict(set)
    for address in tap.inboxes:
        received[address.role] |= {type(decoder.decode(data)).__name__ for _, data in tap.received(address)}
    assert received == {
        "provider": {"AgreedColumns", "Compared", "ShareSeed", "JointMean", "Transfer"},
        "server": {"Columns", "ShareSum"},
        "consumer": {"Projection"},
    }


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))  # type: ignore[arg-type]


KEPT_SEEDS: tuple[int, ...] = ()
"""Schedules that once found a bug are named here, so that they are run for ever."""


@pytest.mark.parametrize("block", range(10))
def test_drops_duplicates_and_reorderings_change_nothing(block: int) -> None:
    sums = ["shares", "masks", "shares", "masks", "mix"]
    examples = {name: pppca(name) for name in sums}
    calm = {name: run_study(one.study, one.own).result.outputs for name, one in examples.items()}
    for seed in (*range(40 * block, 40 * (block + 1)), *(KEPT_SEEDS if block == 0 else ())):
        example = examples[sums[seed % 5]]
        faults = Faults(seed=seed, drop=0.15, duplicate=0.2, reorder=0.3, late_by=0.0005, resend_after=0.001)
        stormy = run_study(example.study, example.own, engine=LocalEngine(faults=faults)).result.outputs
        assert same(calm[sums[seed % 5]], stormy), seed


def test_a_faulty_link_loses_frames_and_mends_it() -> None:
    me = Address("a", "provider")
    frames, arrived = [Frame(Received(me, bytes([i])), 1) for i in range(100)], []
    faults = Faults(seed=5, drop=0.3, duplicate=0.3, reorder=0.5, late_by=0.0005, resend_after=0.001)
    transmissions = 0

    class Counting(FaultyLink):
        def _transmit(self, number: int, frame: Frame) -> None:
            nonlocal transmissions
            transmissions += 1
            super()._transmit(number, frame)

    async def talk() -> None:
        link = Counting(0.0, None, arrived.append, faults, faults.generator())
        for frame in frames:
            link.send(frame)
        while len(arrived) < len(frames):
            await asyncio.sleep(0.001)
        link.close()

    asyncio.run(asyncio.wait_for(talk(), 10))
    assert arrived == frames
    assert transmissions > 1.3 * len(frames)


def test_one_roles_exception_ends_the_others_and_names_it() -> None:
    example = pppca()
    broken = example.own | {"hospital-1": Own(object())}  # type: ignore[arg-type]
    with pytest.raises(RoleFailed, match="hospital-1/provider failed") as caught:
        run_study(example.study, broken)
    assert caught.value.role == "hospital-1/provider"


def test_atolls_own_errors_keep_their_type_and_carry_the_role() -> None:
    example = pppca()
    bad = example.islands["hospital-2"]
    bad._table.frame.iloc[-1, 1] = np.nan  # type: ignore[union-attr]
    with pytest.raises(
        AtollError, match=r"hospital-2: column 'dose' holds a missing value \(NaN\) at row 12"
    ) as e:
        run_study(example.study, example.own)
    assert e.value.role == "hospital-2/provider"


@pytest.mark.timeout(60)
def test_a_deadlock_is_found_at_once_and_says_who_waits_for_what() -> None:
    example = pppca()
    protocol = protocol_of("pppca")

    async def silent(net, study, own, record):  # type: ignore[no-untyped-def]
        return None

    mute = replace(protocol, roles={**protocol.roles, "server": silent})
    with pytest.raises(Deadlock, match="hospital-0/provider waits for AgreedColumns from server/server"):
        LocalEngine().run(mute, example.study, example.own)


def test_latency_is_felt_once_per_round() -> None:
    example = pppca()
    transcript = run_study(example.study, example.own, engine=LocalEngine(latency=0.01)).result.transcript
    assert 0.01 * transcript.rounds <= transcript.wall_seconds < 0.01 * transcript.rounds + 1.0


def test_bandwidth_slows_large_messages() -> None:
    example = pppca()
    fast = run_study(example.study, example.own).result.transcript
    per_link = max(cost.bytes_sent for cost in fast.roles.values()) / 4
    slow = run_study(example.study, example.own, engine=LocalEngine(bandwidth=per_link / 0.2))
    assert slow.result.transcript.wall_seconds > 0.1


@pytest.mark.parametrize("cores", [1, 3])
def test_a_large_table_gives_the_same_bytes_on_any_number_of_cores(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    example = pppca()
    islands = as_islands({name: rng.normal(size=(40_000, 12)) + 1e3 for name in example.islands})
    study = structs.replace(example.study, parameters={"n_components": 2})
    tap = tapped(Example(study, islands))
    monkeypatch.setattr("atoll.threads.cores", lambda: cores)
    for address, record in tap.records.items():
        own = Own(islands.get(address.party))
        _, sent = replay(protocol_of("pppca"), study, address, own, record.drawn, tap.inboxes[address])
        assert sent == tap.outboxes[address]


def test_a_role_run_again_on_other_data_is_stopped_before_it_sends_them() -> None:
    example = pppca()
    tap = tapped(example)
    address = example.study.who("provider")[0]
    other = as_islands(frames())[address.party]
    other._table.frame.iloc[0, 0] += 1.0  # type: ignore[union-attr]
    with pytest.raises(RunError, match="is not what the recorded run sent"):
        resumed(example, tap, address, Own(other))


@pytest.mark.parametrize(
    "name",
    [
        "meta",
        "privatelocal",
        "dpdpca-paper",
        "dpdpca-lattice",
        "summation-shares",
        "summation-masks",
        "summation-mix",
    ],
)
def test_no_protocol_sends_other_data_under_the_same_draws(name: str) -> None:
    """Before records were told, the paper's form encrypted other rows with the same randomness."""
    example = EXAMPLES[name]()
    tap = tapped(example)
    address = next(a for a in example.study.addresses() if a.party in example.islands)
    island = example.islands[address.party]
    rows = island.features(island.columns).copy()
    rows[0] += 1.0
    other = Island(rows, name=island.name, columns=island.columns if island.named else None)
    assert resumed(example, tap, address, example.own[address.party])[1] == tap.outboxes[address]
    with pytest.raises(RunError, match="is not what the recorded run sent"):
        resumed(example, tap, address, Own(other))


def test_no_party_is_server_and_provider_at_once() -> None:
    example = pppca()
    parties = (
        Party("hospital-0", ("provider", "server")),
        *example.study.parties[1:3],
        example.study.parties[4],
    )
    with pytest.raises(StudyError, match="'hospital-0' cannot be both provider and server"):
        run_study(structs.replace(example.study, parties=parties), example.own)


def test_a_party_is_not_called_like_a_role_that_it_does_not_play() -> None:
    with pytest.raises(StudyError, match="called 'consumer', like a role, only if it has no other role"):
        atoll.PCA(2).fit({"consumer": np.eye(4), "b": np.eye(4) + 1})
