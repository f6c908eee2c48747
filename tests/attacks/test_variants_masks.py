"""Further attacks on masked sums: lists and keys that are in order one by one, and open an input together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_mask_graph import unmasked_by, values_of
from tests.support.examples import Example, summation
from tests.support.taps import Tap

from atoll import fixedpoint
from atoll.crypto import shamir
from atoll.errors import MessageError
from atoll.protocols import protocol_of, resolve
from atoll.protocols.base import Learned
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.secure_sums import drawn_graph, graph, masks
from atoll.secure_sums.masks import MaskedInput
from atoll.secure_sums.recoverable_masks import (
    BackedUp,
    Members,
    RecoverableMasks,
    Survivors,
    Unmasking,
)

N, VICTIM, DROPOUTS, DEGREE, BLOCK = 40, 11, 7, 8, "values#0"
EVERYONE = tuple(range(N))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A graph thinner than a study may have: as many may leave as one has honest neighbours."""
    for cached in (graph.degree_of, graph.enough):
        cached.cache_clear()
    monkeypatch.setattr(graph, "FAILURE", Fraction(10**9))
    monkeypatch.setattr(graph, "missing", lambda *_: 2)
    yield
    for cached in (graph.degree_of, graph.enough):
        cached.cache_clear()


def isolating(answers: dict[int, Unmasking], colluding: list[int]) -> Any:
    """A receiver that names the victim to all as one who stayed, and to the victim one neighbour of eight.

    It leaves out no more than may leave. The victim adds the stream of a colluder then, and no other. It sees
    that too few compare with it, but its input is with the receiver, and the others take it for one that left
    meanwhile.
    """

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        order = await drawn_graph.relay(net, f"{study.digest}/sum", contributors, dropouts=DROPOUTS)
        helper, *honest = graph.on_ring(order.places, DEGREE)[VICTIM]
        colluding.append(helper)
        await net.gather(BackedUp, contributors)
        others = [contributors[u] for u in EVERYONE if u != VICTIM]
        await net.broadcast(others, Members(BLOCK, EVERYONE))
        few = tuple(u for u in EVERYONE if u not in honest)
        await net.send(contributors[VICTIM], Members(BLOCK, few))
        await net.gather(MaskedInput, contributors)
        await net.broadcast(others, Survivors(BLOCK, EVERYONE))
        await net.send(contributors[VICTIM], Survivors(BLOCK, few))
        for address, answer in (await net.gather(Unmasking, others)).items():
            answers[contributors.index(address)] = answer
        return Learned()

    return receiver


def isolated(answers: dict[int, Unmasking], colluding: list[int]) -> tuple[Example, Tap]:
    study = summation(
        "masks", {"graph": "sparse", "dropouts": DROPOUTS, "neighbours": DEGREE, "colluders": 0}, N
    )
    protocol, tap = protocol_of("sum"), Tap()
    roles = {**protocol.roles, "receiver": isolating(answers, colluding)}
    # The victim goes no further than its input.
    faults = Faults(crash={f"island-{VICTIM}/contributor": 2 + 3 * DEGREE + 2 + 1})
    LocalEngine(faults=faults).run(replace(protocol, roles=roles), study.study, study.own, observer=tap)
    return study, tap


@pytest.mark.usefixtures("small")
def test_an_island_whose_honest_neighbours_are_said_to_have_left_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RecoverableMasks, "_check_partners", lambda *_: None)
    answers: dict[int, Unmasking] = {}
    colluding: list[int] = []
    study, tap = isolated(answers, colluding)
    shares = {u + 1: a.self_shares[str(VICTIM)] for u, a in answers.items() if str(VICTIM) in a.self_shares}
    own = shamir.recover(dict(list(shares.items())[: DEGREE - 2]))
    body = unmasked_by(study, tap, VICTIM, set(colluding))
    block = f"{resolve(study.study).digest}/sum/{BLOCK}"
    x = fixedpoint.subtract(body, masks.stream(own, block, body.shape[1]))
    np.testing.assert_array_equal(fixedpoint.decode(x), values_of(study, VICTIM))


@pytest.mark.usefixtures("small")
def test_an_island_whose_honest_neighbours_are_said_to_have_left_sends_nothing() -> None:
    answers: dict[int, Unmasking] = {}
    with pytest.raises(MessageError, match="island-11/contributor a list of members that leaves it 1 of 8"):
        isolated(answers, [])
    assert answers == {}


# ---- what a draw and a backup are bound to ----


def test_a_commitment_is_worth_nothing_elsewhere_or_as_anothers() -> None:
    nonce = b"n" * 32
    made = {drawn_graph.commitment(session, index, nonce) for session in ("a", "b") for index in (0, 1)}
    assert len(made) == 4


def test_the_name_of_an_order_is_of_its_nonces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commitments are known before the last one speaks: an order that they alone decide can be chosen."""
    monkeypatch.setattr(drawn_graph, "commitment", lambda *_: b"c" * 32)
    said = [b"c" * 32] * 3
    names = {drawn_graph.order_of("s", said, [bytes([i]) * 32] * 3).name for i in range(1, 4)}
    assert len(names) == 3


def test_a_graph_may_fall_apart_at_any_two_points() -> None:
    """Of 40 on a ring with 14 neighbours 13 colluders fill no 14 places; of 15 they fill 15 ways of comb."""
    chance = Fraction(15, comb(40, 14))
    assert graph.failure(40, 15, 0, 14) == comb(40, 2) * chance


def test_a_key_and_a_mask_are_shared_with_coefficients_of_their_own() -> None:
    """With the same ones, the difference of two shares is that of the secrets, to every neighbour."""
    given: list[bytes] = []

    def split(secret: bytes, threshold: int, points: Any, seed: bytes) -> dict[int, bytes]:
        given.append(seed)
        return dict.fromkeys(points, b"")

    class Silent:
        async def send(self, *_: Any) -> None: ...
        async def settled(self, *_: Any) -> None: ...

    class Session:
        session, _private, _threshold, net = "s", b"k" * 32, 2, Silent()
        contributors = receivers = (None, None, None)

        def record(self, tag: str, draw: Any) -> bytes:
            return b"r" * 32

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shamir, "split", split)
        asyncio.run(RecoverableMasks._send_backups(Session(), "b", b"o" * 32, {1: b"", 2: b""}))  # type: ignore[arg-type]
    assert len(set(given)) == 2
