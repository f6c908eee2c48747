"""eigen = "encrypted", whole runs: every inbox, what was opened, and what the planner said of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import CertificateRefused, NotReleased, StudyError
from atoll.estimators.base import parties
from atoll.estimators.pca.estimator import PCA
from atoll.protocols.base import Circumstances
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca import messages as m
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.protocols.pca.sfpca.protocol import PROTOCOL
from atoll.protocols.pca.sfpca.recipes.deflation import Course
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.openings import floats
from atoll.study.model import Study

SHORT = Course(raised=3, factors=(2, 1))
HIDDEN = {
    *(mm.EncryptedShare, mm.EncryptedMatrix, mm.ProductPart, mm.SecondHalves),
    *(
        mm.SecondPart,
        mm.MaskedShare,
        mm.MaskedTotal,
        mm.SeedPart,
        mm.SessionSeed,
        mm.KeyParts,
        mm.AllKeyParts,
    ),
}


def rows() -> np.ndarray:
    rng = np.random.default_rng(8)
    first = np.sign(rng.normal(size=(80, 1))) * np.array([[1.8, 1.2, 0.6]])
    return first + rng.uniform(-0.2, 0.2, size=(80, 3))


def study_of(islands: Any, **more: Any) -> Study:
    parameters = {"n_components": 1, "bounds": 2.0, "eigen": "encrypted", "accept_determined": True, **more}
    return Study(
        name="t",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator", "consumer"),
        parameters=parameters,
        release={"components": ("provider", "consumer"), "certificate": ("consumer",)},
    )


class Ran(NamedTuple):
    study: Study
    X: np.ndarray
    tap: Tap
    outcome: Any

    def arrived(self) -> dict[str, list[Any]]:
        decoder = Decoder[Message](PROTOCOL.all_messages(self.study))
        return {
            str(a): [decoder.decode(event.data) for event in self.tap.received(a)] for a in self.tap.inboxes
        }


@pytest.fixture(scope="module")
def short() -> Iterator[None]:
    """A course that is long enough for one eigenvalue far above the others."""
    kept = EFFORTS["encrypted"]
    EFFORTS["encrypted"] = kept._replace(course=SHORT)
    yield
    EFFORTS["encrypted"] = kept


@pytest.fixture(scope="module")
def ran(short: None) -> Ran:
    X = rows()
    islands = as_islands(np.array_split(X, 2))
    study, tap = study_of(islands), Tap()
    return Ran(study, X, tap, LocalEngine().run(PROTOCOL, study, owned(islands), observer=tap))


def test_the_components_are_right(ran: Ran) -> None:
    exact = np.linalg.svd(ran.X - ran.X.mean(axis=0), full_matrices=False)[2][0]
    for address, learned in ran.outcome.learned.items():
        if address.role != "coordinator":
            assert abs(float(learned.outputs["components"][0] @ exact)) > 0.9999


def test_every_inbox_holds_hidden_numbers_one_bit_and_the_outputs(ran: Ran) -> None:
    for name, messages in ran.arrived().items():
        clear = [x for x in messages if type(x) not in HIDDEN and not isinstance(x, mm.Compared)]
        kinds = [type(x).__name__ for x in clear]
        opened = [x for x in clear if isinstance(x, mm.OpenedShare | mm.OpenedMatrix)]
        assert not any(isinstance(x, mm.PublicNumbers) for x in clear)
        if name.endswith("/coordinator"):
            assert set(kinds) == {"Columns", "RowCount", "OpenedShare"}
            assert len(opened) == 2  # one share of each provider
        elif name.endswith("/provider"):
            assert set(kinds) == {"AgreedColumns", "RowCounts", "OpenedMatrix", "ReleasedShare"}
            assert len(opened) == 1
        else:
            assert set(kinds) == {"Names", "Certified", "ReleasedShare"}
        assert all(x.words.shape[:2] == (1, 1) for x in opened)


def test_what_is_opened_is_a_bit_under_noise_that_every_provider_adds(ran: Ran) -> None:
    values = [
        float(floats(np.array(x.words), 60)[0, 0])
        for messages in ran.arrived().values()
        for x in messages
        if isinstance(x, mm.OpenedMatrix)
    ]
    assert len(values) == 2
    assert values[0] == values[1]
    assert 0 < abs(values[0] - 1) < 2.0**-8


def test_nobody_has_variances(ran: Ran) -> None:
    for learned in ran.outcome.learned.values():
        assert not {"explained_variance", "total_variance", "spectrum"} & set(learned.outputs)
    (certified,) = [x for of in ran.arrived().values() for x in of if isinstance(x, m.Certified)]
    assert (certified.recipe, certified.bound, certified.tau) == ("encrypted", 0.014, 0.0)


def test_rounds_and_bytes_are_those_of_the_planner(ran: Ran) -> None:
    expected, foreseen = forecast(ran.study, Circumstances(3, (40, 40)))
    seen = ran.outcome.transcript
    assert seen.rounds == expected.rounds
    sent = max(role.bytes_sent for name, role in seen.roles.items() if name.endswith("/provider"))
    assert abs(sent - expected.bytes_per_provider) < 0.01 * sent
    assert any('eigen = "masked" instead' in line for line in foreseen.course)


def test_a_refused_run_opens_one_bit_and_releases_nothing(short: None) -> None:
    X = np.vstack([np.eye(3), -np.eye(3)] * 10)  # all variances are equal
    islands = as_islands(np.array_split(X, 2))
    study, tap = study_of(islands, retry=False), Tap()
    with pytest.raises(CertificateRefused, match="nothing else was opened"):
        LocalEngine().run(PROTOCOL, study, owned(islands), observer=tap)
    arrived = Ran(study, X, tap, None).arrived()
    every = [x for messages in arrived.values() for x in messages]
    assert not any(isinstance(x, mm.ReleasedShare | mm.PublicNumbers) for x in every)
    opened = [x for x in every if isinstance(x, mm.OpenedMatrix)]
    assert all(abs(float(floats(np.array(x.words), 60)[0, 0])) < 2.0**-8 for x in opened)


def test_the_review_lists_the_outputs_and_the_bit() -> None:
    study = study_of(as_islands(np.array_split(rows(), 2)))
    said = " ".join(one.learns for one in PROTOCOL.learns(study))
    assert "one bit: whether the components are accurate" in said
    for word in ("eigenvalue", "Ritz", "total variance", "explained", "power of two"):
        assert word not in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"bounds": None}, "needs bounds"),
        ({"n_components": None}, "needs a number of components"),
        ({"standardize": True}, "does not standardise"),
        ({"recipe": "direct"}, "has no recipe"),
    ],
)
def test_what_would_open_more_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        PROTOCOL.check(study_of(as_islands(np.array_split(rows(), 2)), **more))


def test_the_estimator_refuses_what_needs_variances() -> None:
    blocks = np.array_split(rows(), 2)
    pca = PCA(1, protocol="sfpca", eigen="encrypted", bounds=2.0, whiten=True)
    with pytest.raises(NotReleased, match="whiten needs the components' variances"):
        pca.fit(blocks)
