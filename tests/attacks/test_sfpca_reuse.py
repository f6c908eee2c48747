"""Nothing random is used twice: not within a run, not by a second try, not for two ciphertexts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.examples import Example

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols.pca.sfpca import protocol
from atoll.protocols.pca.sfpca.recipes import direct, strict
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as machine
from atoll.study.address import Address
from atoll.study.model import Study


class Tap(Observer):
    """Keeps records, and what was sent, decoded."""

    def __init__(self, study: Study) -> None:
        self.decoder = Decoder[Message](protocol.PROTOCOL.all_messages(study))
        self.links: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.draws: dict[str, dict[str, bytes]] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.links[str(sender), str(receiver)].append(self.decoder.decode(bytes(data)))

    def finished(self, address: Address, record: Any) -> None:
        self.draws[str(address)] = dict(record.drawn)


def slow_spectrum() -> Example:
    """A table that the fast policy cannot certify and the accurate one can: two sessions."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 46)) * np.sqrt(0.95 ** np.arange(46))
    islands = as_islands([rows[:150], rows[150:]])
    study = Study(
        name="retried",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator"),
        parameters={"n_components": 2, "recipe": "fast", "accept_determined": True},
        release={"components": ("provider",)},
    )
    return Example(study, islands)


class Calls:
    """Every use of a secret key or an encryption of zero, by what makes it random."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encryptions: list[tuple[int, bytes]] = []
        self.refreshed: list[tuple[int, bytes]] = []
        self.streams: list[tuple[str, bytes, bytes]] = []
        self.rotations: list[bytes] = []
        self.sketches: list[bytes] = []
        encrypt, refresh, multiply = go.Secret.encrypt, go.Secret.refresh, go.multiply
        second_half = go.second_half
        rotate, sketch = direct.rotation, strict.gaussians

        def encrypted(
            secret: Any, x: Any, limit: int, shift: int, layout: Any, common: bytes, seed: bytes
        ) -> Any:
            self.encryptions.append((secret.number, common))
            self.streams.append(("encryption", seed, b""))
            return encrypt(secret, x, limit, shift, layout, common, seed)

        def refreshed(
            secret: Any, second: bytes, layout: Any, clearing: Any, seed: bytes, domain: bytes, ahead: Any
        ) -> Any:
            self.refreshed.append((secret.number, bytes(second)))
            self.streams.append(("mask", seed, domain))
            if ahead is not None:  # with the encryption of zero of its second half, and no other
                assert self.streams.count(("zero", ahead.seed, ahead.domain)) == 1
            return refresh(secret, second, layout, clearing, seed, domain, ahead)

        def multiplied(key: Any, terms: Any, **options: Any) -> bytes:
            self.streams.append(("zero", options["seed"], options["domain"]))
            return multiply(key, terms, **options)

        def ahead_of(key: Any, terms: Any, **options: Any) -> bytes:
            self.streams.append(("zero", options["seed"], options["domain"]))
            return second_half(key, terms, **options)

        def rotated(seed: bytes, *args: Any) -> Any:
            self.rotations.append(seed)
            return rotate(seed, *args)

        def sketched(seed: bytes, *args: Any) -> Any:
            self.sketches.append(seed)
            return sketch(seed, *args)

        monkeypatch.setattr(direct, "rotation", rotated)
        monkeypatch.setattr(strict, "gaussians", sketched)
        monkeypatch.setattr(go.Secret, "encrypt", encrypted)
        monkeypatch.setattr(go.Secret, "refresh", refreshed)
        monkeypatch.setattr(go, "multiply", multiplied)
        monkeypatch.setattr(go, "second_half", ahead_of)


OF_PROVIDERS = (machine.EncryptedShare, machine.ProductPart, machine.SecondPart, machine.MaskedShare)
STEPS = (
    *OF_PROVIDERS,
    machine.EncryptedMatrix,
    machine.SecondHalves,
    machine.OpenedShare,
    machine.OpenedMatrix,
    machine.ReleasedShare,
    machine.PublicNumbers,
)


def repeated(values: list[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


@pytest.fixture(scope="module")
def retried() -> Iterator[tuple[Calls, Tap]]:
    """One study that takes two sessions, with everything that was random about it."""
    with pytest.MonkeyPatch.context() as patch:
        calls, example = Calls(patch), slow_spectrum()
        tap = Tap(example.study)
        LocalEngine().run(protocol.PROTOCOL, example.study, example.own, observer=tap)
        yield calls, tap


def test_two_sessions_have_no_draw_polynomial_mask_or_ciphertext_in_common(
    retried: tuple[Calls, Tap],
) -> None:
    calls, tap = retried
    drawn = [(tag, draw) for draws in tap.draws.values() for tag, draw in draws.items()]
    sessions = {tag.split(" ")[1] for tag, _ in drawn if tag.startswith("session ")}
    assert sessions == {"0", "1"}, "the run was meant to be tried twice"
    # The record: no draw of any role, step or session equals another.
    assert len(drawn) > 400
    assert repeated([draw for _, draw in drawn]) == []
    # A common polynomial is used for one matrix and one key; a ciphertext gets one decryption share.
    assert len(calls.encryptions) > 100
    assert repeated(calls.encryptions) == []
    assert len(calls.refreshed) > 100
    assert repeated(calls.refreshed) == []
    # Every stream of masks, errors and encryptions of zero has a seed of its own, taken from the record.
    assert repeated([seed for _, seed, _ in calls.streams]) == []
    assert {seed for _, seed, _ in calls.streams} <= {draw for _, draw in drawn}
    # Every provider turns and sketches anew in the second session: two matrices opened under one rotation
    # would show more than their spectra.
    providers = len(tap.draws) - 1
    assert len(set(calls.rotations)) == len(calls.rotations) == 2 * providers
    assert sorted(calls.sketches) == sorted(calls.rotations)


def test_no_step_speaks_twice(retried: tuple[Calls, Tap]) -> None:
    _, tap = retried
    said: list[tuple[Any, ...]] = []
    bodies: list[bytes] = []
    for link, sent in tap.links.items():
        session = 0
        for message in sent:
            # A provider opens a session with its part of the seed, the coordinator with all parts.
            session += isinstance(message, machine.SeedPart | machine.SessionSeed)
            if isinstance(message, STEPS):
                said.append((link, session, type(message).__name__, message.step))
            if isinstance(message, OF_PROVIDERS):
                bodies.append(bytes(message.body))
    assert {session for _, session, _, _ in said} >= {1, 2}
    assert len(said) > 400
    assert repeated(said) == []
    assert len(bodies) > 200
    assert repeated(bodies) == []
