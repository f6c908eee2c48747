"""Attacks on what providers compare, taken as a whole: numbers that only look like the sum, masked totals
that come twice, sums that come again, at another's place or not at all, and providers that help.

Written by somebody who did not write the checks.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_sfpca_coordinator import Change, Relay, Sent, honest, plus_one, run, tables
from tests.support.examples import sfpca, sfpca_columns
from tests.support.sfpca_runs import encrypted

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError, ParameterError, RangeOverflow
from atoll.network import Compared
from atoll.protocols.pca.sfpca import messages as m
from atoll.protocols.pca.sfpca import protocol
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine, Observer
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import openings, roles
from atoll.study.address import Address

MERSENNE = (2**127 - 1) * (2**61 - 1)
"""What fingerprints of opened numbers were, or might be, taken modulo: everybody knows these primes."""


class Multiples(roles.Coordinator):
    """Adds multiples of well-known primes to the opened spectrum, so that the last component comes first."""

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        if x.shape == (1, 1):
            return await super().opened(x, smudge_bits=smudge_bits)
        step, upper = self.next_step(), np.triu_indices(3)
        arrived = await self.net.gather(mm.OpenedShare, self.providers)
        words = openings.added_up([openings.share_words(arrived[p], step, x) for p in self.providers])
        Z = np.zeros((3, 3))
        Z[upper] = openings.floats(words, x.fraction)[:, 0]
        U = np.linalg.eigh(Z + np.triu(Z, 1).T)[1]
        wanted = (U * [3.0, 2.0, 1.0]) @ U.T
        added = [MERSENNE * round(v * 2**30) for v in wanted[upper]]
        values = go.to_ints(words) + np.array(added, dtype=object)[:, None]
        words = go.from_ints(values, go.limits().max_words)
        await self.net.broadcast(self.providers, mm.OpenedMatrix(step, words))
        return openings.floats(words, x.fraction)


def test_a_spectrum_that_is_off_by_multiples_of_a_known_prime_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fixed modulus it was released in any order that the coordinator liked, the last one first."""
    error, tap = run(honest, monkeypatch, Multiples)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.ReleasedShare) == 0


def plus(body: bytes, ring: go.Ring, entries: int, place: int, added: int) -> bytes:
    """Packed residues of which one stands for a number that is so much larger."""
    size, out = (entries * 52 + 7) // 8, b""
    for limb, q in enumerate(ring.moduli[: ring.limbs]):
        whole = int.from_bytes(body[limb * size : (limb + 1) * size], "little")
        at = 52 * place
        old = (whole >> at) & (2**52 - 1)
        out += (whole + (((old + added) % q - old) << at)).to_bytes(size, "little")
    return out


