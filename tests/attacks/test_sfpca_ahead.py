"""Second halves that travel ahead: what the coordinator adds, or sends as totals, is found out.

Products of the polynomials are made this way (:mod:`atoll.secret_matrices.roles`). The coordinator only adds
up what providers sent; all of them are sent the total of their masked shares, and compute its part from that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.sfpca_runs import encrypted

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError
from atoll.runtime.engine import Observer
from atoll.secret_matrices import entrywise, roles
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.courses import digest_of
from atoll.study.address import Address


class Sent(Observer):
    """Every message between machines, in the order in which it arrived."""

    def __init__(self) -> None:
        self.decoder = Decoder[Message](mm.MESSAGES)
        self.seen: list[tuple[Address, Address, Any]] = []

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.seen.append((receiver, sender, self.decoder.decode(bytes(data))))

    def of(self, kind: type) -> list[Any]:
        return [message for _, _, message in self.seen if isinstance(message, kind)]


NUMBERS = (2**112, 2**118, 2**117)
"""Each provider's, over 2^120: there are three of them."""


async def roots(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """v^(-1/2) of three numbers, a third of each with every provider: thirteen products, all ahead."""
    own = None if inputs.moments is None else [[value] for value in NUMBERS]
    v = machine.private(None, own, (3, 1), 120, 0)
    found = await entrywise.inverse_roots(machine, v, "narrower")
    await machine.check(last=True)
    return await machine.released(machine.smudged(found.roots, smudge_bits=60), receivers)


def run(monkeypatch: pytest.MonkeyPatch, base: type = roles.Coordinator) -> tuple[Any, Sent]:
    monkeypatch.setattr(roles, "Coordinator", base)
    tap = Sent()
    try:
        return encrypted(roots, [np.eye(3)] * 3, observer=tap)[0], tap
    except AtollError as error:
        return error, tap


class Relaying(roles.Coordinator):
    """A coordinator that changes what it sends."""

    def __init__(self, net: Any, *rest: Any) -> None:
        super().__init__(net, *rest)

        changed = self.changed

        class Relay:
            def __getattr__(self, name: str) -> Any:
                return getattr(net, name)

            async def broadcast(self, to: Any, message: Any) -> None:
                for address in to:
                    await net.send(address, changed(message))

        self.net = Relay()

    def changed(self, message: Any) -> Any:
        return message


def test_nothing_leaves_but_halves_under_an_encryption_of_zero_or_a_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, tap = run(monkeypatch)
    exact = 1 / np.sqrt(3 * np.array(NUMBERS, float) / 2.0**120)
    np.testing.assert_allclose(found["p1/provider"][:, 0], exact, rtol=2.0**-11)
    products = 13
    assert len(tap.of(mm.SecondPart)) == len(tap.of(mm.MaskedShare)) == 3 * products
    assert not tap.of(mm.ProductPart)
    # Nobody but the coordinator sees single masked shares; a total goes to all, once.
    assert {str(to) for to, _, m in tap.seen if isinstance(m, mm.MaskedShare)} == {"hub/coordinator"}
    totals = [(to.party, m.step) for to, _, m in tap.seen if isinstance(m, mm.MaskedTotal)]
    assert sorted(totals) == sorted(
        (p, step) for step in {step for _, step in totals} for p in ("p0", "p1", "p2")
    )
    assert len(totals) == 3 * products


class Adding(roles.Coordinator):
    """Adds its own part to what is encrypted, which all providers add themselves."""

    step = 0

    async def _encrypt_all(self, wanted: Any, courses: Any) -> None:
        hidden = []
        for left, step in wanted:
            shown = left.matrix.shown
            if shown and not Adding.step:
                Adding.step, shown = courses[0].step, frozenset()
            hidden.append((left._replace(matrix=replace(left.matrix, shown=shown)), step))
        await super()._encrypt_all(hidden, courses)


def test_what_the_coordinator_adds_to_what_is_encrypted_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adding, "step", 0)
    error, tap = run(monkeypatch, Adding)
    assert Adding.step
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    # No decryption share of what the coordinator chose.
    assert all(m.step < Adding.step for m in tap.of(mm.MaskedShare))
    assert not tap.of(mm.ReleasedShare)


