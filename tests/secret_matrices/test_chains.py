"""Products in a chain: the same results, a message each, and nothing that masks do not hide."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.support.lying import lying
from tests.support.sfpca_runs import encrypted

from atoll.codec import Message
from atoll.crypto import products as go
from atoll.errors import MessageError, ParameterError
from atoll.network import Compared
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.costs.counted import Counted, at_once
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.study.address import Address

BLOCKS = [np.full((2, 2), 1.0 + i) for i in range(3)]
F = 30
A = np.array([[0.5, -0.25, 0.125], [0.75, 0.5, -0.5]])
B = np.array([[0.5, 0.25], [-0.125, 0.5], [0.25, -0.75]])
PLAIN = np.array([[0.25, 0.0], [-0.125, 0.5]])
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])


def known(machine: Machine, inputs: Any, values: np.ndarray, owner: str | None = None) -> Shared:
    """A matrix of which every provider knows a third, or one provider the whole."""
    part = np.rint(values * 2.0**F / (1 if owner else 3)).astype(np.int64)
    own = part if inputs.moments is not None and owner in (None, inputs.me) else None
    return machine.private(owner, own, values.shape, F, 1)


async def program(machine: Machine, inputs: Any) -> list[Shared]:
    """Factors that are known, made before, or both; a summand; constants; entries; two products beside."""
    a, b, plain = (known(machine, inputs, x) for x in (A, B, PLAIN))
    first, second = inputs.providers[0], inputs.providers[2]
    h, turned = known(machine, inputs, TURN, first), known(machine, inputs, TURN, second)
    x, turn = await machine.products(
        [
            Job(((a, b),), F, 2, "x", plain=plain),
            Job(((h, turned),), F, 1, "turn"),
        ]
    )
    y = machine.combine([(0.5, x)], identity=0.75, bits=2)
    z = await machine.product((x, y), (y, machine.transpose(turn)), (h, x), fraction=F, bits=4, name="z")
    d, e = machine.diagonal(z), machine.diagonal(x)
    entries = await machine.product((d, machine.hstack([d, e])), fraction=F, bits=6, name="e", entrywise=True)
    return [z, entries, machine.combine([(1.0, turn)], bits=1)]


def expected() -> list[np.ndarray]:
    x, turn = A @ B + PLAIN, TURN @ TURN
    y = x / 2 + 0.75 * np.eye(2)
    z = x @ y + y @ turn.T + TURN @ x
    return [z, z.diagonal()[:, None] * np.stack([z.diagonal(), x.diagonal()], axis=1), turn]


async def in_a_chain(machine: Machine, inputs: Any, receivers: frozenset[str]) -> list[np.ndarray]:
    made = await machine.chained(program(machine, inputs))
    # What a chain made is multiplied like any other matrix.
    twice = await machine.product((made[0], made[2]), fraction=F, bits=5, name="after")
    return [await machine.opened(x, smudge_bits=0) for x in [*made, twice]]


def test_a_chain_makes_what_its_products_make() -> None:
    results, _ = encrypted(in_a_chain, BLOCKS)
    z, _, turn = expected()
    assert len(results) == 4
    for found in results.values():
        for made, want in zip(found, [*expected(), z @ turn], strict=True):
            np.testing.assert_allclose(made, want, atol=2.0 ** (8 - F))


def squarings(times: int, chain: bool) -> Any:
    async def squared(machine: Machine, inputs: Any) -> list[Shared]:
        x = known(machine, inputs, TURN)
        for _ in range(times):
            x = await machine.product((x, x), fraction=F, bits=2, name="square")
        return [x]

    async def run(machine: Machine, inputs: Any, receivers: frozenset[str]) -> np.ndarray:
        made = squared(machine, inputs)
        (x,) = await (machine.chained(made) if chain else made)
        return await machine.opened(x, smudge_bits=0)

    return run


def test_a_product_of_a_chain_takes_one_message() -> None:
    rounds = {}
    for times, chain in ((2, True), (5, True), (2, False)):
        results, transcript = encrypted(squarings(times, chain), BLOCKS)
        rounds[times, chain] = transcript.rounds
        np.testing.assert_allclose(
            results["p1/provider"], np.linalg.matrix_power(TURN, 2**times), atol=2.0 ** (9 - F)
        )
    assert rounds[5, True] - rounds[2, True] == 3
    # Five messages for each product outside a chain, and the masked total that an opening waits for; the
    # preparation of a chain takes as many as a product.
    assert rounds[2, False] - rounds[2, True] == (2 * 5 + 1) - (5 + 2)


def test_what_a_chain_costs_is_counted() -> None:
    async def run(machine: Machine, inputs: Any, receivers: frozenset[str]) -> None:
        await machine.chained(program(machine, inputs))
        await machine.check(last=True) if not isinstance(machine, Counted) else machine.check(last=True)

    _, transcript = encrypted(run, BLOCKS)
    machine = Counted([f"p{i}/provider" for i in range(3)])
    at_once(machine.set_up())

    class Public:
        providers, moments, me = machine.providers, None, "nobody"

    at_once(run(machine, Public, frozenset()))
    assert machine.depth == transcript.rounds
    sent = max(c.bytes_sent for role, c in transcript.roles.items() if role.endswith("/provider"))
    assert machine.provider_bytes == pytest.approx(sent, rel=0.02)


def test_a_coalition_of_all_but_one_sees_a_wide_mask() -> None:
    """Masked totals of a chain, and everybody's masks but one: what is left says nothing of the value."""
    kept: dict[str, Any] = {}

    async def run(machine: Machine, inputs: Any, receivers: frozenset[str]) -> Any:
        inside = {}

        async def column() -> list[Shared]:
            values = np.full((64, 1), 0.5)
            x = known(machine, inputs, values)
            for i in range(2):
                x = inside[i] = await machine.product((x, x), fraction=F, bits=1, name="s", entrywise=True)
            return [x]

        await machine.chained(column())
        if inputs.moments is not None:
            for i, x in inside.items():
                kept[inputs.me, i] = go.to_ints(x.share), go.to_ints(await x.carried.value())

    encrypted(run, BLOCKS)
    for i in range(2):
        totals = [kept[f"p{p}/provider", i][1] for p in range(3)]
        assert all((total == totals[0]).all() for total in totals)
        for honest in range(3):
            masks = sum(kept[f"p{p}/provider", i][0] for p in range(3) if p != honest)
            hidden = (totals[0] + masks).astype(float) / 2.0**F
            # Values below two, under masks that are 64 bits wider: uniform, so of both signs and all sizes.
            assert np.abs(hidden).max() > 2.0**62
            assert 10 < (hidden > 0).sum() < 54
            assert 10 < (np.abs(hidden) > np.abs(hidden).max() / 2).sum() < 54
        whole = totals[0] + sum(kept[f"p{p}/provider", i][0] for p in range(3))
        np.testing.assert_allclose(whole.astype(float) / 2.0**F, 0.5 ** (2 ** (i + 1)), atol=2.0 ** (5 - F))


