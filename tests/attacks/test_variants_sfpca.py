"""Attacks on SF-PCA's openings, keys and digits that are not those which the checks were written against.

Nothing has to be opened for a coordinator to gain something: a decryption share of a ciphertext of its choice
says the key, and a value that outgrows its mask says itself. So providers compare before any decryption share
leaves, not only before an opening. ``late`` puts back the form that compared before openings alone.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_sfpca_coordinator import Relay, Sent, honest, plus_one, run, tables
from tests.support.examples import sfpca, sfpca_columns
from tests.support.lying import exchanged
from tests.support.sfpca_runs import direct, encrypted

import atoll
from atoll.crypto import products as go
from atoll.errors import AtollError, MessageError, PrivacyError
from atoll.protocols.pca.sfpca import protocol
from atoll.runtime.engine import Observer
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import openings, party, provider, roles
from atoll.secret_matrices.checks import Checks
from atoll.secret_matrices.courses import digest_of
from atoll.study.address import Address


class Bodies(Sent):
    """Also what the messages of a kind said, by sender and step."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[type, dict[tuple[str, int], Any]] = defaultdict(dict)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        super().sent(sender, receiver, data)
        message = self.decoder.decode(bytes(data))
        if isinstance(message, mm.MaskedShare | mm.ProductPart):
            self.bodies[type(message)][sender.party, message.step] = bytes(message.body)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decryption shares left before anything was compared; outputs, before the last masked total was."""

    async def multiply_all(self: Any, courses: Any) -> Any:
        self._tell = self._compare = _nothing
        try:
            return await new(self, courses)
        finally:
            del self._tell, self._compare

    async def early(machine: Any, x: Any, receivers: frozenset[str]) -> Any:
        check = machine.check

        async def not_last(*, last: bool = False) -> None:
            await check()

        machine.check = not_last
        try:
            return await release(machine, x, receivers)
        finally:
            machine.check = check

    new, release = roles.Provider._multiply_all, openings.release
    monkeypatch.setattr(roles.Provider, "_multiply_all", multiply_all)
    monkeypatch.setattr(party, "release", early)


async def _nothing(*_: Any) -> None:
    pass


def residues(body: bytes, ring: go.Ring, count: int) -> list[list[int]]:
    size = (count * 52 + 7) // 8
    whole = [int.from_bytes(body[i * size : (i + 1) * size], "little") for i in range(ring.limbs)]
    return [[(limb >> 52 * i) & (2**52 - 1) for i in range(count)] for limb in whole]


def lifted(body: bytes, ring: go.Ring, count: int) -> tuple[list[int], int]:
    """Whole numbers around zero, and their modulus."""
    Q, out = 1, [0] * count
    for q, limb in zip(ring.moduli, residues(body, ring, count), strict=False):
        out = [a + Q * ((r - a) * pow(Q, -1, q) % q) for a, r in zip(out, limb, strict=True)]
        Q *= q
    return [a if a < Q // 2 else a - Q for a in out], Q


# ---- a decryption share of another ciphertext ----


def constant(value: int, ring: go.Ring, polys: int) -> bytes:
    """Second halves that are this number: transformed, the same residue everywhere."""
    pairs = [(value % q | value % q << 52).to_bytes(13, "little") for q in ring.moduli[: ring.limbs]]
    return b"".join(pair * (ring.degree // 2) for pair in pairs) * polys


def a_third(ring: go.Ring) -> int:
    return int(np.prod([int(q) for q in ring.moduli[: ring.limbs]], dtype=object)) // 3


class AsksForKeys(roles.Coordinator):
    """Asks for decryption shares of a third of the modulus: the masks are narrower than that."""

    asked: Any = None

    async def _added_products(self, course: Any) -> go.ProductSum:
        plan = course.widths
        total = go.ProductSum(plan.ring, plan.layouts[0])
        await self._fold(mm.ProductPart, self._senders(course.job), total.add, course.step)
        second = constant(a_third(plan.ring), plan.ring, plan.layouts[0].out_polys)
        await self.net.broadcast(self._members(course.group), mm.SecondHalves(course.step, second))
        AsksForKeys.asked = AsksForKeys.asked or course
        return total


def key_digits(body: bytes, ring: go.Ring, count: int) -> list[int]:
    values, Q = lifted(body, ring, count)
    assert all(min(abs(v), abs(v - Q // 3), abs(v + Q // 3)) < Q // 6 for v in values)
    return [round(3 * v / Q) for v in values]


def asked_for_keys(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Bodies, dict[str, go.Secret]]:
    secrets: dict[str, go.Secret] = {}

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        if isinstance(machine, roles.Provider):
            secrets[machine.me] = machine.secrets
        return await direct(machine, inputs, 3, receivers)

    monkeypatch.setattr(AsksForKeys, "asked", None)
    monkeypatch.setattr(roles, "Coordinator", AsksForKeys)
    tap = Bodies()
    with pytest.raises(AtollError) as found:
        encrypted(program, tables(), observer=tap)
    return found.value, tap, secrets


def test_a_decryption_share_of_a_chosen_ciphertext_says_the_key(
    late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every provider, at the first product, long before the first opening."""
    _, tap, secrets = asked_for_keys(monkeypatch)
    course = AsksForKeys.asked
    plan, seen = course.widths, []
    ring, y = plan.ring, plan.layouts[0]
    second = constant(a_third(ring), ring, y.out_polys)
    for name in ("p0", "p1", "p2"):
        found = key_digits(tap.bodies[mm.MaskedShare][name, course.step], ring, 9)
        # The same under another mask: it is the key that shows.
        again, _ = secrets[f"{name}/provider"][ring].refresh(second, y, plan.clearing, b"x" * 32, b"")
        assert found == key_digits(bytes(again), ring, 9)
        seen += found
    assert set(seen) == {-1, 0, 1}