class Twice(roles.Coordinator):
    """Sends the carrier a wrong masked total, and the right one while it waits for the next."""

    changed = 0

    async def _multiply_all(self, courses: Any) -> Any:
        if len(courses) < 2 or Twice.changed:
            return await super()._multiply_all(courses)
        Twice.changed = 1
        sums = [(course, await self._added_products(course)) for course in courses]
        shares, sent = {}, []
        for course, total in sums:
            members = self._members(course.group)
            blind = await self._add_shares(course, total)
            sent.append((members[0], mm.MaskedTotal(course.step, bytes(total.total()), blind)))
            shares[course.step] = total.clear(course.widths.clearing)
        course, (carrier, right) = courses[0], sent[0]
        ring, y, clearing = course.widths.ring, course.widths.layouts[0], course.widths.clearing
        # A tenth of the range squared, at the place of the first two columns: the trace stays as it is.
        wrong = plus(right.body, ring, y.rows * y.cols, 1, (1 << clearing.value_bits) // 10)
        shares[course.step] = go.clear_total(ring, y, wrong, clearing)
        for to, message in [(carrier, structs.replace(right, body=wrong)), *sent]:
            await self.net.send(to, message)
        return shares


def test_a_masked_total_does_not_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one was computed with, the second one compared: the covariance was off by what was added."""
    monkeypatch.setattr(Twice, "changed", 0)
    monkeypatch.setattr(roles, "Coordinator", Twice)
    example = sfpca_columns(bounds=64.0)
    with pytest.raises(MessageError, match="twice"):
        run_study(example.study, example.own)


# ---- sums that were right, elsewhere ----


class Watched(Sent):
    """Of SF-PCA's machines, beside those of the first exchanges."""

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        with suppress(MessageError):
            super().sent(sender, receiver, data)


def liar(change: Change) -> type[roles.Coordinator]:
    class Liar(roles.Coordinator):
        def __init__(self, net: Any, *rest: Any) -> None:
            super().__init__(net, *rest)
            self.net = Relay(net, change)

    return Liar


def refused(example: Any, coordinator: type, monkeypatch: pytest.MonkeyPatch) -> tuple[AtollError, Watched]:
    tap = Watched()
    monkeypatch.setattr(roles, "Coordinator", coordinator)
    with pytest.raises(AtollError) as found:
        LocalEngine().run(protocol.PROTOCOL, example.study, example.own, observer=tap)
    return found.value, tap


RECIPES = {
    "strict": lambda: sfpca(recipe="strict", bounds=64.0),
    "standardised": lambda: sfpca(standardize=True, bounds=64.0),
    "columns": lambda: sfpca_columns(bounds=64.0),
    "columns, strict": lambda: sfpca_columns(bounds=64.0, recipe="strict"),
}


def body_of(message: Any) -> Any:
    return message.words if isinstance(message, mm.OpenedMatrix) else message.body


def again(kind: type, told: list[int]) -> Change:
    """What was sent the first time, under this step's number."""
    first: dict[tuple[str, int], Any] = {}

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, kind):
            return message
        body = body_of(message)
        body = np.array(body) if isinstance(body, np.ndarray) else bytes(body)
        before = first.setdefault((address.party, len(body)), body)
        if before is body:
            return message
        told.append(message.step)
        return type(message)(message.step, before, *([message.blind] if kind is mm.MaskedTotal else []))

    return change


CASES = [
    (recipe, kind) for recipe in RECIPES for kind in (mm.EncryptedMatrix, mm.SecondHalves, mm.MaskedTotal)
]


@pytest.mark.parametrize(("recipe", "kind"), [*CASES, ("strict", mm.OpenedMatrix)])
def test_a_sum_of_an_earlier_step_is_found_out(
    recipe: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    error, tap = refused(RECIPES[recipe](), liar(again(kind, told)), monkeypatch)
    assert told
    # A total of other masks may be wider than its own, or make a total variance that no table has.
    assert isinstance(error, MessageError | RangeOverflow | ParameterError)
    assert tap.count(mm.ReleasedShare) == 0


class Exchanging(roles.Coordinator):
    """Exchanges the sums of two products of one shape that are under way together."""

    told = 0

    async def _multiply_all(self, courses: Any) -> Any:
        sizes = [(course.widths.ring, course.widths.layouts[0].out_polys) for course in courses]
        if len(courses) < 2 or sizes[0] != sizes[1]:
            return await super()._multiply_all(courses)
        held: list[tuple[Any, Any]] = []
        pair = {courses[0].step: courses[1].step, courses[1].step: courses[0].step}
        net = self.net

        class Lying:
            def __getattr__(self, name: str) -> Any:
                return getattr(net, name)

            async def broadcast(self, to: Any, message: Any) -> None:
                if not isinstance(message, mm.SecondHalves) or message.step not in pair:
                    return await net.broadcast(to, message)
                held.append((to, message))
                if len(held) < 2:
                    return None
                Exchanging.told += 1
                (first, one), (second, other) = held
                await net.broadcast(first, mm.SecondHalves(one.step, other.body))
                return await net.broadcast(second, mm.SecondHalves(other.step, one.body))

        self.net = Lying()
        return await super()._multiply_all(courses)


@pytest.mark.parametrize("recipe", ["columns", "columns, strict"])
def test_sums_of_two_products_of_one_round_are_not_exchanged(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exchanging, "told", 0)
    error, tap = refused(RECIPES[recipe](), Exchanging, monkeypatch)
    assert Exchanging.told == 1
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.ReleasedShare) == 0


