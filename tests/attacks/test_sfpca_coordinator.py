"""A coordinator that deviates: other bytes for two providers, wrong sums, keys of its own choice.

Each attack runs with a coordinator that carries it out. It is found out before a share is opened, or, where
what was opened is what it lied about, before the next one is. ``unchecked`` puts back what 0.1.0 did: it
compared nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.sfpca_runs import Opened, direct, encrypted

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError
from atoll.protocols.pca.sfpca import messages as m
from atoll.runtime.engine import Observer
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import roles
from atoll.secret_matrices.machine import EVERY_PRECISION, Job, Shared
from atoll.secret_matrices.widths import rings_for, widths_for
from atoll.study.address import Address

Change = Callable[[Address, Any], Any]


def tables(count: int = 3) -> list[np.ndarray]:
    """Islands whose columns add up to zero."""
    rng = np.random.default_rng(3)
    blocks = [rng.normal(size=(20, 3)) * [3, 2, 1] @ rng.normal(size=(3, 3)) for _ in range(count)]
    return [np.round(block - block.mean(axis=0), 6) for block in blocks]


class Sent(Observer):
    """What left every role."""

    def __init__(self) -> None:
        self.decoder = Decoder[Message](m.MESSAGES)
        self.kinds: dict[str, list[type]] = defaultdict(list)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.kinds[sender.party].append(type(self.decoder.decode(bytes(data))))

    def count(self, kind: type) -> int:
        return max(kinds.count(kind) for kinds in self.kinds.values())


class Relay:
    """The coordinator's network, with its messages changed on the way out."""

    def __init__(self, net: Any, change: Change) -> None:
        self._net, self._change = net, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._net, name)

    async def send(self, to: Address, message: Any) -> None:
        await self._net.send(to, self._change(to, message))

    async def broadcast(self, to: Any, message: Any) -> None:
        for address in to:
            await self.send(address, message)


def run(change: Change, monkeypatch: pytest.MonkeyPatch, base: type = roles.Coordinator) -> tuple[Any, Sent]:
    """The direct recipe under such a coordinator."""

    class Cheating(base):  # type: ignore[misc,valid-type]
        def __init__(self, net: Any, *rest: Any) -> None:
            super().__init__(net, *rest)
            self.net = Relay(net, change)

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        found = await direct(machine, inputs, 3, receivers)
        await machine.check(last=True)
        return found

    monkeypatch.setattr(roles, "Coordinator", Cheating)
    tap = Sent()
    try:
        return encrypted(program, tables(), observer=tap)[0], tap
    except AtollError as error:
        return error, tap


def honest(_: Address, message: Any) -> Any:
    return message


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1.0: whatever the coordinator sent was used."""

    async def nothing(self: Any, *_: Any, last: bool = False) -> None:
        pass

    monkeypatch.setattr(roles.Provider, "check", nothing)
    monkeypatch.setattr(roles.Provider, "_tell", nothing)
    monkeypatch.setattr(roles.Provider, "_compare", nothing)


def test_an_honest_coordinator_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    results, tap = run(honest, monkeypatch)
    X = np.vstack(tables())
    exact = np.linalg.eigh(np.cov(X.T))[1][:, ::-1].T
    found = results["p0/provider"]
    assert isinstance(found, Opened)
    np.testing.assert_allclose(np.abs(found.components @ exact.T), np.eye(3), atol=1e-6)
    assert tap.count(mm.OpenedShare) == 2


def zeros(body: Any) -> bytes:
    return bytes(len(body))


def plus_one(body: Any, entries: int) -> bytes:
    """Residues of which the first stands for a number that is one larger."""
    data, size = bytearray(body), (entries * 52 + 7) // 8
    for limb in range(len(data) // size):
        at = limb * size
        first = int.from_bytes(data[at : at + 7], "little")
        data[at : at + 7] = (first + 1).to_bytes(7, "little")
    return bytes(data)


def lie(kind: type, to: str | None, say: Callable[[Any], Any]) -> Change:
    """Other bytes of this kind for one provider, or for all."""

    def change(address: Address, message: Any) -> Any:
        return say(message) if isinstance(message, kind) and to in (None, address.party) else message

    return change


def other_body(message: Any) -> Any:
    return type(message)(message.step, zeros(message.body))


@pytest.mark.parametrize("kind", [mm.EncryptedMatrix, mm.SecondHalves])
@pytest.mark.parametrize("to", ["p0", "p2", None], ids=["to the carrier", "to another", "to all"])
def test_other_ciphertexts_are_found_out_before_anything_is_opened(
    kind: type, to: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told differently to one, or a sum that is not the sum."""
    # A masked value that decrypts to nonsense may be refused even before.
    monkeypatch.setattr(
        go, "clear_total", lambda _r, y, _b, c: np.zeros((y.rows, y.cols, c.share_words), "u8")
    )
    monkeypatch.setattr(go.ProductSum, "clear", lambda self, c: go.clear_total(None, self.layout, None, c))
    error, tap = run(lie(kind, to, other_body), monkeypatch)
    assert isinstance(error, MessageError)
    assert "hub/coordinator" in str(error)
    # Who was sent another sum than that of the parts gives nothing more; without its share nothing is opened.
    assert mm.OpenedShare not in tap.kinds[to or "p0"]
    if kind is mm.EncryptedMatrix or to is None:
        assert tap.count(mm.OpenedShare) == 0