def test_no_decryption_share_leaves_for_a_chosen_ciphertext(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tap, _ = asked_for_keys(monkeypatch)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.MaskedShare) == 0


# ---- a value that outgrows its mask ----


def wide_tables() -> list[np.ndarray]:
    rng = np.random.default_rng(6)
    turn = rng.normal(size=(3, 3))
    blocks = [rng.normal(size=(700, 3)) * [3, 2, 1] @ turn for _ in range(2)]
    return [np.round(block - block.mean(axis=0), 6) for block in blocks]


class SmallVariance(roles.Coordinator):
    """Says that the total variance is 2^-75 of the range: the covariance is multiplied accordingly."""

    seen: Any = None

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        net = self.net

        class Lying:
            def __getattr__(self, name: str) -> Any:
                return getattr(net, name)

            async def broadcast(self, to: Any, message: Any) -> None:
                words = go.from_ints(np.array([[1 << (x.fraction - 75)]], dtype=object), 4)
                await net.broadcast(to, mm.OpenedMatrix(message.step, words))

        self.net = Lying()
        await super().opened(x, smudge_bits=smudge_bits)
        self.net = net
        return np.array([[2.0**-75]])

    async def _multiply_all(self, courses: Any) -> Any:
        if not any(course.job.name == "H C" for course in courses):
            return await super()._multiply_all(courses)
        (course,) = courses  # nothing travels beside it
        total = await self._added_products(course)
        await self._add_shares(course, total)
        SmallVariance.seen = course, total.total()
        return {course.step: total.clear(course.widths.clearing)}


def outgrown(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Sent]:
    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        return await direct(machine, inputs, 3, receivers)

    monkeypatch.setattr(SmallVariance, "seen", None)
    monkeypatch.setattr(roles, "Coordinator", SmallVariance)
    tap = Sent()
    with pytest.raises(AtollError) as found:
        encrypted(program, wide_tables(), observer=tap)
    return found.value, tap