class Withholding(Relay):
    async def send(self, to: Address, message: Any) -> None:
        if not (isinstance(message, self._change) and to.party == "island-2"):  # type: ignore[arg-type]
            await self._net.send(to, message)


@pytest.mark.parametrize("kind", [mm.EncryptedMatrix, mm.SecondHalves])
@pytest.mark.parametrize("recipe", ["strict", "standardised"])
def test_nobody_goes_on_without_one_who_was_sent_nothing(
    recipe: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a matrix, its account is missing; of second halves, its share, without which a total is a mask."""

    class Silent(roles.Coordinator):
        def __init__(self, net: Any, *rest: Any) -> None:
            super().__init__(net, *rest)
            self.net = Withholding(net, kind)  # type: ignore[arg-type]

    error, tap = refused(RECIPES[recipe](), Silent, monkeypatch)
    assert "island-2" in str(error)
    assert mm.MaskedShare not in tap.kinds["island-2"]
    # The right sum of one round; nobody's second encryption or product.
    once = max(kinds.count(mm.ProductPart) for kinds in tap.kinds.values())
    assert tap.count(mm.MaskedShare) == (once if kind is mm.SecondHalves else 0)


# ---- one matrix, encrypted twice ----


async def two_readers(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """x times a matrix of p1's, then times one of p2's: x is encrypted once more, for both."""
    everybody, names = inputs.moments is not None, ("p1/provider", "p2/provider")
    x = machine.private(None, np.arange(4).reshape(2, 2) << 20 if everybody else None, (2, 2), 20, 4)
    out = []
    for name, factor in [*zip(names, (3, 5), strict=True), (names[0], 7)]:
        own = np.eye(2, dtype=np.int64) * (factor << 20) if machine.me == name else None
        y = machine.private(name, own, (2, 2), 20, 4)
        made = await machine.product((x, y), fraction=40, bits=9, name="times y")
        out.append(await machine.released(made, receivers))
    return out


class Matrices(Observer):
    """Encrypted matrices on their way, by receiver."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, int, bytes]] = []
        self.shares: list[str] = []
        self.decoder = Decoder[Message](m.MESSAGES)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(bytes(data))
        if isinstance(message, mm.MaskedShare):
            self.shares.append(sender.party)
        if isinstance(message, mm.EncryptedMatrix):
            self.bodies.append((receiver.party, message.step, bytes(message.body)))


def test_a_second_encryption_is_of_the_same_matrix_for_old_and_new_readers() -> None:
    tap = Matrices()
    results, _ = encrypted(two_readers, tables(), observer=tap)
    x = 3 * np.arange(4).reshape(2, 2)  # of three providers
    for name in ("p0/provider", "p1/provider", "p2/provider"):
        np.testing.assert_allclose(results[name], [3 * x, 5 * x, 7 * x], atol=2.0**-30)
    assert [name for name, _, _ in tap.bodies] == ["p1", "p1", "p2"]
    first, second, also = (body for _, _, body in tap.bodies)
    assert second == also != first


@pytest.mark.parametrize("victims", [("p1",), ("p2",), ("p1", "p2")])
def test_the_first_encryption_does_not_pass_for_the_second(
    victims: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the second one's polynomials it decrypts to noise; or, with both, each reader has another."""
    first: list[bytes] = []

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, mm.EncryptedMatrix):
            return message
        first.append(bytes(message.body))
        return mm.EncryptedMatrix(message.step, first[0]) if address.party in victims else message

    monkeypatch.setattr(roles, "Coordinator", liar(change))
    tap = Matrices()
    with pytest.raises(MessageError, match=r"hub/coordinator (told|sent)"):
        encrypted(two_readers, tables(), observer=tap)
    # Of the first product; of the second, from none that multiplies with the matrix.
    assert sorted(tap.shares[:3]) == ["p0", "p1", "p2"]
    assert set(tap.shares[3:]) <= {"p0"}


# ---- carriers ----


class LyingCarrier(roles.Provider):
    """Adds one to what it carries for the coordinator: in its accounts, or in what it computes with."""

    books = True

    async def _total(self, course: Any) -> Any:
        total = await super()._total(course)
        if self.me != "p0/provider":
            return total
        share = go.to_ints(total.share)
        share[0, 0] += 1 << 30
        changed = total._replace(share=go.from_ints(share, total.share.shape[2]))
        residues = [value + 1 for value in total.residues]
        return changed._replace(residues=residues) if self.books else changed


async def squared_twice(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    own = None if inputs.moments is None else np.eye(2, dtype=np.int64) << 40
    x = machine.private(None, own, (2, 2), 40, 4)
    made = await machine.product((x, x), fraction=40, bits=8, name="square")
    made = await machine.product((x, made), fraction=40, bits=12, name="cube")
    return await machine.released(made, receivers)


@pytest.mark.parametrize("books", [True, False])
def test_what_a_carrier_alone_can_do(books: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong account it ends the run, and the coordinator is suspected; with a wrong share the result
    is off by what any provider could have added to its own part."""
    monkeypatch.setattr(LyingCarrier, "books", books)
    monkeypatch.setattr(roles, "Provider", LyingCarrier)
    if books:
        with pytest.raises(MessageError, match="not that of the providers' parts") as found:
            encrypted(squared_twice, tables())
        assert "or a provider's account, is wrong" in str(found.value.hint)
        return
    results, _ = encrypted(squared_twice, tables())
    off = results["p1/provider"] - 27 * np.eye(2)
    np.testing.assert_allclose(off, [[4 * 2.0**-10, 0], [0, 0]], atol=2.0**-30)


# ---- second halves that differ, vouched for ----


async def among_three_then_all(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """A product that concerns three of four providers, then one of everybody's."""
    one = np.eye(2, dtype=np.int64) << 40
    a, b, c = (
        machine.private(name, one if machine.me == name else None, (2, 2), 40, 4)
        for name in ("p0/provider", "p1/provider", "p2/provider")
    )
    await machine.product((a, b), (c, b), fraction=40, bits=8, name="of three")
    x = machine.private(None, None if inputs.moments is None else one, (2, 2), 40, 4)
    return await machine.released(
        await machine.product((x, x), fraction=40, bits=8, name="of all"), receivers
    )


class Vouching(roles.Provider):
    """One provider tells another that it gave what the coordinator adds for that one."""

    async def _tell(self) -> Any:
        if self.me != "p2/provider" or self._pending[0].job.name != "of three":
            return await super()._tell()
        (course,) = self._pending
        ring, polys = course.widths.ring, course.widths.layouts[0].out_polys
        added = plus_one(bytes(polys * ring.poly_size), ring.degree)
        residues = self._accounts.fingerprint(ring, added, ring.degree)
        self._accounts.give(course.group, "second", course.step, residues)
        notes = self._accounts.notes(self.me)
        self._accounts.give(course.group, "second", course.step, residues, -1)
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


def test_second_halves_that_differ_show_before_the_next_decryption_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who is vouched for takes another sum for the right one, in that round alone: the digests are compared
    in the next, whoever that one concerns."""
    first: list[int] = []

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, mm.SecondHalves):
            return message
        first.append(message.step)
        if address.party != "p1" or message.step != first[0]:
            return message
        return mm.SecondHalves(message.step, plus_one(message.body, go.family("deep")[0].degree))

    # What decrypts to nonsense may be refused even before.
    monkeypatch.setattr(
        go, "clear_total", lambda _r, y, _b, c: np.zeros((y.rows, y.cols, c.share_words), "u8")
    )
    monkeypatch.setattr(go.ProductSum, "clear", lambda self, c: go.clear_total(None, self.layout, None, c))
    monkeypatch.setattr(roles, "Coordinator", liar(change))
    monkeypatch.setattr(roles, "Provider", Vouching)
    tap = Matrices()
    with pytest.raises(MessageError, match="hub/coordinator told"):
        encrypted(among_three_then_all, tables(4), observer=tap)
    # Of the first product; of the second, from none whom the first one concerned.
    assert sorted(tap.shares[:3]) == ["p0", "p1", "p2"]
    assert set(tap.shares[3:]) <= {"p3"}
