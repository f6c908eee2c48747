"""What a provider may do that waits: for others' masked shares, or for their accounts, before its own leaves.

A provider that knows the total before it must send its own masked share multiplies by numbers that outgrow
masks, reads bits of the left side from the total, and takes them off its share. So nobody is sent others'
masked shares, and their fingerprints are blinded until the total is out. Here both is taken away as well, and
then the attacks succeed. And what a coordinator may do with totals.
"""

from __future__ import annotations

from math import floor, log2, prod
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_sfpca_ahead import Sent, run
from tests.attacks.test_sfpca_coordinator import plus_one
from tests.support.lying import lying
from tests.support.sfpca_runs import encrypted

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError
from atoll.network import Compared
from atoll.secret_matrices import blinds, courses, roles
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.machine import Job

ROWS, TIMES, FRACTION = 3, 5, 30
SECRET = ((123456789, -17), (987654321, 5), (-55555555, 8))
"""Of the two honest providers: the carrier is after the sum of the first row."""


async def five_products(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """The entries of a secret column times 3/4, in five rounds: it is encrypted once."""
    me = int(machine.me[1]) if machine.me.startswith("p") else None
    own = None if me is None else [[0 if me == 0 else SECRET[i][me - 1]] for i in range(ROWS)]
    x = machine.private(None, own, (ROWS, 1), FRACTION, 1)
    one = None if me is None else np.full((ROWS, 1), 1 << (FRACTION - 2), dtype=np.int64)
    options: dict[str, Any] = {"entrywise": True, "ahead": True}
    made = []
    for i in range(TIMES):
        y = machine.private(None, one, (ROWS, 1), FRACTION, 0)
        made.append(await machine.product((x, y), fraction=FRACTION, bits=2, name=f"{i}", **options))
    return await machine.released(machine.smudged(machine.hstack(made), smudge_bits=8), receivers)


def unpacked(ring: go.Ring, body: Any, count: int) -> list[int]:
    """The values of a message, modulo Q."""
    bits, size, q = go.limits().modulus_bits, len(body) // ring.limbs, prod(ring.moduli)
    found = [0] * count
    for limb, modulus in enumerate(ring.moduli):
        packed = int.from_bytes(bytes(body[limb * size : (limb + 1) * size]), "little")
        rest = q // modulus
        factor = rest * pow(rest, -1, modulus)
        for i in range(count):
            found[i] += (packed >> (bits * i) & ((1 << bits) - 1)) * factor
    return [value % q for value in found]


def packed(ring: go.Ring, values: list[int]) -> memoryview:
    bits, size = go.limits().modulus_bits, (len(values) * go.limits().modulus_bits + 7) // 8
    limbs = [
        sum((value % modulus) << (bits * i) for i, value in enumerate(values)) for modulus in ring.moduli
    ]
    return memoryview(b"".join(limb.to_bytes(size, "little") for limb in limbs))


class Rushing(roles.Provider):
    """A carrier that multiplies by numbers that outgrow masks, and takes away what it reads by them.

    A product by round(Q / 2^j) shows the left number modulo 2^j beyond the masks, given its lower bits:
    the noise of its encryption first, then the number.
    """

    copies: bool = True
    """Whether everybody sends it its masked share as well, as no provider does."""
    known: tuple[int, ...] = (0,) * ROWS
    low = 0

    def _window(self, course: Any) -> tuple[int, int]:
        """Up to which bit this product reads, and by which number."""
        q, c, shift = prod(course.ring.moduli), course.widths.clearing, course.widths.shifts[0]
        spare = floor(log2(q) - (c.mask_bits - 1 + c.parties.bit_length()) - 1)
        top = min(self.low + spare, shift if not self.low else shift + FRACTION + 3)
        return top, (q + (1 << (top - 1))) >> top

    async def _send_second(self, course: Any) -> None:
        if self.me == "p0/provider":
            ((_, y),) = course.job.terms
            values, words = go.to_ints(y.share), go.limits().max_words
            values[0, 0] += self._window(course)[1]
            right = go.Right(
                course.ring, go.from_ints(values, words), 64 * words - 1, course.widths.layouts[0]
            )
            y.cache["right", course.ring.name, course.widths.layouts[0]] = right
        await super()._send_second(course)

    async def _send(self, message: Any) -> None:
        await super()._send(message)
        if Rushing.copies and isinstance(message, mm.MaskedShare) and self.me != "p0/provider":
            await self.net.send(self.providers[0], message)

    async def _refreshed(self, course: Any, halves: Any) -> Any:
        if self.me != "p0/provider" or not Rushing.copies:
            return await super()._refreshed(course, halves)
        held: list[Any] = []

        async def hold(message: Any) -> None:
            held.append(message)

        self._send = hold  # type: ignore[method-assign]
        share = await super()._refreshed(course, halves)
        del self._send
        others = [(await self.net.receive(mm.MaskedShare, member)).body for member in self.providers[1:]]
        masked = self._without(course, held[0].body, others)
        await self._send(structs.replace(held[0], body=masked))
        course.given = None
        await self._give_total(course, masked)
        return share

    def _without(self, course: Any, own: Any, others: list[Any]) -> memoryview:
        """Its masked share, less what it reads from the total."""
        ring, q, shift = course.ring, prod(course.ring.moduli), course.widths.shifts[0]
        total = [
            sum(one) % q for one in zip(*(unpacked(ring, body, ROWS) for body in [own, *others]), strict=True)
        ]
        mine, known, (top, by) = unpacked(ring, own, ROWS), list(self.known), self._window(course)
        for row in range(ROWS):
            rest, width = (total[row] - known[row] * by) % q, top - self.low
            known[row] += (((rest << width) + q // 2) // q % (1 << width)) << self.low
            if top in (shift, shift + FRACTION + 3) or not self.low:
                known[row] -= (1 << top) * (known[row] >> (top - 1) & 1)  # it has a sign
            mine[row] = (mine[row] - known[row] * by) % q
        self.known, self.low = tuple(known), shift if not self.low else top
        Rushing.read = (known[0] + (1 << (shift - 1))) >> shift
        return packed(ring, mine)

    read = 0


def rushed(monkeypatch: pytest.MonkeyPatch, *, copies: bool) -> Any:
    monkeypatch.setattr(Rushing, "read", 0)
    monkeypatch.setattr(Rushing, "copies", copies)
    monkeypatch.setattr(roles, "Provider", Rushing)
    tap = Sent()
    try:
        return encrypted(five_products, [np.eye(3)] * 3, observer=tap)[0], tap
    except AtollError as error:
        return error, tap


def test_a_provider_that_is_sent_masked_shares_first_would_read_the_left_side_unnoticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why no provider is: this is a form of the machine that is not used."""
    found, _ = rushed(monkeypatch, copies=True)
    assert not isinstance(found, AtollError), found
    secret = np.array(SECRET).sum(axis=1)
    assert Rushing.read == secret[0]
    exact = np.repeat(secret[:, None], TIMES, axis=1) * 0.75 / 2.0**FRACTION
    np.testing.assert_allclose(found["p1/provider"], exact, atol=2.0**-18)


def test_a_provider_that_must_give_its_share_first_is_found_out_by_the_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, tap = rushed(monkeypatch, copies=False)
    assert isinstance(error, AtollError)
    assert "wider than its masks" in str(error)
    assert not tap.of(mm.ReleasedShare)
    assert len({m.step for m in tap.of(mm.MaskedShare)}) == 1


@pytest.mark.parametrize("member", ["p0", "p1", "p2"])
def test_every_member_checks_the_width_itself(member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all others, and the coordinator, would go on."""
    checking = roles.Provider._total

    async def alone(self: Any, course: Any) -> Any:
        if self.me.startswith(member):
            return await checking(self, course)
        step = course.step
        while step not in self._totals:
            message = await self.net.receive(mm.MaskedTotal, self.coordinator)
            self._totals[message.step] = message
        came, widths = self._totals[step], course.widths
        if not isinstance(came, courses.Total):
            residues = self._accounts.fingerprint(widths.ring, came.body, course.entries)
            zeros = np.zeros((ROWS, 1, widths.clearing.share_words), np.uint64)
            blind = blinds.residues(widths.ring, came.blind)
            digest = courses.digest_of(courses.digest_of(came.body), came.blind)
            self._totals[step] = courses.Total(residues, blind, digest, zeros)
        return self._totals[step]

    monkeypatch.setattr(roles.Provider, "_total", alone)
    zeros = np.zeros((ROWS, 1, 8), np.uint64)
    monkeypatch.setattr(go.ProductSum, "clear", lambda _, c: zeros[:, :, : c.share_words])
    error, tap = rushed(monkeypatch, copies=False)
    assert isinstance(error, AtollError)
    assert "wider than its masks" in str(error)
    assert not [m for _, sender, m in tap.seen if isinstance(m, mm.ReleasedShare) and sender.party == member]


async def one_product(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """A number times a number: accounts of nothing else follow, before it is released."""
    values = {"p0/provider": 5, "p1/provider": -3, "p2/provider": 8}
    own = [[values[machine.me]]] if machine.me in values else None
    x, y = (machine.private(None, own, (1, 1), 0, 6) for _ in range(2))
    made = await machine.product((x, y), fraction=0, bits=12, name="one", ahead=True)
    return await machine.released(made, receivers)


def heard_shares(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of all providers but the last: whether that one computes their masked shares from their accounts."""
    checks: list[Any] = []
    set_up = roles.Provider.set_up

    async def known(self: Any, *rest: Any) -> None:
        await set_up(self, *rest)
        checks.append(self.checks)

    monkeypatch.setattr(roles.Provider, "set_up", known)
    tap = Sent()
    tap.decoder = Decoder[Message]((*mm.MESSAGES, Compared))
    encrypted(one_product, [np.eye(3)] * 3, observer=tap)
    found = []
    for name in ("p0", "p1"):
        share = next(m for _, a, m in tap.seen if isinstance(m, mm.MaskedShare) and a.party == name)
        note = [m for _, a, m in tap.seen if isinstance(m, Compared) and a.party == name][-1].note
        limbs = next(
            ring
            for ring in (*go.family("wide"), *go.family("deep"))
            if ring.residues_size(1) == len(share.body)
        )
        one = packed(limbs, [1])
        # The map is known to all providers, and so is the weight: one entry is divided out.
        unit, weight = checks[0].fingerprint(limbs, one, 1), [0] * 99
        checks[0]._add(weight, "total", share.step, [1] * len(unit), 1)
        given = [int.from_bytes(note[32 + 7 * i : 39 + 7 * i], "little") for i in range(len(unit))]
        moduli = [q for q in limbs.moduli for _ in range(go.limits().points)]
        heard = [g * pow(u * w, -1, q) % q for g, u, w, q in zip(given, unit, weight, moduli, strict=False)]
        real = [unpacked(limbs, share.body, 1)[0] % q for q in moduli]
        found.append(heard == real)
    return found


def test_accounts_tell_nothing_of_masked_shares_before_the_total_is_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever heard them would know the total before its own share leaves; of one entry, to its last bit."""
    assert heard_shares(monkeypatch) == [False, False]


def test_without_blinds_accounts_would_tell_masked_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blinds, "drawn", lambda ring, _seed, _domain: bytes(blinds.blind_bytes(ring)))
    assert heard_shares(monkeypatch) == [True, True]


def size_of(body: Any, ring: go.Ring) -> int:
    """The entries of a message of few."""
    return next(count for count in range(1, 99) if ring.residues_size(count) == len(body))


def fitting(body: Any, ring: go.Ring, count: int) -> Any:
    """Another share, as wide."""
    values = unpacked(ring, body, count)
    return packed(ring, [value + (1 << 250) for value in values])


def wide(body: Any, ring: go.Ring, count: int) -> Any:
    """A share that no mask explains."""
    return packed(ring, [value + prod(ring.moduli) // 3 for value in unpacked(ring, body, count)])


def short(body: Any, _ring: go.Ring, _count: int) -> Any:
    """One byte less than is due."""
    return memoryview(bytes(body)[:-1])


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize(
    ("lie", "words"),
    [(fitting, "not that of the providers' parts"), (wide, "wider than its masks"), (short, "bytes")],
)
def test_another_masked_share_than_was_booked_ends_the_run(
    lie: Any, words: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a decryption share of anything that was computed from it."""
    ring, told = go.family("deep")[-1], list[int]()

    def another(sender: Any, _receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.MaskedShare) or sender.party != "p1" or message.step < step or told:
            return message
        told.append(message.step)
        return structs.replace(message, body=lie(message.body, ring, size_of(message.body, ring)))

    lying(monkeypatch, another)
    error, tap = run(monkeypatch)
    assert isinstance(error, AtollError)
    assert words in str(error)
    assert max(m.step for m in tap.of(mm.MaskedShare)) == told[0]
    assert not tap.of(mm.ReleasedShare)


def shifted(message: mm.MaskedTotal) -> mm.MaskedTotal:
    """Another total, as wide."""
    ring = go.family("deep")[-1]
    return structs.replace(message, body=fitting(message.body, ring, size_of(message.body, ring)))


def blinded(message: mm.MaskedTotal) -> mm.MaskedTotal:
    """Another sum of blinds."""
    blind = bytearray(message.blind)
    blind[0] ^= 1
    return structs.replace(message, blind=bytes(blind))


def both(message: mm.MaskedTotal) -> mm.MaskedTotal:
    """Another total, and another sum."""
    return blinded(shifted(message))


@pytest.mark.parametrize("lie", [shifted, blinded, both])
@pytest.mark.parametrize("victims", [("p0", "p1", "p2"), ("p0",), ("p2",)])
def test_a_coordinator_that_sends_another_total_is_found_out(
    lie: Any, victims: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To all or to one: the provider that is sent it gives no decryption share any more."""
    told: list[int] = []

    def another(_sender: Any, receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.MaskedTotal) or message.step < 10 or receiver.party not in victims:
            return message
        told.append(message.step)
        return lie(message) if message.step == told[0] else message

    lying(monkeypatch, another)
    error, tap = run(monkeypatch)
    assert isinstance(error, MessageError)
    assert "hub/coordinator sent p" in str(error)
    assert "not that of the providers' parts" in str(error)
    after = {a.party for _, a, m in tap.seen if isinstance(m, mm.MaskedShare) and m.step > told[0]}
    assert not after & set(victims)
    assert not tap.of(mm.ReleasedShare)


async def opened_product(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """A product that goes ahead, of which the result is opened at once."""
    own = None if inputs.moments is None else np.ones((ROWS, 1), np.int64)
    x, y = (machine.private(None, own, (ROWS, 1), 0, 2) for _ in range(2))
    made = await machine.product((x, y), fraction=0, bits=4, name="one", entrywise=True, ahead=True)
    return await machine.opened(made, smudge_bits=0)


@pytest.mark.parametrize("victim", ["p0", "p1", "p2"])
def test_a_total_is_compared_before_an_opening(victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(_sender: Any, receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.MaskedTotal) or receiver.party != victim:
            return message
        ring = next(
            one
            for one in (*go.family("wide"), *go.family("deep"))
            if one.residues_size(ROWS) == len(message.body)
        )
        body = packed(ring, [value + 2**90 for value in unpacked(ring, message.body, ROWS)])
        return structs.replace(message, body=body)

    tap = Sent()
    opened = encrypted(opened_product, [np.eye(3)] * 3)[0]["p0/provider"]
    np.testing.assert_allclose(opened, 9, atol=3)
    lying(monkeypatch, another)
    with pytest.raises(MessageError, match="not that of the providers' parts"):
        encrypted(opened_product, [np.eye(3)] * 3, observer=tap)
    assert victim not in {a.party for _, a, m in tap.seen if isinstance(m, mm.OpenedShare)}


@pytest.mark.parametrize("blind", [b"", b"\xff" * 112])
def test_a_blind_that_is_none_ends_the_run(blind: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(sender: Any, _receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.MaskedShare) or sender.party != "p1":
            return message
        return structs.replace(message, blind=blind)

    lying(monkeypatch, another)
    error, _ = run(monkeypatch)
    assert isinstance(error, MessageError)
    assert "a blind has" in str(error)


class Vouching(roles.Provider):
    """One provider tells another that it gave what the coordinator adds to that one's encrypted matrix."""

    async def _tell(self) -> Any:
        if self.me != "p2/provider" or self._pending[0].step != 2:
            return await super()._tell()
        ((left, step),) = self._coming
        added = plus_one(bytes(left.layout.left_polys * left.ring.poly_size), left.ring.degree)
        residues = self._accounts.fingerprint(left.ring, added, left.ring.degree)
        given = ("encrypted", step, residues)
        self._accounts.give(left.group, *given, readers=left.readers)
        notes = self._accounts.notes(self.me)
        self._accounts.give(left.group, *given, -1, readers=left.readers)
        victim, net = self.providers[1], self.net

        class Lying:
            def __getattr__(self, name: str) -> Any:
                return getattr(net, name)

            async def tell(self, topic: str, digest: bytes, group: Any, note: bytes) -> None:
                await net.send(victim, Compared(topic, digest, notes))
                await net.tell(topic, digest, [member for member in group if member != victim], note)

        self.net = Lying()
        told = await super()._tell()
        self.net = net
        return told


def test_another_encrypted_matrix_that_a_provider_vouches_for_shows_in_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with second halves: before a decryption share of anything that was made of this product leaves."""

    def another(_sender: Any, receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.EncryptedMatrix) or message.step > 1 or receiver.party != "p1":
            return message
        return mm.EncryptedMatrix(1, plus_one(message.body, go.family("deep")[-1].degree))

    # What decrypts to nonsense may be refused even before.
    monkeypatch.setattr(
        go, "clear_total", lambda _r, y, _b, c: np.zeros((y.rows, y.cols, c.share_words), "u8")
    )
    monkeypatch.setattr(go.ProductSum, "clear", lambda self, c: go.clear_total(None, self.layout, None, c))
    lying(monkeypatch, another)
    monkeypatch.setattr(roles, "Provider", Vouching)
    error, tap = run(monkeypatch)
    assert isinstance(error, MessageError)
    assert "hub/coordinator told" in str(error)
    assert {m.step for m in tap.of(mm.MaskedShare)} == {2}
    assert not tap.of(mm.ReleasedShare)


def number(machine: Any, owner: str, value: int) -> Any:
    """One provider's number."""
    return machine.private(owner, [[value << 40]] if machine.me == owner else None, (1, 1), 40, 4)


async def of_two_then_all(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """Products whose parts others carry than those that carry the results; some go ahead."""
    ahead: dict[str, Any] = {"fraction": 40, "ahead": True}
    two = number(machine, "p1/provider", 3), number(machine, "p2/provider", 2)
    six = await machine.product(two, bits=6, name="of two", **ahead)
    five = number(machine, "p0/provider", 5)
    right = await machine.product((five, six), bits=10, name="right", **ahead)
    left = await machine.product((six, five), bits=10, name="left", **ahead)
    beside = await machine.products(
        [
            Job(((right, six),), 40, 14, "ahead", ahead=True),
            Job(((right, left),), 40, 14, "not ahead"),
        ]
    )
    return await machine.released(machine.hstack([right, left, *beside]), receivers)


@pytest.mark.parametrize("name", ["", "of two", "right", "ahead", "not ahead"])
def test_what_another_group_carries_is_checked_as_well(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where products that go ahead and others share a round, and a left side."""
    steps: list[int] = []
    made = roles.Coordinator._add_shares

    async def noted(self: Any, course: Any, total: Any) -> bytes:
        steps.extend([course.step] if course.job.name == name else [])
        return await made(self, course, total)

    def another(_sender: Any, _receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.MaskedTotal) or message.step not in steps:
            return message
        ring = next(one for one in go.family("deep") if one.residues_size(1) == len(message.body))
        body = packed(ring, [unpacked(ring, message.body, 1)[0] + 2**99])
        return structs.replace(message, body=memoryview(body))

    monkeypatch.setattr(roles.Coordinator, "_add_shares", noted)
    lying(monkeypatch, another)
    tap = Sent()
    if not name:
        found = encrypted(of_two_then_all, [np.eye(3)] * 4, observer=tap)[0]
        np.testing.assert_allclose(found["p3/provider"], [[30, 30, 180, 900]], atol=2.0**-20)
        return
    with pytest.raises(AtollError, match=r"not that of the providers' parts"):
        encrypted(of_two_then_all, [np.eye(3)] * 4, observer=tap)
    members = {"p1", "p2"} if name == "of two" else {"p0", "p1", "p2"}
    # Nobody who was sent that total goes on; who has no part in it has nothing to release.
    last = max(m.step for m in tap.of(mm.MaskedShare))
    assert last == steps[0] + (name == "ahead")
    assert not {a.party for _, a, m in tap.seen if isinstance(m, mm.ReleasedShare)} & members