def one_more(note: bytes) -> bytes:
    """The first of four masked values plus one: in all its residues, so that no mask tells."""
    size = 4 * go.limits().modulus_bits // 8
    limbs = [bytes(note[at : at + size]) for at in range(0, len(note), size)]
    return b"".join((int.from_bytes(limb, "little") + 1).to_bytes(size, "little") for limb in limbs)


@pytest.mark.parametrize("link", [0, 1])
def test_who_is_sent_another_message_in_a_chain_ends_the_run(
    link: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Counter[str]()

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        seen["opened"] += isinstance(message, mm.OpenedShare)
        if not isinstance(message, Compared) or not message.topic.startswith("products in a chain"):
            return message
        if (sender.party, receiver.party) != ("p1", "p2"):
            return message
        seen["links"] += 1
        changed = one_more(message.note)
        return Compared(message.topic, message.digest, changed) if seen["links"] == link + 1 else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=r"was told something else|told .* something else"):
        encrypted(squarings(2, True), BLOCKS)
    assert seen["links"] > link
    assert seen["opened"] == 0


def test_a_message_of_another_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        if isinstance(message, Compared) and message.topic.startswith("products in a chain"):
            return Compared(message.topic, message.digest, bytes(message.note)[:-1])
        return message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="bytes of masked products"):
        encrypted(squarings(1, True), BLOCKS)


@pytest.mark.parametrize("how", ["factor", "sum", "summand"])
def test_a_chain_begins_with_what_providers_know(how: str) -> None:
    async def run(machine: Machine, inputs: Any, receivers: frozenset[str]) -> None:
        x = known(machine, inputs, TURN)
        outside = await machine.product((x, x), fraction=F, bits=2, name="outside")

        async def inside() -> list[Shared]:
            if how == "summand":
                return [await machine.product((x, x), plain=outside, fraction=F, bits=3, name="inside")]
            y = outside if how == "factor" else machine.combine([(1.0, outside)], bits=2)
            return [await machine.product((x, y), fraction=F, bits=3, name="inside")]

        await machine.chained(inside())

    with pytest.raises(ParameterError, match="begins with matrices that providers know"):
        encrypted(run, BLOCKS)
