"""SF-PCA encrypted, every role on the local engine."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from tests.support.handles import opened
from tests.support.sfpca_runs import direct, encrypted, strict

from atoll import codec
from atoll.errors import ParameterError, RangeOverflow
from atoll.protocols.pca.sfpca import messages
from atoll.runtime.engine import Observer
from atoll.secret_matrices import messages as machine_messages
from atoll.study.address import Address


class Tap(Observer):
    """Keeps what arrived and what was drawn."""

    def __init__(self) -> None:
        self.decoder = codec.Decoder(messages.MESSAGES)
        self.kinds: dict[str, set[str]] = {}
        self.draws: dict[str, list[bytes]] = {}
        self.encryptions: list[tuple[str, int]] = []

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(data)
        if isinstance(message, machine_messages.EncryptedShare):
            self.encryptions.append((str(sender), message.step))

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.kinds.setdefault(receiver.role, set()).add(type(self.decoder.decode(data)).__name__)

    def finished(self, address: Address, record: object) -> None:
        self.draws[str(address)] = list(record.drawn.values())  # type: ignore[attr-defined]


def test_direct_encrypted_equals_plain_pca() -> None:
    X = load_wine().data
    blocks = np.array_split(X, 3)
    results, _ = encrypted(lambda m, i, r: direct(m, i, 13, r), blocks)
    exact = PCA(13).fit(X)
    assert results["hub/coordinator"].components is None
    for name in ("p0/provider", "p1/provider", "p2/provider"):
        cosines = np.abs(np.sum(results[name].components * exact.components_, axis=1))
        assert cosines.min() > 1 - 1e-12


def test_strict_encrypted_equals_plain_pca() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 12)) * 0.6 ** np.arange(12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    results, _ = encrypted(lambda m, i, r: strict(m, i, 3, r), np.array_split(X + 0.3, 2))
    exact = PCA(3).fit(X)
    found = results["p1/provider"]
    assert np.abs(np.sum(found.components * exact.components_, axis=1)).min() > 1 - 1e-8
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(3), atol=1e-9)


def test_nobody_receives_anything_but_ciphertexts_masked_shares_and_openings() -> None:
    tap = Tap()
    encrypted(lambda m, i, r: direct(m, i, 2, r), np.array_split(load_wine().data, 2), observer=tap)
    assert tap.kinds["coordinator"] == {
        "SeedPart",
        "KeyParts",
        "EncryptedShare",
        "ProductPart",
        "MaskedShare",
        "OpenedShare",
    }
    assert tap.kinds["provider"] == {
        "SessionSeed",
        "AllKeyParts",
        "MaskedTotal",
        "Compared",
        "EncryptedMatrix",
        "SecondHalves",
        "OpenedMatrix",
        "PublicNumbers",
        "ReleasedShare",
    }


def test_a_party_beyond_its_declared_range_aborts_before_anything_leaves() -> None:
    async def lying(machine, inputs, receivers):  # type: ignore[no-untyped-def]
        if inputs.moments is not None and inputs.me.startswith("p1"):
            inputs = inputs._replace(moments=inputs.moments._replace(u=inputs.moments.u * 2**20))
        return await direct(machine, inputs, 2, receivers)

    tap = Tap()
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        encrypted(lying, np.array_split(load_wine().data, 2), observer=tap)
    assert "MaskedShare" not in tap.kinds.get("coordinator", set())


def test_own_data_cannot_be_opened_by_mistake() -> None:
    async def careless(machine, inputs, receivers):  # type: ignore[no-untyped-def]
        own = None if inputs.moments is None else inputs.moments.u.reshape(-1, 1)
        x = machine.private(None, own, (inputs.columns, 1), 70, 1)
        return await machine.opened(x, smudge_bits=0)

    with pytest.raises(ParameterError, match="must not be opened"):
        encrypted(careless, np.array_split(load_wine().data, 2))


def test_handles_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(monkeypatch) as found:
        encrypted(lambda m, i, r: direct(m, i, 2, r), np.array_split(load_wine().data, 2))
        assert len(found.numbers) > 5
        assert found.all_freed()


def test_no_seed_or_common_polynomial_is_used_twice() -> None:
    tap = Tap()
    encrypted(lambda m, i, r: direct(m, i, 2, r), np.array_split(load_wine().data, 3), observer=tap)
    drawn = [draw for draws in tap.draws.values() for draw in draws]
    assert len(drawn) > 40
    assert len(set(drawn)) == len(drawn)
    # A common polynomial is a hash of session, ring and step: one encryption per party and step.
    assert len(tap.encryptions) == len(set(tap.encryptions)) > 10
