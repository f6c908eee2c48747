"""A receiver of masked sums on a sparse graph that chooses neighbours, or tells two stories.

Each attack is played on a form of the masks that is not for use, where it opens an input, and on the real
one, which refuses it before anything leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.examples import Example, summation
from tests.support.taps import Tap

from atoll import fixedpoint, randomness
from atoll.codec import Decoder, Message
from atoll.errors import MessageError, StudyError
from atoll.network import Compared
from atoll.protocols import protocol_of, resolve
from atoll.protocols.base import Learned
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums import drawn_graph, graph, masks
from atoll.secure_sums.drawn_graph import GraphCommitment, GraphCommitments, GraphNonce, GraphNonces, Order
from atoll.secure_sums.masks import MaskedInput, MaskKey
from atoll.secure_sums.recoverable_masks import (
    BackedUp,
    Members,
    RecoverableMasks,
    Survivors,
    Unmasking,
)

N, VICTIM, BLOCK = 40, 11, "values#0"
EVERYONE = tuple(range(N))
Receiver = Callable[..., Any]


def example(**options: Any) -> Example:
    return summation("masks", {"graph": "sparse", **options}, N)


def run(study: Example, receiver: Receiver | None = None) -> Tap:
    """A run with the tap that it left, also where it ended in an error (``tap.error``)."""
    protocol, tap = protocol_of("sum"), Tap()
    roles = protocol.roles if receiver is None else {**protocol.roles, "receiver": receiver}
    try:
        LocalEngine().run(replace(protocol, roles=roles), study.study, study.own, observer=tap)
    except MessageError as error:
        tap.error = error  # type: ignore[attr-defined]
    return tap


def sent(study: Example, tap: Tap, kind: type[Message]) -> dict[int, list[Any]]:
    """What each contributor sent of one kind."""
    decoder = Decoder[Message](protocol_of("sum").all_messages(study.study))
    found = {}
    for index, address in enumerate(study.study.who("contributor")):
        all_sent = [decoder.decode(data) for _, data in tap.outboxes[address]]
        found[index] = [message for message in all_sent if isinstance(message, kind)]
    return found


def values_of(study: Example, index: int) -> np.ndarray:
    island = study.islands[f"island-{index}"]
    return island.features(island.columns).ravel()


def order_in(study: Example, tap: Tap) -> Order:
    """The order as the receiver knows it."""
    commitments = [one[0].commitment for one in sent(study, tap, GraphCommitment).values()]
    nonces = [one[0].nonce for one in sent(study, tap, GraphNonce).values()]
    return drawn_graph.order_of(f"{resolve(study.study).digest}/sum", commitments, nonces)


def unmasked_by(study: Example, tap: Tap, victim: int, colluders: set[int]) -> fixedpoint.Limbs:
    """The victim's masked input, without the streams that colluders know."""
    session = f"{resolve(study.study).digest}/sum"
    contributors = study.study.who("contributor")
    body = sent(study, tap, MaskedInput)[victim][0].body
    key = sent(study, tap, MaskKey)[victim][0].key
    for other in colluders:
        drawn = tap.records[contributors[other]].drawn
        private = next(value for tag, value in drawn.items() if "/masks/key/" in tag)
        mask = masks.stream(masks.pair_seed(private, key), f"{session}/{BLOCK}", body.shape[1])
        body = (fixedpoint.subtract if other > victim else fixedpoint.add)(body, mask)
    return body


def seen_of(study: Example, tap: Tap, victim: int, colluders: set[int]) -> np.ndarray:
    """The same as numbers."""
    return fixedpoint.decode(unmasked_by(study, tap, victim, colluders))


# ---- too few neighbours ----