def no_refusal(honest: Callable[..., Any]) -> Callable[..., Any]:
    """A masked value that decrypts to nonsense is not refused, but taken for zero."""

    def cleared(first: Any, *rest: Any) -> Any:
        try:
            return honest(first, *rest)
        except AtollError:
            layout, clearing = rest[0] if len(rest) > 1 else first.layout, rest[-1]
            return np.zeros((layout.rows, layout.cols, clearing.share_words), "u8")

    return cleared


def test_a_matrix_that_one_provider_alone_reads_is_checked_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first rotation p0 encrypts and p1 multiplies: p0 is not sent the sum, p1 checks it."""
    monkeypatch.setattr(go, "clear_total", no_refusal(go.clear_total))
    monkeypatch.setattr(go.ProductSum, "clear", no_refusal(go.ProductSum.clear))
    received: dict[int, set[str]] = defaultdict(set)
    alone: list[int] = []

    class Other(roles.Coordinator):
        async def _encrypt_all(self, wanted: Any, courses: Any) -> None:
            alone.extend(step for left, step in wanted if len(left.readers) == 1)
            await super()._encrypt_all(wanted, courses)

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, mm.EncryptedMatrix):
            return message
        received[message.step].add(address.party)
        return other_body(message) if message.step in alone[:1] else message

    error, tap = run(change, monkeypatch, Other)
    assert isinstance(error, MessageError)
    assert "hub/coordinator sent p1/provider a sum that is not" in str(error)
    assert received[alone[0]] == {"p1"}
    assert tap.count(mm.OpenedShare) <= 1  # the trace at most, before any rotation
    assert tap.count(mm.ReleasedShare) == 0


def test_a_masked_total_that_is_off_by_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the covariance (3 x 3): used before the spectrum is opened, which therefore is not."""
    seen: list[int] = []

    def change(address: Address, message: Any) -> Any:
        if isinstance(message, mm.MaskedTotal) and not seen:
            seen.append(message.step)
            return structs.replace(message, body=plus_one(message.body, 9))
        return message

    error, tap = run(change, monkeypatch)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.OpenedShare) == 1  # the trace, which only the coordinator's own lie could change


def turned_sign(message: Any) -> Any:
    """A decomposition as good as the other: nobody can object to it alone."""
    values = np.array(message.values)
    values[1:, 0] *= -1
    return mm.PublicNumbers(message.step, values)


def other_words(message: Any) -> Any:
    words = np.array(message.words)
    words[0, 0, 0] += np.uint64(1)
    return mm.OpenedMatrix(message.step, words)


