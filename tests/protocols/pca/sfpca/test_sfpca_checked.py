"""What a role checks of what it is told: eigenvectors, public numbers, and a second session's draws."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.support.examples import sfpca
from tests.support.sfpca_runs import encrypted

from atoll.crypto import products as go
from atoll.errors import CertificateRefused, MessageError
from atoll.protocols.pca.sfpca import steps
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import decomposed
from atoll.runtime.execute import run_study
from atoll.secret_matrices import roles
from atoll.secret_matrices.checks import Checks


class Told:
    """A machine whose coordinator sends other numbers."""

    def __init__(self, change: Any) -> None:
        self.change = change

    async def same(self, values: Any, *, recomputed: bool = True) -> Any:
        told = np.array(values)
        self.change(told)
        return told


def opened() -> np.ndarray:
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))
    Z = turn @ np.diag([0.5, 0.2, 0.1, 0.05, 1e-5, 1e-9]) @ turn.T
    return np.asarray((Z + Z.T) / 2)


def decompose(change: Any) -> Any:
    return asyncio.run(decomposed(Told(change), opened()))  # type: ignore[arg-type]


def exchange(told: np.ndarray) -> None:
    told[:, [0, 1]] = told[:, [1, 0]]


def stretch(told: np.ndarray) -> None:
    told[1:, 5] *= 1 + 1e-6  # of an eigenvalue of 1e-9: the product hardly changes


def mix(told: np.ndarray) -> None:
    c, s = np.cos(1e-7), np.sin(1e-7)
    told[1:, :2] = told[1:, :2] @ np.array([[c, -s], [s, c]])


def shift(told: np.ndarray) -> None:
    told[0, 5] += 1e-10


@pytest.mark.parametrize("change", [exchange, stretch, mix, shift])
def test_eigenvectors_that_are_not_those_of_the_opened_matrix_are_refused(change: Any) -> None:
    with pytest.raises(MessageError, match="not those of the opened matrix"):
        decompose(change)


def test_a_sign_and_rounding_are_anybodys_choice() -> None:
    def change(told: np.ndarray) -> None:
        told[1:, 2] *= -1
        told *= 1 + 2.0**-52

    values, U = decompose(change)
    np.testing.assert_allclose((U * values) @ U.T, opened(), atol=1e-14)


@pytest.mark.parametrize("factor", [1 + 2.0**-50, 1 + 1e-6])
def test_public_numbers_are_compared_to_rounding(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(roles.Coordinator):
        async def same(self, values: Any, *, recomputed: bool = True) -> Any:
            return await super().same(values * factor, recomputed=recomputed)

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        return await machine.same(np.array([3.0, 1e9, 1e-9]))

    monkeypatch.setattr(roles, "Coordinator", Other)
    blocks = [np.eye(2), np.eye(2)]
    if factor - 1 > 1e-9:
        with pytest.raises(MessageError, match="not those computed here"):
            encrypted(program, blocks)
        return
    results, _ = encrypted(program, blocks)
    np.testing.assert_array_equal(results["p1/provider"], np.array([3.0, 1e9, 1e-9]) * factor)


def test_a_second_session_draws_another_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: dict[str, list[bytes]] = {}
    sessions: set[bytes] = set()

    async def refused(machine: Any, inputs: Any, k: int, policy: Any = POLICIES["default"]) -> Any:
        if inputs.rotation_seed is not None:
            seeds.setdefault(inputs.me, []).append(inputs.rotation_seed)
        sessions.add(machine.session)
        raise CertificateRefused("no")

    monkeypatch.setattr(steps, "strict", refused)
    example = sfpca(recipe="strict")
    with pytest.raises(CertificateRefused):
        run_study(example.study, example.own)
    assert len(seeds) == len(example.islands)
    drawn = [seed for both in seeds.values() for seed in both]
    assert len(drawn) == len(set(drawn)) == 2 * len(example.islands)
    assert len(sessions) == 2


def test_accounts_of_a_wrong_sum_or_of_other_bytes_do_not_pass() -> None:
    group = frozenset({"a", "b"})

    def accounts(given: int, sum_: int, digest: bytes = b"same") -> Checks:
        checks = Checks(b"s" * 32)
        checks.give(group, "encrypted", 1, [given] * 16)
        checks.take(group, "encrypted", 1, [sum_] * 16, digest)
        return checks

    def compare(a: Checks, b: Checks) -> None:
        a.compare("a", {"a": a.notes("a"), "b": b.notes("b")}, "hub")

    compare(accounts(3, 10), accounts(7, 10))
    with pytest.raises(MessageError, match="hub sent a a sum that is not"):
        compare(accounts(3, 11), accounts(7, 11))
    with pytest.raises(MessageError, match="hub told a something else than it told b"):
        compare(accounts(3, 10), accounts(7, 10, b"other"))
    short = accounts(3, 10)
    with pytest.raises(MessageError, match="were due"):
        short.compare("a", {"a": short.notes("a"), "b": b""}, "hub")


def test_only_who_reads_a_sum_answers_for_it() -> None:
    """Everybody's part counts, and one that reads alone still finds a wrong sum."""
    group, readers = frozenset({"a", "b", "c"}), frozenset({"b", "c"})

    def accounts(given: int, sum_: int | None, digest: bytes = b"same") -> Checks:
        checks = Checks(b"s" * 32)
        checks.account(group)
        checks.give(group, "encrypted", 1, [given] * 16, readers=readers)
        if sum_ is not None:
            checks.take(group, "encrypted", 1, [sum_] * 16, digest, readers=readers)
        return checks

    def compare(me: str, **all_accounts: Checks) -> None:
        notes = {name: checks.notes(name) for name, checks in all_accounts.items()}
        all_accounts[me].compare(me, notes, "hub")

    for me in "abc":
        compare(me, a=accounts(1, None), b=accounts(2, 6), c=accounts(3, 6))
    compare("a", a=accounts(1, None), b=accounts(2, 5), c=accounts(3, 5))  # it cannot know
    for me in "bc":
        with pytest.raises(MessageError, match=f"hub sent {me} a sum that is not"):
            compare(me, a=accounts(1, None), b=accounts(2, 5), c=accounts(3, 5))
    with pytest.raises(MessageError, match="hub told b something else than it told c"):
        compare("b", a=accounts(1, None), b=accounts(2, 6), c=accounts(3, 6, b"other"))


