"""Second halves that travel ahead: what the coordinator adds to them, or computes with, is found out.

Products of the polynomials are made this way (:mod:`atoll.secret_matrices.roles`). The coordinator multiplies
its own part of the right side itself; a carrier, which has that part from everybody's masked shares,
computes the same.
"""

from __future__ import annotations

from collections.abc import Callable
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
    assert not tap.of(mm.MaskedTotal)
    masked = {(sender, m.step): bytes(m.body) for _, sender, m in tap.seen if isinstance(m, mm.MaskedShare)}
    copies = [(to, sender, m) for to, sender, m in tap.seen if isinstance(m, mm.CarriedShare)]
    assert {to.party for to, _, _ in copies} == {"p0"}
    assert len(copies) == 2 * products
    # The carrier is sent what the coordinator has: one share under one mask, never a second one.
    assert all(bytes(m.body) == masked[sender, m.step] for _, sender, m in copies)


class Twice(roles.Coordinator):
    """Adds its own part of the right side once more than it has it."""

    at = 4
    step = 0

    async def _added_seconds(self, course: Any) -> Any:
        pairs = []
        if any(self.me in y.holders for _, y in course.job.terms):
            Twice.at -= 1
            if Twice.at == 0:
                Twice.step = course.step
                y = course.job.terms[0][1]
                ring, layout = course.widths.ring, course.widths.layouts[0]
                pairs = [(await self._begun(course.left(0)), await self._right(ring, y, layout))]
        made = go.ProductSum.second

        def with_more(total: go.ProductSum) -> Any:
            if pairs:
                total.add_public(pairs)
            return made(total)

        go.ProductSum.second = with_more  # type: ignore[method-assign]
        try:
            return await super()._added_seconds(course)
        finally:
            go.ProductSum.second = made  # type: ignore[method-assign]


def test_what_the_coordinator_adds_to_second_halves_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Twice, "at", 4)
    monkeypatch.setattr(Twice, "step", 0)
    error, tap = run(monkeypatch, Twice)
    assert Twice.step
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    # No decryption share of what the coordinator chose.
    assert all(m.step < Twice.step for m in [*tap.of(mm.MaskedShare), *tap.of(mm.CarriedShare)])
    assert not tap.of(mm.ReleasedShare)


class Another(roles.Coordinator):
    """Goes on with another total than that of the masked shares."""

    step = 0

    async def _multiply_all(self, courses: Any) -> Any:
        shares = await super()._multiply_all(courses)
        step = courses[0].step
        if len(courses) == 1 and step > 10 and not Another.step:
            Another.step = step
            shares[step] = go.from_ints(go.to_ints(shares[step]) + 1, shares[step].shape[2])
        return shares


def test_a_coordinator_that_goes_on_with_another_total_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Another, "step", 0)
    error, tap = run(monkeypatch, Another)
    assert isinstance(error, MessageError)
    assert "hub/coordinator sent p" in str(error)
    assert "not that of the providers' parts" in str(error)
    # Its own product was right; of the next one nobody gives a decryption share.
    assert max(m.step for m in tap.of(mm.MaskedShare)) == Another.step
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
    assert all(m.step < product for m in [*tap.of(mm.MaskedShare), *tap.of(mm.CarriedShare)])


def test_a_masked_share_does_not_come_twice_to_its_carrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would compute with one and vouch for the coordinator's sum of the other."""
    made = roles.Provider._refreshed

    async def twice(self: Any, course: Any, halves: Any) -> Any:
        share = await made(self, course, halves)
        if self.me == "p1/provider":
            step = course.step - 1  # of the encryption: no product's
            await self.net.send(self.providers[0], mm.CarriedShare(step, memoryview(b"x")))
            await self.net.send(self.providers[0], mm.CarriedShare(step, memoryview(b"y")))
        return share

    monkeypatch.setattr(roles.Provider, "_refreshed", twice)
    error, tap = run(monkeypatch)
    assert isinstance(error, MessageError)
    assert "p1/provider sent a masked share twice" in str(error)
    assert not tap.of(mm.ReleasedShare)


def test_masks_are_bound_to_what_was_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that runs again on another encrypted matrix must not mask another first half alike."""
    domains: list[bytes] = []
    made: Callable[..., Any] = go.Secret.refresh

    def kept(
        self: Any, second: Any, layout: Any, clearing: Any, seed: bytes, domain: bytes, ahead: Any
    ) -> Any:
        assert ahead is not None
        domains.append(domain)
        return made(self, second, layout, clearing, seed, domain, ahead)

    read: list[list[bytes]] = []
    lefts = roles.Provider._read

    def seen(self: Any, course: Any) -> list[bytes]:
        read.append(lefts(self, course))
        return read[-1]

    monkeypatch.setattr(go.Secret, "refresh", kept)
    monkeypatch.setattr(roles.Provider, "_read", seen)
    halves: list[bytes] = []
    refreshed = roles.Provider._refreshed

    async def noted(self: Any, course: Any, of_second: Any) -> Any:
        halves.append(of_second[1])
        return await refreshed(self, course, of_second)

    monkeypatch.setattr(roles.Provider, "_refreshed", noted)
    _, tap = run(monkeypatch)
    sent = {digest_of(bytes(m.body)) for m in tap.of(mm.EncryptedMatrix)}
    assert len(domains) == len(read) == 3 * 13
    assert {digest for one in read for digest in one} == sent
    assert all(len(one) == 1 for one in read)
    assert len(set(domains)) == 13  # one for each product, the same for all
    assert set(domains) == {digest_of(second, digest) for second in halves for digest in sent} & set(domains)
    assert not set(domains) & set(halves)