def test_a_wrong_scale_made_the_covariance_outgrow_its_masks(
    late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(H C)^T (H C) = C^2: the coordinator reads all of it off a masked result, before an opening."""
    outgrown(monkeypatch)
    course, body = SmallVariance.seen
    values, Q = lifted(bytes(body), course.widths.ring, 12)
    HC = np.array([v / Q for v in values]).reshape(3, 4)[:, :3]
    squared = HC.T @ HC
    X = np.vstack(wide_tables())
    exact = np.linalg.matrix_power(np.cov(X.T), 2)
    assert np.corrcoef(squared.ravel(), exact.ravel())[0, 1] > 0.98


def test_a_wrong_scale_is_found_out_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    error, _ = outgrown(monkeypatch)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert SmallVariance.seen is None


# ---- the last one of its kind ----


class OtherTotal(roles.Coordinator):
    """Sends the carrier of one product another masked result than it has: one unit of the first entry."""

    name = "Z"

    async def _multiply_all(self, courses: Any) -> Any:
        net, wrong = self.net, {c.step: c for c in courses if c.job.name == self.name}

        class Lying:
            def __getattr__(self, name: str) -> Any:
                return getattr(net, name)

            async def broadcast(self, to: Any, message: Any) -> None:
                if isinstance(message, mm.MaskedTotal) and message.step in wrong:
                    y = wrong[message.step].widths.layouts[0]
                    message = structs.replace(message, body=plus_one(message.body, y.rows * y.cols))
                await net.broadcast(to, message)

        self.net = Lying()
        try:
            return await super()._multiply_all(courses)
        finally:
            self.net = net


def test_a_falsified_spectrum_used_to_choose_what_was_released(
    late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eigenvectors of what the coordinator added to the opened matrix say which rows of H U are released."""
    error, tap = run(honest, monkeypatch, OtherTotal)
    assert isinstance(error, MessageError)  # at the end of the run
    assert tap.count(mm.ReleasedShare) > 0


def test_a_falsified_spectrum_is_found_out_before_anything_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, tap = run(honest, monkeypatch, OtherTotal)
    assert isinstance(error, MessageError)
    assert tap.count(mm.OpenedShare) == 2
    assert tap.count(mm.ReleasedShare) == 0


# ---- small deviations of the coordinator, each found out before the decryption share that it aims at ----


def replayed() -> Any:
    """The bytes of the last step under this step's number."""
    last: dict[tuple[str, int], Any] = {}

    def change(address: Address, message: Any) -> Any:
        if not isinstance(message, mm.SecondHalves):
            return message
        key = (address.party, len(message.body))
        before, last[key] = last.get(key), message.body
        return message if before is None else mm.SecondHalves(message.step, before)

    return change


def test_the_bytes_of_an_earlier_step_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tap = run(replayed(), monkeypatch)
    assert isinstance(error, MessageError)
    assert tap.count(mm.ReleasedShare) == 0


class Dropped(roles.Coordinator):
    """Leaves one of several parts out of every product but the covariance."""

    honest_in: tuple[str, ...] = ("covariance",)

    async def _added_products(self, course: Any) -> go.ProductSum:
        total = go.ProductSum(course.widths.ring, course.widths.layouts[0])
        arrived = await self.net.gather(mm.ProductPart, self._senders(course.job))
        kept = list(arrived.values())
        for message in kept if course.job.name in self.honest_in or len(kept) == 1 else kept[:-1]:
            total.add(message.body)
        await self.net.broadcast(self._members(course.group), mm.SecondHalves(course.step, total.second()))
        return total


def test_a_part_that_is_left_out_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tap = run(honest, monkeypatch, Dropped)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(mm.OpenedShare) == 1  # the trace, of the covariance
    assert tap.count(mm.MaskedShare) == 3  # the covariance and two rotations, one part each; not H C


def test_two_providers_key_parts_exchanged_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sum is the same: the keys of groups are not."""
    error, tap = run(lambda _, message: exchanged(message, mm.AllKeyParts, 3), monkeypatch)
    assert isinstance(error, MessageError)
    assert tap.count(mm.EncryptedShare) == 0


class OtherRotation(roles.Coordinator):
    """Wrong second halves for a product that concerns two providers of five alone, or four."""

    among, names = 2, None

    async def _added_products(self, course: Any) -> go.ProductSum:
        self.names[course.step] = f"{course.job.name} of {len(course.group)}"
        if self.names[course.step] != f"rotation of {self.among}":
            return await super()._added_products(course)
        total = go.ProductSum(course.widths.ring, course.widths.layouts[0])
        await self._fold(mm.ProductPart, self._senders(course.job), total.add, course.step)
        body = bytes(len(total.second()))
        await self.net.broadcast(self._members(course.group), mm.SecondHalves(course.step, body))
        return total


def other_rotation(monkeypatch: pytest.MonkeyPatch, among: int) -> tuple[dict[str, set[int]], Bodies]:
    """Steps of the decryption shares that left, by the product's name."""

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        return await direct(machine, inputs, 3, receivers)

    monkeypatch.setattr(OtherRotation, "among", among)
    monkeypatch.setattr(OtherRotation, "names", {})
    monkeypatch.setattr(roles, "Coordinator", OtherRotation)
    tap = Bodies()
    with pytest.raises(MessageError, match="not that of the providers' parts"):
        encrypted(program, tables(5), observer=tap)
    left, names = defaultdict(set), OtherRotation.names
    for _, step in tap.bodies[mm.MaskedShare]:
        left[names[step]].add(step)
    assert f"rotation of {among}" in names.values()
    return dict(left), tap


def test_a_wrong_sum_among_two_of_five_ends_the_run_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: the covariance of all five travels beside it, and no share of that leaves either."""
    left, tap = other_rotation(monkeypatch, 2)
    assert left == {}
    assert tap.count(mm.OpenedShare) == 0


class OwnMessages(Sent):
    """Of SF-PCA's machines, beside those of the secure sum and the first exchanges."""

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        with suppress(MessageError):
            super().sent(sender, receiver, data)


def other_number(message: Any) -> Any:
    words = np.zeros((1, 1, 2), np.uint64)
    words[0, 0, 0] = 1 << 40  # far beyond the tolerance
    return mm.OpenedMatrix(message.step, words)


def test_a_certificate_that_only_the_coordinator_refuses_brings_no_second_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tries open two spectra: the number that decides is compared before the second begins."""
    example, tap = sfpca(recipe="strict"), OwnMessages()
    numbers: list[int] = []

    class Refusing(roles.Coordinator):
        async def opened(self, x: Any, *, smudge_bits: int) -> Any:
            numbers.append(x.shape[0])
            if numbers.count(1) != 2:  # the first is the total variance, the second tau
                return await super().opened(x, smudge_bits=smudge_bits)
            net, self.net = self.net, Relay(self.net, lambda _, message: other_number(message))
            await super().opened(x, smudge_bits=smudge_bits)
            self.net = net
            return openings.floats(other_number(mm.OpenedMatrix(0, np.zeros(0))).words, x.fraction)

    monkeypatch.setattr(roles, "Coordinator", Refusing)
    with pytest.raises(MessageError, match="not that of the providers' parts"):
        LocalEngine().run(protocol.PROTOCOL, example.study, example.own, observer=tap)
    assert tap.count(mm.SeedPart) == 1


# ---- secrets of the providers, and noise of each ----


def test_the_fingerprints_rest_on_what_the_coordinator_never_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets: list[bytes] = []
    sessions: set[bytes] = set()

    class Kept(Checks):
        def __init__(self, secret: bytes) -> None:
            secrets.append(secret)
            super().__init__(secret)

    class Told(Observer):
        told = b""
        nonces: dict[str, bytes] = {}  # noqa: RUF012  one run

        def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
            if receiver.role == "coordinator":
                self.told += bytes(data)

        def finished(self, address: Address, record: Any) -> None:
            self.nonces[address.party] = record.drawn.get("check nonce", b"")

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> None:
        sessions.add(machine.session)

    monkeypatch.setattr(provider, "Checks", Kept)
    tap = Told()
    encrypted(program, tables(), observer=tap)
    (session,) = sessions
    nonces = [tap.nonces[name] for name in ("p0", "p1", "p2")]
    assert set(secrets) == {digest_of(session, "checks", *nonces)}
    assert len({*nonces}) == 3
    assert not any(nonce in tap.told for nonce in nonces)


def test_every_provider_adds_noise_of_its_own_and_nothing_older_is_used() -> None:
    """What the coordinator has is left as it is, and opened with its carrier's: the matrix is still there."""

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        own = None if inputs.moments is None else np.full((2, 2), 3 << 40)
        x = machine.private(None, own, (2, 2), 40, 4)
        made = await machine.product((x, x), fraction=40, bits=8, name="square")
        await machine.product((made, made), fraction=40, bits=15, name="again")
        noisy = machine.smudged(made, smudge_bits=30)
        opened = await machine.released(noisy, receivers)
        return go.to_ints(noisy.share) - go.to_ints(made.share), len(made.cache), len(noisy.cache), opened

    results, _ = encrypted(program, tables())
    noise = [results[f"p{i}/provider"][0] for i in range(3)]
    for added in noise:
        assert 1 << 24 < np.abs(added).max() < 1 << 30
    assert len({str(added) for added in noise}) == 3
    assert not results["hub/coordinator"][0].any()
    for _, before, after, opened in results.values():
        assert (before > 0, after) == (True, 0)
        if opened is not None:
            np.testing.assert_allclose(opened, 162 + sum(noise).astype(float) * 2.0**-40, atol=2.0**-37)


def test_components_that_leave_no_variance_are_refused_before_they_are_released() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 12))
    with pytest.raises(PrivacyError, match="explain all of the variance"):
        atoll.PCA(2, protocol="sfpca", bounds=40000.0).fit({"north": 1e3 * X[:40], "south": 1e3 * X[40:]})


def test_scores_of_common_rows_have_noise_of_their_own() -> None:
    """Beside that of the components: their receivers do not know the rows."""
    example = sfpca_columns({"scores": ("provider",), "components": ("provider",)}, bounds=64.0, digits=16)
    found = run_study(example.study, example.own).result
    X = np.hstack([island.features(island.columns) for island in example.islands.values()])
    exact = (X - X.mean(axis=0)) @ found["components"].T
    off = np.abs(next(iter(found["scores"].values())) - exact)
    assert 64 * 2.0**-19 < off.mean() < 64 * 2.0**-15