@pytest.fixture
def any_degree(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A form that is not for use: whatever number of neighbours is asked for."""
    graph.degree_of.cache_clear()
    graph.enough.cache_clear()
    monkeypatch.setattr(graph, "FAILURE", Fraction(10**9))
    yield
    graph.degree_of.cache_clear()
    graph.enough.cache_clear()


@pytest.mark.usefixtures("any_degree")
def test_with_two_neighbours_two_colluders_read_an_island() -> None:
    study = example(neighbours=2)
    tap = run(study)
    beside = set(graph.on_ring(order_in(study, tap).places, 2)[VICTIM])
    assert len(beside) == 2
    np.testing.assert_array_equal(seen_of(study, tap, VICTIM, beside), values_of(study, VICTIM))


def test_with_two_neighbours_a_study_is_refused() -> None:
    with pytest.raises(StudyError, match="2 neighbours are not enough"):
        run(example(neighbours=2))


def test_as_many_colluders_as_are_stated_leave_every_honest_island_masked() -> None:
    """Also if they are all but one of its neighbours; with all of them, one more than stated, it is read."""
    study = example()
    tap = run(study)
    order = order_in(study, tap)
    stated, degree = N // 3, graph.degree_of(N, 0, "sparse").neighbours
    assert (stated, degree) == (13, 14)
    near = graph.on_ring(order.places, degree)[VICTIM]
    masked = seen_of(study, tap, VICTIM, set(near[:stated]))
    assert np.abs(masked - values_of(study, VICTIM)).min() > 1e3
    np.testing.assert_array_equal(seen_of(study, tap, VICTIM, set(near)), values_of(study, VICTIM))


# ---- who draws ----


def two_orders() -> Receiver:
    """A receiver that tells the victim commitments of its own, when it knows everybody else's nonces."""

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        session = f"{study.digest}/sum"
        said = [one.commitment for one in (await net.gather(GraphCommitment, contributors)).values()]
        others = [a for i, a in enumerate(contributors) if i != VICTIM]
        await net.broadcast(others, GraphCommitments(tuple(said)))
        known = {a: m.nonce for a, m in (await net.gather(GraphNonce, others)).items()}
        own_nonces = [randomness.derive(bytes(32), "chosen", i) for i in range(N)]
        told = [drawn_graph.commitment(session, i, own_nonces[i]) for i in range(N)]
        told[VICTIM] = said[VICTIM]
        await net.send(contributors[VICTIM], GraphCommitments(tuple(told)))
        own_nonces[VICTIM] = (await net.receive(GraphNonce, contributors[VICTIM])).nonce
        await net.send(contributors[VICTIM], GraphNonces(tuple(own_nonces)))
        nonces = [known.get(a, own_nonces[VICTIM]) for a in contributors]
        await net.broadcast(others, GraphNonces(tuple(nonces)))
        await net.gather(MaskedInput, contributors)
        return Learned()

    return receiver


@pytest.mark.parametrize("options", [{}, {"dropouts": 1}])
def test_two_orders_are_found_out_before_anything_is_sent(options: dict[str, Any]) -> None:
    """An island that is told commitments that nobody made gets a random ring all the same, and honest
    neighbours who believe in another one."""
    study = example(**options)
    tap = run(study, two_orders())
    told = r"is in round 'session \w+' where 'session|was told something else than .* about the graph"
    assert isinstance(tap.error, MessageError)  # type: ignore[attr-defined]
    assert re.search(told, str(tap.error))  # type: ignore[attr-defined]
    assert not sent(study, tap, MaskedInput)[VICTIM]


def altered(change: Callable[[list[bytes], list[bytes]], tuple[list[bytes], list[bytes]]]) -> Receiver:
    """A receiver that relays something else to everybody."""

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        said = [one.commitment for one in (await net.gather(GraphCommitment, contributors)).values()]
        said, _ = change(said, [])
        await net.broadcast(contributors, GraphCommitments(tuple(said)))
        nonces = [one.nonce for one in (await net.gather(GraphNonce, contributors)).values()]
        _, nonces = change([], nonces)
        await net.broadcast(contributors, GraphNonces(tuple(nonces)))
        await net.gather(MaskedInput, contributors)
        return Learned()

    return receiver


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda said, nonces: (said[:-1], nonces), "did not relay the commitment"),
        (lambda said, nonces: (said[::-1], nonces), "did not relay the commitment"),
        (lambda said, nonces: ([*said[:-1], b"short"] if said else said, nonces), "did not relay the commit"),
        (
            lambda said, nonces: ([b"", *said[1:]] if said else said, nonces),
            "did not relay|39 commitments where",
        ),
        (lambda said, nonces: (said, nonces[::-1]), "is not the one that was committed to"),
        (lambda said, nonces: (said, nonces[:-1]), "39 nonces came for 40 commitments"),
        (
            lambda said, nonces: (said, [*nonces[:-1], b""] if nonces else nonces),
            "does not fit its commitment",
        ),
        (
            lambda said, nonces: (said, [*nonces[:-1], b"x"] if nonces else nonces),
            "does not fit its commitment",
        ),
    ],
)
def test_a_draw_that_was_altered_on_its_way_is_refused(change: Any, wrong: str) -> None:
    study = example()
    tap = run(study, altered(change))
    assert isinstance(tap.error, MessageError)  # type: ignore[attr-defined]
    assert re.search(wrong, str(tap.error))  # type: ignore[attr-defined]
    assert not any(sent(study, tap, MaskKey).values())


