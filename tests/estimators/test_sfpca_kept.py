"""release="encrypted": shares stay with their roles, and later steps use them."""

from __future__ import annotations

import pickle
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from tests.support.examples import sfpca as example

import atoll
from atoll import codec
from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.data.island import Island
from atoll.errors import (
    MessageError,
    NotReleased,
    ParameterError,
    RangeOverflow,
    RunError,
    SchemaError,
    StudyError,
)
from atoll.estimators.encrypted_model import EncryptedModel
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import check_study
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import checked_rows, later_study
from atoll.protocols.pca.sfpca.protocol import PROTOCOL
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address

X = load_wine().data
EXACT = PCA(3).fit(X)
ISLANDS = {"north": X[:80], "south": X[80:]}


class Tap(LocalEngine):
    """An engine that keeps what every role received."""

    class Inbox(Observer):
        def __init__(self, kinds: tuple[type[Message], ...]) -> None:
            self.decoder = Decoder[Message](kinds)
            self.arrived: dict[Address, list[Any]] = defaultdict(list)

        def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
            self.arrived[receiver].append((str(sender), self.decoder.decode(bytes(data))))

    def run(self, protocol: Any, study: Any, own: Any, **options: Any) -> Any:
        self.inbox = self.Inbox(protocol.all_messages(study))
        return super().run(protocol, study, own, **options | {"observer": self.inbox})

    def received(self, kind: str) -> dict[Address, list[Any]]:
        found = {
            address: [(sender, m) for sender, m in messages if type(m).__name__ == kind]
            for address, messages in self.inbox.arrived.items()
        }
        return {address: messages for address, messages in found.items() if messages}


def fitted(engine: LocalEngine | None = None) -> atoll.PCA:
    options: dict[str, Any] = {"protocol": "sfpca", "release": "encrypted", "bounds": 2000.0}
    options |= {"digits": "full"}
    return atoll.PCA(3, engine=engine, **options).fit(ISLANDS)


@pytest.fixture(scope="module")
def kept() -> tuple[atoll.PCA, Tap, dict[Address, list[Any]]]:
    engine = Tap()
    pca = fitted(engine)
    return pca, engine, dict(engine.inbox.arrived)


def words_of(model: EncryptedModel) -> dict[Address, Any]:
    holders = (*model.study.who("provider"), *model.study.who("coordinator"))
    return {a: go.to_ints(np.array(codec.decode(model.share_of(a), Kept).components)) for a in holders}


def test_the_components_reach_nobody(kept: Any) -> None:
    pca, _, arrived = kept
    kinds = {type(message).__name__ for messages in arrived.values() for _, message in messages}
    assert "ReleasedShare" not in kinds
    assert not hasattr(pca, "components_")
    assert not hasattr(pca, "scores_")
    assert "components" not in pca.result_
    assert "share" not in pca.result_
    np.testing.assert_allclose(pca.explained_variance_, EXACT.explained_variance_)
    for learned in pca.learned_.values():
        assert "share" not in learned.outputs
    with pytest.raises(NotReleased, match="stay encrypted"):
        pca.transform(X)


def test_all_shares_are_the_components_and_all_but_one_are_nothing(kept: Any) -> None:
    shares = words_of(kept[0].encrypted_)
    whole = sum(shares.values()).astype(float) / 2.0**60
    assert np.abs(np.sum(whole * EXACT.components_, axis=1)).min() > 1 - 1e-9
    for missing in (a for a in shares if a.role == "provider"):
        rest = sum(share for a, share in shares.items() if a != missing)
        assert np.median([abs(int(v)).bit_length() for v in rest.ravel()]) > 60 + 40


def test_rows_are_projected_later_for_their_owner_only(kept: Any) -> None:
    pca, engine, _ = kept
    first = pca.encrypted_.project(ISLANDS)
    np.testing.assert_allclose(
        np.abs(np.vstack([first["north"], first["south"]])), np.abs(EXACT.transform(X)), atol=1e-7
    )
    keys = engine.received("KeyParts")
    again = pca.encrypted_.project({"south": X[:7]})
    np.testing.assert_allclose(again["south"], first["north"][:7], atol=1e-7)
    # Only south received shares of anything; keys are new every time.
    assert {address.party for address in engine.received("ReleasedShare")} == {"south"}
    assert not set(_parts(keys)) & set(_parts(engine.received("KeyParts")))


def _parts(received: dict[Address, list[Any]]) -> list[bytes]:
    return [bytes(part) for messages in received.values() for _, m in messages for part in m.parts]


