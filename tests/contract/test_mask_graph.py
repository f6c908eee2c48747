"""The sparse graph of masks: how many neighbours are enough, and that nobody chooses them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import comb, log2
from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec import to_builtins
from tests.support.examples import summation
from tests.support.taps import Tap, tapped

import atoll
from atoll import secure_sums
from atoll.codec import Decoder, Message
from atoll.errors import MessageError, ParameterError, PartyLeft, StudyError
from atoll.protocols import protocol_of
from atoll.review.study import review_study
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums import drawn_graph, graph, masks
from atoll.secure_sums.drawn_graph import GraphCommitment, GraphCommitments, GraphNonce, GraphNonces
from atoll.secure_sums.graph import at_least, degree_of, enough, failure, missing, on_ring
from atoll.study.address import Address

# ---- the bound ----


def test_tails_are_those_of_drawing_without_replacement() -> None:
    assert at_least(2, population=5, marked=3, drawn=2) == Fraction(3, 10)
    assert at_least(0, population=5, marked=3, drawn=2) == 1
    assert at_least(4, population=5, marked=3, drawn=4) == 0
    assert at_least(34, population=500, marked=166, drawn=34) == Fraction(comb(166, 34), comb(500, 34))


@pytest.mark.parametrize(
    ("n", "colluders", "dropouts", "degree", "bound"),
    [
        (500, 166, 0, 34, -40.742),
        (500, 166, 10, 120, -41.279),
        (500, 50, 10, 68, -44.405),
        (1000, 333, 0, 36, -40.093),
        (5000, 1666, 0, 40, -40.302),
        (60, 20, 0, 20, -41.107),
    ],
)
def test_the_stated_degrees(n: int, colluders: int, dropouts: int, degree: int, bound: float) -> None:
    assert enough(n, colluders, dropouts) == degree
    assert log2(failure(n, colluders, dropouts, degree)) == pytest.approx(bound, abs=1e-3)
    assert failure(n, colluders, dropouts, degree - 2) > graph.FAILURE


def test_fewer_colluders_than_neighbours_never_matter() -> None:
    assert enough(40, 13, 0) == 14
    assert failure(40, 13, 0, 14) == 0
    assert enough(40, 13, 2) is None  # more than half of all would be needed
    assert missing(5000, 50, 170) == 14  # of 50 that leave at random, no more than 14 are around one
    assert missing(500, 10, 120) == 10


def cut_by(near: Sequence[Sequence[int]], removed: set[int]) -> bool:
    left = set(range(len(near))) - removed
    reached, frontier = set(), [next(iter(left))]
    while frontier:
        u = frontier.pop()
        if u not in reached:
            reached.add(u)
            frontier += [v for v in near[u] if v in left and v not in reached]
    return reached != left


def test_the_honest_fall_apart_as_rarely_as_the_bound_says() -> None:
    n, colluders, degree, tries = 30, 12, 6, 4000
    rng = np.random.default_rng(0)
    cut = sum(
        cut_by(on_ring(rng.permutation(n).tolist(), degree), set(range(colluders))) for _ in range(tries)
    )
    bound = float(failure(n, colluders, 0, degree))
    spread = 4 * (bound / tries) ** 0.5
    assert bound / 20 < cut / tries < bound + spread  # a bound, and not an idle one


def views_part(near: Sequence[Sequence[int]], honest: list[int], without: int) -> bool:
    """Whether the honest can be of two minds, or silent, so that none misses too many of its own."""
    rows = np.array([[v in near[u] for v in honest] for u in honest], dtype=np.int8)
    minds = np.array(list(product((0, 1, 2), repeat=len(honest) - 1)), dtype=np.int8)
    minds = np.hstack([np.ones((len(minds), 1), np.int8), minds])  # the first is of the first mind
    fits = (minds == 2).any(axis=1)
    for mind in (1, 2):
        others = (minds != mind).astype(np.int8) @ rows
        fits &= ((minds != mind) | (others <= without)).all(axis=1)
    return bool(fits.any())


def has_two_gaps(order: Sequence[int], honest: set[int], reach: int, allowed: int) -> bool:
    """Two runs of places that do not overlap, with few honest ones together in each."""
    n = len(order)
    thin = [s for s in range(n) if sum(order[(s + i) % n] in honest for i in range(reach)) <= allowed]
    return any(reach <= (b - a) % n <= n - reach for a in thin for b in thin)


@pytest.mark.parametrize(
    ("n", "degree", "colluders", "without"), [(14, 4, 6, 0), (14, 6, 8, 0), (16, 8, 8, 1), (18, 8, 9, 1)]
)
def test_two_minds_need_two_gaps(n: int, degree: int, colluders: int, without: int) -> None:
    """The step of the argument, on all ways to be of two minds: at most 2 honest ones per bearable miss."""
    rng, parted = np.random.default_rng(1), 0
    for _ in range(60):
        order = rng.permutation(n).tolist()
        honest = list(range(colluders, n))
        if views_part(on_ring(order, degree), honest, without):
            parted += 1
            assert has_two_gaps(order, set(honest), degree // 2, 2 * without)
    assert parted > 0


# ---- what a study may ask for ----


def test_everybody_up_to_a_hundred_then_a_few() -> None:
    assert degree_of(100, 0, "auto") == (99, 0, False)
    assert degree_of(101, 0, "auto") == (26, 0, True)
    assert degree_of(500, 0, "auto") == (34, 0, True)
    assert degree_of(500, 0, "full") == (499, 0, False)
    assert degree_of(500, 0, "auto", 50) == (18, 0, True)
    assert degree_of(120, 20, "auto") == (119, 20, False)  # a sparse one would not be enough


def test_a_degree_that_is_too_low_is_refused() -> None:
    for asked in (32, 33, 252):
        with pytest.raises(ParameterError, match=f"^{asked} neighbours are not enough, or too many, for 500"):
            degree_of(500, 0, "sparse", None, asked)
    assert degree_of(500, 0, "sparse", None, 40).neighbours == 40
    with pytest.raises(ParameterError, match="neighbours are for a sparse graph"):
        degree_of(500, 0, "auto", None, 40)
    with pytest.raises(StudyError, match="withstands no 13 colluders and 5 dropouts"):
        atoll.secure_sum(np.ones((40, 1)), "masks", graph="sparse", dropouts=5)
    with pytest.raises(StudyError, match="39 of 40 contributors cannot collude"):
        atoll.secure_sum(np.ones((40, 1)), "masks", graph="sparse", colluders=39)


def test_the_bound_stands_in_the_review() -> None:
    text = str(masks.Masks.trust(500, secure_sums.read_options(masks.Masks, {})))
    assert "up to 166 of the 500 islands" in text
    assert "(each masks with 34 others, whom all draw together; so many, chosen before" in text
    assert "a chance below 2^-40" in text
    study = summation("masks", {"graph": "sparse"}, 60).study
    assert "each masks with 20 others" in str(review_study(study))


def test_a_studys_digest_is_what_it_was_before_there_were_graphs() -> None:
    options = secure_sums.options(summation("masks", {}, 4).study)
    assert to_builtins(options) == {"dropouts": 0}


# ---- runs ----


@pytest.mark.parametrize("options", [{}, {"dropouts": 1}, {"dropouts": 2, "colluders": 4}])
def test_sums_are_exact_and_cost_what_is_predicted(options: dict[str, Any]) -> None:
    example = summation("masks", {"graph": "sparse", **options}, 40)
    expected = secure_sums.expected(example.study, 40, [5])
    outcome = LocalEngine().run(protocol_of("sum"), example.study, example.own)
    total = next(o.outputs["total"] for o in outcome.learned.values() if o.outputs)
    wanted = sum(i.features(i.columns).ravel() for i in example.islands.values())
    np.testing.assert_allclose(total, wanted, rtol=1e-12)
    transcript = outcome.transcript
    assert transcript.messages == expected.messages
    assert transcript.rounds == expected.rounds
    assert transcript.bytes == pytest.approx(expected.bytes_total, rel=0.03)
    sent = [cost.bytes_sent for address, cost in transcript.roles.items() if "receiver" not in str(address)]
    assert max(sent) == pytest.approx(expected.bytes_per_contributor, rel=0.03)


@pytest.mark.filterwarnings("ignore::atoll.errors.MissingIslands")
def test_contributors_may_leave_before_and_after_the_draw_but_not_during_it() -> None:
    vectors = {f"i{i}": np.array([2.0**i]) for i in range(30)}
    options: dict[str, Any] = {"graph": "sparse", "colluders": 3, "dropouts": 2}
    degree = degree_of(30, 2, "sparse", 3).neighbours
    inside = {1: False, 4: True, 6 + 3 * degree: False}
    for dies_at, draws in inside.items():
        engine = LocalEngine(faults=Faults(crash={"i5/contributor": dies_at, "i17/contributor": dies_at}))
        if draws:
            with pytest.raises(PartyLeft):
                atoll.secure_sum(vectors, "masks", engine=engine, **options)
            continue
        total = atoll.secure_sum(vectors, "masks", engine=engine, **options)[0]
        assert total in (2.0**30 - 1, 2.0**30 - 1 - 2**5 - 2**17)
        assert dies_at != 1 or total == 2.0**30 - 1 - 2**5 - 2**17


# ---- the draw ----


def messages_of(tap: Tap, address: Address, study: Any) -> list[Message]:
    decoder = Decoder[Message](protocol_of("sum").all_messages(study))
    return [decoder.decode(data) for _, data in tap.outboxes[address]]


def test_nobody_reveals_before_everybody_has_committed() -> None:
    example = summation("masks", {"graph": "sparse"}, 40)
    tap = tapped(example)
    receiver = example.study.who("receiver")[0]
    kinds = [type(m) for m in messages_of(tap, receiver, example.study)]
    assert kinds == [GraphCommitments] * 40 + [GraphNonces] * 40
    decoder = Decoder[Message](protocol_of("sum").all_messages(example.study))
    arrived = [type(decoder.decode(event.data)) for event in tap.received(receiver)]
    assert arrived[:80] == [GraphCommitment] * 40 + [GraphNonce] * 40
    for address in example.study.who("contributor"):
        record = tap.records[address]
        assert sum("masks/graph" in tag for tag in record.drawn) == 1


def test_an_order_follows_from_every_nonce_and_from_nothing_that_was_not_committed_to() -> None:
    nonces = [bytes([i]) * 32 for i in range(20)]
    said = [drawn_graph.commitment("s", i, nonce) for i, nonce in enumerate(nonces)]
    order = drawn_graph.order_of("s", said, nonces)
    assert sorted(order.places) == list(range(20))
    assert order.present == tuple(range(20))
    for i in range(20):
        other = [*nonces[:i], bytes(32), *nonces[i + 1 :]] if i else [bytes([99]) * 32, *nonces[1:]]
        with pytest.raises(MessageError, match=f"the nonce of contributor {i} is not the one"):
            drawn_graph.order_of("s", said, other)
        again = [*said[:i], drawn_graph.commitment("s", i, other[i]), *said[i + 1 :]]
        assert drawn_graph.order_of("s", again, other).places != order.places
    with pytest.raises(MessageError, match="does not fit its commitment"):
        drawn_graph.order_of("s", said, [*nonces[:-1], b""])
    with pytest.raises(MessageError, match="is not the one"):
        drawn_graph.order_of("another session", said, nonces)
    with pytest.raises(MessageError, match="is not the one"):  # a copied commitment is worth nothing
        drawn_graph.order_of("s", [said[1], *said[1:]], [nonces[1], *nonces[1:]])
    absent = drawn_graph.order_of("s", [b"", *said[1:]], [b"", *nonces[1:]])
    assert absent.present == tuple(range(1, 20))


@pytest.mark.parametrize(("absent", "dropouts", "refused"), [(1, 0, True), (1, 1, False), (2, 1, True)])
def test_a_nonce_is_revealed_to_enough_others_only(absent: int, dropouts: int, refused: bool) -> None:
    class Net:
        me = Address("island-0", "contributor")
        sent: ClassVar[list[Message]] = []

        async def send(self, to: Address, message: Message) -> None:
            self.sent.append(message)

        async def receive(self, kind: type[Message], sender: Address) -> Any:
            if kind is GraphNonces:
                raise PartyLeft("enough was seen")
            mine = self.sent[0].commitment  # type: ignore[attr-defined]
            return GraphCommitments((mine, *[bytes([9]) * 32] * (9 - absent), *[b""] * absent))

    Net.sent.clear()
    receiver = Address("receiver", "receiver")
    taking_part = drawn_graph.take_part(
        Net(),
        MemoryRecord(),
        "s",
        0,
        10,
        receiver,
        dropouts=dropouts,  # type: ignore[arg-type]
    )
    with pytest.raises(MessageError if refused else PartyLeft):
        asyncio.run(taking_part)
    assert [type(m) for m in Net.sent] == [GraphCommitment] if refused else [GraphCommitment, GraphNonce]


def test_orders_are_uniform() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for i in range(1200):
        nonces = [i.to_bytes(32, "little"), bytes([7]) * 32, bytes([8]) * 32]
        said = [drawn_graph.commitment("s", j, nonce) for j, nonce in enumerate(nonces)]
        places = drawn_graph.order_of("s", said, nonces).places
        counts[places] = counts.get(places, 0) + 1
    assert len(counts) == 6
    assert max(abs(count - 200) for count in counts.values()) < 65  # five standard deviations


def test_a_ring_has_neighbours_on_both_sides() -> None:
    near = on_ring([3, 0, 4, 1, 2, 5], 2)
    assert near == [[3, 4], [2, 4], [1, 5], [0, 5], [0, 1], [2, 3]]
    for u, v in pairwise([3, 0, 4, 1, 2, 5, 3]):
        assert v in near[u]
        assert u in near[v]


def test_more_than_may_leave_before_the_draw_end_it() -> None:
    """The degree is for so many dropouts: a graph without more of them may fall apart."""
    contributors = [Address(f"i{k}", "contributor") for k in range(4)]

    class Net:
        async def gather(self, kind: Any, senders: Any, absent: Any = None) -> dict[Address, Any]:
            if kind is not drawn_graph.GraphCommitment:
                raise AssertionError("nonces are asked for")
            absent.update(contributors[2:])
            return {a: drawn_graph.GraphCommitment(bytes(32)) for a in contributors[:2]}

    with pytest.raises(PartyLeft, match="2 contributors left before the graph was drawn, the study allows 1"):
        asyncio.run(drawn_graph.relay(Net(), "s", contributors, dropouts=1))  # type: ignore[arg-type]