@pytest.mark.usefixtures("any_degree")
def test_a_receiver_that_chose_the_order_would_read_whom_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = (VICTIM, 0, *(i for i in EVERYONE if i not in (VICTIM, 0, 1)), 1)
    monkeypatch.setattr(
        drawn_graph, "order_of", lambda *_: Order(chosen, b"chosen by the receiver", EVERYONE)
    )
    study = example(neighbours=2)
    tap = run(study)
    np.testing.assert_array_equal(seen_of(study, tap, VICTIM, {0, 1}), values_of(study, VICTIM))


# ---- two lists of who stayed ----


def two_lists(lists: Mapping[int, tuple[int, ...]], answers: dict[int, Unmasking]) -> Receiver:
    """A receiver that draws the graph as it must, and then tells each contributor its own list."""

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        await drawn_graph.relay(net, f"{study.digest}/sum", contributors, dropouts=1)
        await net.gather(BackedUp, contributors)
        await net.broadcast(contributors, Members(BLOCK, EVERYONE))
        await net.gather(MaskedInput, contributors)
        for u, listed in lists.items():
            await net.send(contributors[u], Survivors(BLOCK, listed))
        for address, answer in (await net.gather(Unmasking, [contributors[u] for u in lists])).items():
            answers[contributors.index(address)] = answer
        return Learned()

    return receiver


def without(*gone: int) -> tuple[int, ...]:
    return tuple(u for u in EVERYONE if u not in gone)


@pytest.mark.parametrize(
    "lists",
    [
        {u: EVERYONE if u == VICTIM else without(VICTIM) for u in EVERYONE},
        {u: without(VICTIM) if u < N // 2 and u != VICTIM else EVERYONE for u in EVERYONE},
        {u: without(1) if u >= N // 2 else without(N - 1) for u in EVERYONE if u not in (1, N - 1)},
    ],
    ids=["one against all", "half and half", "each half without one of the other"],
)
def test_two_lists_are_found_out_before_anything_is_unmasked(lists: dict[int, tuple[int, ...]]) -> None:
    study, answers = example(dropouts=1, colluders=6), {}
    degree = graph.degree_of(N, 1, "sparse", 6)
    assert degree.neighbours < N // 2
    tap = run(study, two_lists(lists, answers))
    assert "was told something else than" in str(tap.error)  # type: ignore[attr-defined]
    assert answers == {}
    # Whoever has answered saw nothing but its own list around it: never both secrets of one contributor.
    unmasked = {u: found[0] for u, found in sent(study, tap, Unmasking).items() if found}
    for victim in EVERYONE:
        keys = sum(str(victim) in answer.key_shares for answer in unmasked.values())
        own = sum(str(victim) in answer.self_shares for answer in unmasked.values())
        assert min(keys, own) < degree.neighbours - degree.missing
    compared = sent(study, tap, Compared)
    assert all(len(found) <= 2 * degree.neighbours for found in compared.values())


def test_without_comparing_two_lists_open_an_island(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the comparison among neighbours is for: both secrets of one contributor come together."""

    async def nothing(self: Any, *_: Any) -> None: ...

    monkeypatch.setattr(RecoverableMasks, "_compare", nothing)
    study, answers = example(dropouts=1, colluders=6), {}
    degree = graph.degree_of(N, 1, "sparse", 6)
    half = {u: without(VICTIM) if u % 2 and u != VICTIM else EVERYONE for u in EVERYONE}
    run(study, two_lists(half, answers))
    keys = sum(str(VICTIM) in answer.key_shares for answer in answers.values())
    own = sum(str(VICTIM) in answer.self_shares for answer in answers.values())
    assert keys + own == degree.neighbours
    assert keys > 0
    assert own > 0