def flipped(message: Any) -> Any:
    body = bytearray(message.body)
    body[0] ^= 1
    return type(message)(message.step, memoryview(bytes(body)))


@pytest.mark.parametrize("kind", [mm.EncryptedMatrix, mm.SecondHalves])
@pytest.mark.parametrize("step", [1, 9])
def test_no_first_half_of_another_encrypted_matrix_leaves(
    kind: type, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    class Lying(Relaying):
        def changed(self, message: Any) -> Any:
            if not isinstance(message, kind) or message.step < step or message.step > min(told, default=99):
                return message
            told[:1] = [message.step]
            return flipped(message)

    error, tap = run(monkeypatch, Lying)
    assert told
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    product = told[0] + (kind is mm.EncryptedMatrix)
    # The second half of that product is gone, which nothing of the coordinator's enters; not its first one.
    assert product in {m.step for m in tap.of(mm.SecondPart)}
    assert all(m.step < product for m in tap.of(mm.MaskedShare))


def test_a_total_does_not_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider would compare one and compute with the other."""

    class Twice(Relaying):
        def changed(self, message: Any) -> Any:
            return message

        def __init__(self, net: Any, *rest: Any) -> None:
            super().__init__(net, *rest)
            once = self.net.broadcast

            async def twice(to: Any, message: Any) -> None:
                await once(to, message)
                if isinstance(message, mm.MaskedTotal):
                    await once(to, message)

            self.net.broadcast = twice  # type: ignore[method-assign]

    error, tap = run(monkeypatch, Twice)
    assert isinstance(error, MessageError)
    assert "sent a masked total twice" in str(error)
    assert not tap.of(mm.ReleasedShare)


def test_a_total_that_comes_late_holds_everything_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No decryption share of the next product leaves before it is here."""
    held: list[Any] = []

    class Late(Relaying):
        def __init__(self, net: Any, *rest: Any) -> None:
            super().__init__(net, *rest)
            once = self.net.broadcast

            async def late(to: Any, message: Any) -> None:
                if isinstance(message, mm.MaskedTotal) and not held:
                    held.append(message)
                    return
                await once(to, message)

            self.net.broadcast = late  # type: ignore[method-assign]

    error, tap = run(monkeypatch, Late)
    assert isinstance(error, AtollError)
    assert {m.step for m in tap.of(mm.MaskedShare)} == {held[0].step}


def test_masks_are_bound_to_what_others_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that runs again on another encrypted matrix, or another total, must not mask alike."""
    domains: list[bytes] = []
    made: Callable[..., Any] = go.Secret.refresh

    def kept(
        self: Any, second: Any, layout: Any, clearing: Any, seed: bytes, domain: bytes, ahead: Any
    ) -> Any:
        assert ahead is not None
        domains.append(domain)
        return made(self, second, layout, clearing, seed, domain, ahead)

    read: list[list[bytes]] = []
    halves: list[bytes] = []
    own = roles.Provider._own_ahead
    refreshed = roles.Provider._refreshed

    async def seen(self: Any, course: Any) -> Any:
        found = await own(self, course)
        read.append(found[1])
        return found

    async def noted(self: Any, course: Any, of_second: Any) -> Any:
        halves.append(of_second[1])
        return await refreshed(self, course, of_second)

    monkeypatch.setattr(go.Secret, "refresh", kept)
    monkeypatch.setattr(roles.Provider, "_own_ahead", seen)
    monkeypatch.setattr(roles.Provider, "_refreshed", noted)
    _, tap = run(monkeypatch)
    assert len(domains) == len(read) == 3 * 13
    # The left side, and the coordinator's part of the right one: a constant at first, then of totals.
    assert all(len(one) == 2 for one in read)
    assert len({one[0] for one in read}) == len(tap.of(mm.EncryptedMatrix)) / 3
    assert len(set(domains)) == 13  # one for each product, the same for all
    assert set(domains) == {digest_of(second, *one) for second, one in zip(halves, read, strict=True)}
    assert not set(domains) & set(halves)