def test_opening_twice_sends_the_same_shares(kept: Any) -> None:
    pca, engine, _ = kept
    sent = []
    for _ in range(2):
        opened = pca.encrypted_.open(to="north")
        assert np.abs(np.sum(opened["components"] * EXACT.components_, axis=1)).min() > 1 - 1e-9
        np.testing.assert_allclose(opened["offset"], opened["components"] @ X.mean(axis=0), rtol=1e-9)
        released = engine.received("ReleasedShare")
        assert {address.party for address in released} == {"north"}
        sent.append(
            {(who, m.words.shape): bytes(m.words.tobytes()) for who, m in next(iter(released.values()))}
        )
    assert sent[0] == sent[1]


def test_shares_belong_together(kept: Any) -> None:
    model = kept[0].encrypted_
    holders = (*model.study.who("provider"), *model.study.who("coordinator"))
    shares = {a: model.share_of(a) for a in holders}
    assert EncryptedModel(model.study, shares).open()["components"].shape == (3, 13)
    with pytest.raises(ParameterError, match="the share of coordinator/coordinator is missing"):
        EncryptedModel(model.study, {a: s for a, s in shares.items() if a.role == "provider"})
    other = fitted().encrypted_
    with pytest.raises(ParameterError, match="different runs"):
        EncryptedModel(model.study, shares | {holders[0]: other.share_of(holders[0])})
    swapped = shares | {holders[0]: shares[holders[1]], holders[1]: shares[holders[0]]}
    with pytest.raises(MessageError, match="another role"):
        EncryptedModel(model.study, swapped).open()


def test_what_a_party_owns_prints_no_share() -> None:
    own = Own(Island.from_array(np.ones((2, 3)), name="north"), kept={"provider": b"secret of north"})
    assert repr(own) == "Own(island=<Island 'north': 2 rows x 3 columns>, min_colluders=0)"


def test_each_role_is_handed_its_own_share_only(kept: Any) -> None:
    """A role of a later step works from its share and its inbox: no other share is in its reach."""
    model = kept[0].encrypted_
    handed: dict[str, Own] = {}

    class Watched(LocalEngine):
        def run(self, protocol: Any, study: Any, own: Any, **options: Any) -> Any:
            handed.update(own)
            assert protocol is PROTOCOLS["sfpca-later"]
            return super().run(protocol, study, own, **options)

    holders = (*model.study.who("provider"), *model.study.who("coordinator"))
    shares = {a: model.share_of(a) for a in holders}
    EncryptedModel(model.study, shares, Watched()).open()
    assert {name: dict(own.kept) for name, own in handed.items()} == {
        a.party: {a.role: shares[a]} for a in holders
    }
    with pytest.raises(RunError, match="north/provider has no share"):
        LocalEngine().run(
            PROTOCOLS["sfpca-later"],
            later_study(model.study, model.session, {"components": ("provider",)}),
            handed | {"north": Own()},
        )


def test_what_cannot_be_done_is_said(kept: Any) -> None:
    pca = kept[0]
    model = pca.encrypted_
    assert repr(model).startswith("<EncryptedModel: 3 components of 13 columns in 3 shares")
    with pytest.raises(ParameterError, match="not stored whole"):
        pickle.dumps(model)
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        model.project({"north": X + 3000})
    with pytest.raises(SchemaError, match="not those of the components"):
        model.project({"north": X[:, :5]})
    with pytest.raises(ParameterError, match="'east' holds no share"):
        model.project({"east": X})


def test_later_rows_have_the_columns_of_the_components() -> None:
    kept: Any = SimpleNamespace(columns=("a", "b"), named=True, centre=np.zeros(2), exponent=2)
    turned = Island.from_frame(pd.DataFrame({"b": [1.0], "a": [2.0]}), name="north")
    np.testing.assert_array_equal(checked_rows(turned, kept).whole(), [[2.0, 1.0]])
    other = Island.from_frame(pd.DataFrame({"a": [1.0], "c": [2.0]}), name="north")
    with pytest.raises(SchemaError, match="north: the columns are not those of the components"):
        checked_rows(other, kept)


def test_later_rows_are_held_against_the_range_before_anything_is_sent() -> None:
    kept: Any = SimpleNamespace(columns=("a", "b"), named=False, centre=np.array([1.0, 0.0]), exponent=2)
    inside = np.array([[5.0, -4.0], [-3.0, 4.0]])
    np.testing.assert_array_equal(checked_rows(Island(inside), kept).whole(), inside)
    for row in ([5.0001, 0.0], [1.0, -4.0001]):
        with pytest.raises(RangeOverflow, match="nothing was sent"):
            checked_rows(Island(np.vstack([inside, row])), kept)


def test_a_study_leaves_shares_with_everybody_or_with_nobody() -> None:
    study = structs.replace(example().study, release={"encrypted": ("provider",)})
    with pytest.raises(StudyError, match="every provider and the coordinator"):
        check_study(PROTOCOL, study)
    both = structs.replace(study, release={"encrypted": ("provider", "coordinator")}, partition="vertical")
    with pytest.raises(StudyError, match="only where islands hold rows"):
        check_study(PROTOCOL, both)