@pytest.mark.parametrize("to", ["p1", None])
def test_another_opened_matrix_is_found_out_before_the_next_opening(
    to: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, tap = run(lie(mm.OpenedMatrix, to, other_words), monkeypatch)
    assert isinstance(error, MessageError)
    assert "hub/coordinator" in str(error)
    assert tap.count(mm.OpenedShare) == 1
    assert tap.count(mm.ReleasedShare) == 0


def test_eigenvectors_that_differ_in_sign_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tap = run(lie(mm.PublicNumbers, "p1", turned_sign), monkeypatch)
    assert isinstance(error, MessageError)
    assert "hub/coordinator told" in str(error)
    assert tap.count(mm.ReleasedShare) == 0


@pytest.mark.parametrize("kind", [mm.EncryptedMatrix, mm.SecondHalves])
def test_0_1_0_opened_all_the_same(kind: type, unchecked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lies, with nothing compared: a share of what became of them leaves."""
    monkeypatch.setattr(
        go, "clear_total", lambda _r, y, _b, c: np.zeros((y.rows, y.cols, c.share_words), "u8")
    )
    monkeypatch.setattr(go.ProductSum, "clear", lambda self, c: go.clear_total(None, self.layout, None, c))
    seen: list[int] = []

    def once(address: Address, message: Any) -> Any:
        if isinstance(message, kind) and address.party == "p1" and not seen:
            seen.append(message.step)
            return other_body(message)
        return message

    _, tap = run(once, monkeypatch)  # what is opened makes no sense, but it is opened
    assert tap.count(mm.OpenedShare) > 0


# ---- one provider's part in place of the sum ----


class OneIsland(roles.Coordinator):
    """Adds up nothing: the covariance is that of the first provider."""

    async def _added_products(self, course: Any) -> go.ProductSum:
        if course.job.name != "covariance":
            return await super()._added_products(course)
        total = go.ProductSum(course.widths.ring, course.widths.layouts[0])
        arrived = await self.net.gather(mm.ProductPart, self._senders(course.job))
        total.add(arrived[self.providers[0]].body)
        await self.net.broadcast(self._members(course.group), mm.SecondHalves(course.step, total.second()))
        return total


def test_without_comparing_the_first_islands_gram_matrix_is_released(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, _ = run(honest, monkeypatch, OneIsland)
    found, own = results["p1/provider"], tables()[0]
    gram = own.T @ own
    opened = found.components.T @ np.diag(found.values) @ found.components
    np.testing.assert_allclose(opened / np.trace(opened), gram / np.trace(gram), atol=1e-6)


def test_the_sum_of_one_part_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tap = run(honest, monkeypatch, OneIsland)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.OpenedShare) == 0


# ---- keys ----


def test_under_an_all_zero_key_a_product_is_readable() -> None:
    """What 0.1.0's providers did with a key of the coordinator's choice, and a matrix of its choice."""
    rng = np.random.default_rng(4)
    gram = rng.integers(-(1 << 20), 1 << 20, (2, 2)).astype(object)
    one = np.array([[1, 0], [0, 1]], dtype=object)
    x = Shared((2, 2), 0, 2, go.from_ints(one, 1), frozenset({"all"}), known=True)
    y = Shared((2, 2), 0, 21, go.from_ints(gram, 1), frozenset({"all"}), known=True)
    plan = widths_for(2, Job(((x, y),), 0, 24, "test"))
    ring, layout, shift = plan.ring, plan.layouts[0], plan.shifts[0]
    key = go.PublicKey(ring, [bytes(ring.poly_size)], b"k" * 32)
    plain = go.assemble(ring, x.share, shift, layout, [bytes(layout.left_polys * ring.poly_size)])
    left = go.Ciphertext(ring, layout, plain, b"c" * 32)
    part = go.multiply(key, [(left, go.Right(ring, y.share, 21, layout))], seed=b"s" * 32, domain=b"")
    head = part[: ring.residues_size(4)]
    read = go.to_ints(go.clear_total(ring, layout, head, plan.clearing))
    assert np.abs(read - gram).max() <= 1


@pytest.mark.parametrize("victim", ["p0", "p2"])
def test_zero_keys_are_refused_before_anything_is_encrypted(
    victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(message: Any) -> Any:
        return mm.AllKeyParts(memoryview(bytes(len(message.body))))

    error, tap = run(lie(mm.AllKeyParts, victim, nothing), monkeypatch)
    assert isinstance(error, MessageError)
    assert "is not the one it committed to" in str(error)
    assert mm.EncryptedShare not in tap.kinds[victim]


def negative(part: bytes, ring: go.Ring) -> bytes:
    """Residues with the other sign: added to the part, they leave nothing."""
    size, out = len(part) // ring.limbs, b""
    for limb, q in enumerate(ring.moduli):
        packed = part[limb * size : (limb + 1) * size]
        for at in range(0, size, 13):
            pair = int.from_bytes(packed[at : at + 13], "little")
            low, high = pair & ((1 << 52) - 1), pair >> 52
            out_pair = (q - low) % q | (q - high) % q << 52
            out += out_pair.to_bytes(13, "little")
    return out


def test_a_part_that_cancels_the_others_comes_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider whom the coordinator shows the others' parts: its own, chosen then, is not what it
    committed to."""
    collected: dict[str, Any] = {}
    rings = [rings_for(precision)[-1] for precision in EVERY_PRECISION]

    class Cancelling(roles.Coordinator):
        async def set_up(self, precisions: Any = EVERY_PRECISION) -> None:
            gather = self.net.gather

            async def kept(kind: type, senders: Any) -> Any:
                arrived = await gather(kind, senders)
                if kind is mm.KeyParts:
                    collected.update({a.party: message.parts for a, message in arrived.items()})
                return arrived

            self.net.gather = kept
            await super().set_up(precisions)

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, mm.AllKeyParts) or address.party != "p0":
            return message
        rogue = tuple(negative(bytes(p), ring) for p, ring in zip(collected["p0"], rings, strict=True))
        nothing = bytes(sum(map(len, rogue)))
        return mm.AllKeyParts(memoryview(b"".join((*collected["p0"], *rogue, nothing))))

    error, tap = run(change, monkeypatch, Cancelling)
    own = [bytes(part) for part in collected["p0"]]
    for part, ring in zip(own, rings, strict=True):  # the key would have been zero
        cancelled = go.PublicKey(ring, [part, negative(part, ring)], b"k" * 32)
        assert cancelled.to_bytes() == bytes(ring.poly_size)
    assert isinstance(error, MessageError)
    assert "is not the one it committed to" in str(error)
    assert mm.EncryptedShare not in tap.kinds["p0"]


@pytest.mark.parametrize("victim", ["p0", "p1"])
def test_other_session_seeds_are_refused(victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a provider's own part, or in another place, or with another's replaced for one receiver."""

    def replaced(message: Any) -> Any:
        return mm.SessionSeed((message.seeds[0], message.seeds[1], b"x" * 32))

    def exchanged(message: Any) -> Any:
        return mm.SessionSeed((message.seeds[1], message.seeds[0], message.seeds[2]))

    for say in (replaced, exchanged):
        error, tap = run(lie(mm.SessionSeed, victim, say), monkeypatch)
        assert isinstance(error, MessageError)
        assert tap.count(mm.KeyParts) == 0


@pytest.mark.parametrize(
    "parts",
    [
        lambda s: s[:2],
        lambda s: (*s, b"x" * 32),
        lambda s: (*s[:2], s[2][:31]),
        lambda s: (*s[:2], s[2] + b"x"),
    ],
    ids=["fewer", "more", "shorter", "longer"],
)
def test_session_seeds_are_as_many_as_the_providers_and_whole(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one part ends and the next begins is not for the coordinator to choose."""
    say = lie(mm.SessionSeed, "p0", lambda message: mm.SessionSeed(tuple(parts(message.seeds))))
    error, tap = run(say, monkeypatch)
    assert "is not made from every provider's part" in str(error)
    assert tap.count(mm.KeyParts) == 0


def test_key_parts_are_as_many_as_there_are_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, the key would be that of fewer; with one more, of somebody unknown."""

    def fewer(message: Any) -> Any:
        return mm.AllKeyParts(message.body[: len(message.body) // 3])

    def more(message: Any) -> Any:
        return mm.AllKeyParts(memoryview(bytes(message.body) + bytes(message.body[: len(message.body) // 3])))

    for say in (fewer, more):
        error, tap = run(lie(mm.AllKeyParts, "p0", say), monkeypatch)
        assert isinstance(error, MessageError)
        assert "bytes of key parts" in str(error)
        assert mm.EncryptedShare not in tap.kinds["p0"]
