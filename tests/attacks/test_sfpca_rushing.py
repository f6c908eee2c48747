"""What parties may do with masked shares that travel ahead: a carrier that sends its own last, and providers
that send the coordinator and the carrier different ones."""

from __future__ import annotations

from math import floor, log2, prod
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_sfpca_ahead import Sent, run
from tests.attacks.test_sfpca_coordinator import plus_one
from tests.support.lying import lying
from tests.support.sfpca_runs import encrypted

from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError
from atoll.network import Compared
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import roles
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

    last: bool = True
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

    async def _refreshed(self, course: Any, halves: Any) -> Any:
        if self.me != "p0/provider" or not Rushing.last:
            return await super()._refreshed(course, halves)
        held: list[Any] = []
        send = self._send

        async def hold(message: Any) -> None:
            held.append(message)

        self._send = hold  # type: ignore[method-assign]
        share = await super()._refreshed(course, halves)
        self._send = send  # type: ignore[method-assign]
        for member in self.providers[1:]:
            message = await self.net.receive(mm.CarriedShare, member)
            self._copied[member, message.step] = message.body
        course.masked = self._without(course, held[0].body)
        await self._send(mm.MaskedShare(course.step, course.masked))
        return share

    def _without(self, course: Any, own: Any) -> memoryview:
        """Its masked share, less what it reads from the total."""
        ring, q, shift = course.ring, prod(course.ring.moduli), course.widths.shifts[0]
        total = unpacked(ring, go.add_residues(ring, ROWS, [own, *self._copied.values()]), ROWS)
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


def rushed(monkeypatch: pytest.MonkeyPatch, *, last: bool) -> Any:
    monkeypatch.setattr(Rushing, "read", 0)
    monkeypatch.setattr(Rushing, "last", last)
    monkeypatch.setattr(roles, "Provider", Rushing)
    tap = Sent()
    try:
        return encrypted(five_products, [np.eye(3)] * 3, observer=tap)[0], tap
    except AtollError as error:
        return error, tap


def test_a_carrier_that_sends_its_share_last_reads_the_left_side_unnoticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not prevented (docs/explanation/threat-models.md): it has the total before it gives its own share."""
    found, _ = rushed(monkeypatch, last=True)
    assert not isinstance(found, AtollError), found
    secret = np.array(SECRET).sum(axis=1)
    assert Rushing.read == secret[0]
    exact = np.repeat(secret[:, None], TIMES, axis=1) * 0.75 / 2.0**FRACTION
    np.testing.assert_allclose(found["p1/provider"], exact, atol=2.0**-18)


def test_a_carrier_that_has_given_its_share_is_found_out_by_the_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, tap = rushed(monkeypatch, last=False)
    assert isinstance(error, AtollError)
    assert "wider than its masks" in str(error)
    assert not tap.of(mm.ReleasedShare)


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


@pytest.mark.parametrize(
    ("lie", "words"),
    [(fitting, "not that of the providers' parts"), (wide, "wider than its masks"), (short, "bytes, not")],
)
def test_another_copy_for_the_carrier_ends_the_run(
    lie: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a decryption share of anything that was computed from either."""
    ring, told = go.family("deep")[-1], list[int]()

    def another(_sender: Any, _receiver: Any, message: Any) -> Any:
        if not isinstance(message, mm.CarriedShare) or told:
            return message
        told.append(message.step)
        return mm.CarriedShare(message.step, lie(message.body, ring, ROWS))

    lying(monkeypatch, another)
    error, tap = run(monkeypatch)
    assert isinstance(error, AtollError)
    assert words in str(error)
    assert max(m.step for m in tap.of(mm.MaskedShare)) == told[0]
    assert not tap.of(mm.ReleasedShare)


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


@pytest.mark.parametrize("name", ["", "right", "ahead"])
def test_what_another_group_carries_is_checked_as_well(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where products that go ahead and others share a round, and a left side."""
    steps: list[int] = []

    class More(roles.Coordinator):
        async def _added_seconds(self, course: Any) -> Any:
            if course.job.name == name:
                steps.append(course.step)
                y = course.job.terms[0][1]
                y.cache.clear()
                np.asarray(y.share)[...] = go.from_ints(go.to_ints(y.share) + 1, y.share.shape[2])
            return await super()._added_seconds(course)

    monkeypatch.setattr(roles, "Coordinator", More)
    tap = Sent()
    if not name:
        found = encrypted(of_two_then_all, [np.eye(3)] * 4, observer=tap)[0]
        np.testing.assert_allclose(found["p3/provider"], [[30, 30, 180, 900]], atol=2.0**-20)
        return
    with pytest.raises(MessageError, match="not that of the providers' parts"):
        encrypted(of_two_then_all, [np.eye(3)] * 4, observer=tap)
    assert all(m.step < steps[0] for m in [*tap.of(mm.MaskedShare), *tap.of(mm.CarriedShare)])
