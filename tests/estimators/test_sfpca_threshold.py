"""``threshold=``: outputs that some of the islands release; and more islands than fifty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from sklearn.decomposition import PCA
from tests.support.examples import sfpca, sfpca_columns_scores, sfpca_scores

import atoll
from atoll.errors import ParameterError, PartyLeft, StudyError
from atoll.estimators.encrypted_model import EncryptedModel
from atoll.protocols import protocol_of
from atoll.protocols.base import Circumstances, check_study, resolve
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.report.assessment import as_markdown
from atoll.review.study import review_study
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.study.address import Address
from atoll.study.model import Party

ROWS = np.random.default_rng(2).normal(size=(250, 4)) * [3.0, 2.0, 1.0, 0.3]
ISLANDS = {f"i{number}": part for number, part in enumerate(np.array_split(ROWS, 5))}
EXACT = PCA(2).fit(ROWS)


def fitted(**options: Any) -> atoll.PCA:
    options = {"threshold": 3, "bounds": 16.0} | options
    accepted = {} if "epsilon" in options else {"accept_determined": True}
    return atoll.PCA(2, protocol="sfpca", **options, **accepted).fit(ISLANDS)


def cosines(components: np.ndarray) -> np.ndarray:
    return np.abs((components * EXACT.components_).sum(axis=1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"release": "encrypted"},
        {"threshold": 5},
        {"standardize": True},
        {"epsilon": 50.0, "delta": 1e-5},
        {"eigen": "encrypted"},
    ],
    ids=str,
)
def test_rounds_and_messages_are_those_that_the_planner_counts(options: dict[str, Any]) -> None:
    pca = fitted(**options)
    expected, _ = forecast(pca.result_.study, Circumstances(4, (50,) * 5))
    seen = pca.transcript_
    assert (seen.rounds, seen.messages) == (expected.rounds, expected.messages)
    sent = max(cost.bytes_sent for role, cost in seen.roles.items() if role.endswith("/provider"))
    assert sent == pytest.approx(expected.bytes_per_provider, rel=0.005)
    if not set(options) & {"release", "standardize", "epsilon"}:
        assert cosines(pca.components_).min() > 0.9999999


def test_the_fit_is_that_of_all_islands_when_two_stop_at_the_end() -> None:
    faults = Faults(crash={"i0/provider": 66, "i3/provider": 68})
    pca = fitted(engine=LocalEngine(faults=faults))
    assert cosines(pca.components_).min() > 0.9999999
    assert pca.n_samples_ == 250
    assert np.allclose(np.abs(pca.transform(ROWS)), np.abs(EXACT.transform(ROWS)), atol=1e-5)


def test_islands_that_stop_early_end_the_fit() -> None:
    with pytest.raises(PartyLeft, match="left before"):
        fitted(engine=LocalEngine(faults=Faults(crash={"i0/provider": 12})))


def test_kept_components_are_opened_and_used_by_any_three() -> None:
    model = fitted(release="encrypted").encrypted_
    whole = model.open()
    assert cosines(whole["components"]).min() > 0.9999999
    providers, coordinator = model.study.who("provider"), model.study.the("coordinator")
    for chosen in ((0, 1, 2), (4, 2, 0), (1, 2, 3, 4)):
        who = [providers[i] for i in chosen]
        some = EncryptedModel(model.study, {a: model.share_of(a) for a in (*who, coordinator)})
        opened = some.open(to="coordinator")
        assert np.array_equal(opened["components"], whole["components"])
        assert np.array_equal(opened["offset"], whole["offset"])
        name = who[1].party
        scores = some.project({name: ISLANDS[name]})[name]
        assert np.allclose(scores, ISLANDS[name] @ whole["components"].T - whole["offset"], atol=1e-9)
        with pytest.raises(ParameterError, match="holds no share"):
            some.project({providers[3 if 3 not in chosen else 0].party: ROWS[:3]})


def test_fewer_shares_than_the_threshold_are_refused() -> None:
    model = fitted(release="encrypted").encrypted_
    providers, coordinator = model.study.who("provider"), model.study.the("coordinator")
    for who in ((*providers[:2], coordinator), providers):
        with pytest.raises(ParameterError, match="is missing"):
            EncryptedModel(model.study, {a: model.share_of(a) for a in who})


def test_an_opening_goes_on_when_one_more_stops() -> None:
    model = fitted(release="encrypted").encrypted_
    stopping = LocalEngine(faults=Faults(crash={"i1/provider": 1, "i4/provider": 1}))
    shares = {a: model.share_of(a) for a in model._shares}
    opened = EncryptedModel(model.study, shares, stopping).open(to="coordinator")
    assert np.array_equal(opened["components"], model.open()["components"])


@pytest.mark.parametrize("threshold", [1, 0, 6, True])
def test_impossible_thresholds(threshold: Any) -> None:
    with pytest.raises((ParameterError, StudyError), match="threshold="):
        fitted(threshold=threshold)


@pytest.mark.parametrize("build", [sfpca_scores, sfpca_columns_scores])
def test_scores_of_who_has_no_components_need_everybody(build: Any) -> None:
    study = build().study
    study = structs.replace(study, parameters=dict(study.parameters) | {"threshold": 2})
    with pytest.raises(StudyError, match="threshold is for components"):
        check_study(protocol_of("sfpca"), study)


def test_the_review_says_who_can_open_outputs() -> None:
    words = "any 2 providers who put theirs together have both, whomever they are released to"
    assert words in as_markdown(review_study(sfpca(threshold=2).study, 4))
    assert "who put theirs together" not in as_markdown(review_study(sfpca().study, 4))


def test_a_threshold_is_part_of_what_is_approved() -> None:
    protocol = protocol_of("sfpca")
    assert resolve(protocol, sfpca().study).digest != resolve(protocol, sfpca(threshold=2).study).digest


# ---- many islands ----


def test_more_islands_than_fifty() -> None:
    rows = np.random.default_rng(3).normal(size=(52 * 30, 3)) * [3.0, 2.0, 1.0]
    pca = atoll.PCA(1, protocol="sfpca", bounds=16.0, recipe="direct", accept_determined=True)
    pca.fit(np.array_split(rows, 52))
    exact = PCA(1).fit(rows).components_
    assert abs(float((pca.components_ @ exact.T)[0, 0])) > 0.9999999
    expected, _ = forecast(pca.result_.study, Circumstances(3, (30,) * 52))
    assert (pca.transcript_.rounds, pca.transcript_.messages) == (expected.rounds, expected.messages)


def test_how_many_islands_there_may_be() -> None:
    study = sfpca().study

    def of(count: int) -> Any:
        islands = tuple(Party(f"i{i}", ("provider",)) for i in range(count))
        return structs.replace(study, parties=(*islands, *study.parties[3:]))

    check_study(protocol_of("sfpca"), of(256))
    with pytest.raises(StudyError, match="up to 256 providers"):
        check_study(protocol_of("sfpca"), of(257))
    assert Address("i255", "provider") in of(256).who("provider")