def test_accounts_tell_steps_apart_and_forget_nothing() -> None:
    group = frozenset({"a", "b"})

    def accounts(given: tuple[int, int], sums: tuple[int, int], first: bytes = b"same") -> Checks:
        checks = Checks(b"s" * 32)
        for step, value in enumerate(given):
            checks.give(group, "second", step, [value] * 16)
        checks.see(group, "public numbers", 0, first)
        for step, value in enumerate(sums):
            checks.take(group, "second", step, [value] * 16, b"same")
        return checks

    def compare(a: Checks, b: Checks) -> None:
        a.compare("a", {"a": a.notes("a"), "b": b.notes("b")}, "hub")

    compare(accounts((1, 2), (4, 6)), accounts((3, 4), (4, 6)))
    with pytest.raises(MessageError, match="a sum that is not"):  # right sums, at each other's step
        compare(accounts((1, 2), (6, 4)), accounts((3, 4), (6, 4)))
    with pytest.raises(MessageError, match="something else than it told b"):  # what came later is the same
        compare(accounts((1, 2), (4, 6)), accounts((3, 4), (4, 6), b"other"))


def test_two_wrong_sums_do_not_make_up_for_each_other() -> None:
    """Sums have random factors: what one holds too much, another cannot hold too little."""
    group = frozenset({"a", "b"})

    def accounts(given: int, off: int) -> Checks:
        checks = Checks(b"s" * 32)
        for what, step, sign in (("encrypted", 1, 1), ("encrypted", 2, -1), ("second", 2, 0)):
            checks.give(group, what, step, [given] * 16)
            checks.take(group, what, step, [10 + sign * off] * 16, b"same")
        return checks

    def compare(a: Checks, b: Checks) -> None:
        a.compare("a", {"a": a.notes("a"), "b": b.notes("b")}, "hub")

    compare(accounts(3, 0), accounts(7, 0))
    with pytest.raises(MessageError, match="hub sent a a sum that is not"):
        compare(accounts(3, 1), accounts(7, 1))


def test_accounts_are_made_with_the_providers_secret() -> None:
    """Who does not know it, the coordinator, cannot make another sum with the same account."""
    group = frozenset({"a", "b"})
    ring = go.family("deep")[0]
    message = bytes(ring.poly_size - 1) + b"\x01"

    def noted(secret: bytes) -> tuple[bytes, list[int], bytes]:
        checks = Checks(secret)
        checks.give(group, "encrypted", 1, [5] * 16)
        given = checks.notes("a")
        checks.open(group, 2, go.from_ints(np.array([[3]], dtype=object), 1), np.zeros((1, 1, 1), np.uint64))
        return given[32:], checks.fingerprint(ring, message, ring.degree), checks.notes("a")[-16:]

    one, other = noted(b"s" * 32), noted(b"t" * 32)
    assert one == noted(b"s" * 32)
    assert all(mine != theirs for mine, theirs in zip(one, other, strict=True))


def test_all_that_was_seen_stays_in_the_account() -> None:
    """Not only the last message before a comparison."""
    group = frozenset({"a", "b"})

    def seen(*digests: bytes) -> bytes:
        checks = Checks(b"s" * 32)
        for step, digest in enumerate(digests):
            checks.see(group, "public numbers", step, digest)
        return checks.notes("a")

    assert len({seen(b"one", b"two"), seen(b"three", b"two"), seen(b"two", b"one"), seen(b"two")}) == 4
