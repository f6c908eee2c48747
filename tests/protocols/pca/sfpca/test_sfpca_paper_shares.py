"""SF-PCA as the paper has it, with roots, signs and eigenvectors on shares (its D.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA

from atoll import codec
from atoll.data.island import Island
from atoll.errors import StudyError
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca.paper import parameters, protocol
from atoll.protocols.pca.sfpca.paper.parameters import check
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_numbers import messages as numbers
from atoll.study.address import Address
from atoll.study.model import Party, Study

SMALL = "test-slots-10"


@pytest.fixture(autouse=True)
def _small_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(parameters.SETS, SMALL, (1 << 10, 7))
    before = set(parameters.INSECURE)
    parameters.INSECURE.add(SMALL)
    yield
    parameters.INSECURE.intersection_update(before)


def study(dealer: str | None = "trent", **paper: Any) -> Study:
    parties = [Party("north", ("provider",)), Party("south", ("provider",))]
    parties.append(Party("hub", ("coordinator", "consumer")))
    if dealer is not None:
        known = [p for p in parties if p.name == dealer]
        parties = [p for p in parties if p.name != dealer]
        parties.append(Party(dealer, (*(r for p in known for r in p.roles), "dealer")))
    return Study(
        name="on shares",
        protocol="sfpca-paper",
        parties=tuple(parties),
        parameters={
            "n_components": 1,
            "accept_determined": True,
            "paper": {"p": 2, "alpha": 1, "w": 1, "parameters": SMALL, "seed": 1} | paper,
        },
        release={"components": ("consumer",), "certificate": ("consumer",)},
    )


class Seen(Observer):
    """The kinds of messages that each role was sent."""

    def __init__(self, study: Study) -> None:
        self.decoder: codec.Decoder[Any] = codec.Decoder(protocol.PROTOCOL.all_messages(study))
        self.kinds: dict[str, set[type]] = {}

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.kinds.setdefault(receiver.role, set()).add(type(self.decoder.decode(data)))


def test_components_by_shares_are_those_of_the_pooled_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) @ np.diag([3, 1, 0.3]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    islands = {
        "north": Island.from_array(X[:40], name="north"),
        "south": Island.from_array(X[40:], name="south"),
    }
    asked = study(nonlinear="lss")
    seen = Seen(asked)
    outcome = LocalEngine().run(protocol.PROTOCOL, asked, owned(islands), observer=seen)
    (found,) = (v.outputs for a, v in outcome.learned.items() if a.role == "consumer")
    assert abs(found["components"][0] @ PCA(1).fit(X).components_[0]) > 0.9999
    assert found["certificate"]["bound"] < 0.01
    # The dealer is sent nothing but how much is wanted, and everybody only what the review says.
    assert seen.kinds["dealer"] == {numbers.Wanted}
    said = {(d.role, kind) for d in protocol.PROTOCOL.learns(asked) for kind in d.messages}
    for role, kinds in seen.kinds.items():
        unsaid = {kind.__name__ for kind in kinds if (role, kind) not in said}
        assert not unsaid, role


def test_a_dealer_is_a_party_of_its_own_and_has_something_to_do() -> None:
    check(study(nonlinear="lss"))
    check(study(None, nonlinear="lss-op"))
    with pytest.raises(StudyError, match="plays another role"):
        check(study("hub", nonlinear="lss"))
    with pytest.raises(StudyError, match="no use for"):
        check(study())


def test_the_review_says_whom_one_trusts() -> None:
    said = " ".join(d.learns for d in protocol.PROTOCOL.learns(study(nonlinear="lss-op")))
    assert "trent deals random products and is trusted not to work together with any provider" in said
    alone = protocol.PROTOCOL.learns(study(None, nonlinear="lss"))
    assert not any(d.role == "dealer" for d in alone)
    assert not any("trusted" in d.learns for d in alone)
