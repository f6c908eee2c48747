"""The paper variant through its roles, encrypted on slots that protect nothing: right, or refused."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca_paper, sfpca_paper_columns
from tests.support.paper_runs import SMALL, cosines, exact, table

import atoll
from atoll.data.island import as_islands
from atoll.errors import CertificateRefused, ParameterError, RangeOverflow, StudyError
from atoll.estimators.base import parties
from atoll.protocols import resolve
from atoll.protocols.pca.sfpca.paper import releases
from atoll.protocols.pca.sfpca.paper.protocol import PROTOCOL
from atoll.runtime.local.engine import LocalEngine
from atoll.study.model import Study

PAPER: dict[str, Any] = {"p": 4, "alpha": 1, "w": 1, "seed": 4, "parameters": SMALL}
X = table()
NAMES = ["age", "dose", "weight", "stay", "score"]


def fitted(**options: Any) -> atoll.PCA:
    paper = {**PAPER, **options.pop("paper", {})}
    pca = atoll.PCA(1, protocol="sfpca", variant="paper", paper=paper, accept_determined=True, **options)
    return pca.fit(list(np.array_split(X, 3)))


def test_the_model_is_that_of_the_pooled_table() -> None:
    pca = fitted()
    assert cosines(pca.components_, exact(X, 1)).min() > 0.9999
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(
        pca.explained_variance_, (centred @ pca.components_.T).var(axis=0, ddof=1), rtol=1e-3
    )
    np.testing.assert_allclose(pca.total_variance_, X.var(axis=0, ddof=1).sum(), rtol=1e-4)
    np.testing.assert_allclose(pca.offset_, pca.components_ @ X.mean(axis=0), atol=1e-3)
    assert pca.certificate_["bound"] < 0.01


def test_providers_that_verify_find_the_same() -> None:
    pca = fitted(release="components", paper={"verify": True})
    assert cosines(pca.components_, exact(X, 1)).min() > 0.9999


def test_outputs_that_a_threshold_releases_are_those_of_the_pooled_table() -> None:
    pca = fitted(threshold=2)
    assert cosines(pca.components_, exact(X, 1)).min() > 0.9999
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(
        pca.explained_variance_, (centred @ pca.components_.T).var(axis=0, ddof=1), rtol=1e-3
    )
    np.testing.assert_allclose(pca.offset_, pca.components_ @ X.mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("threshold", [1, 4, True])
def test_a_threshold_that_cannot_be_is_refused(threshold: Any) -> None:
    with pytest.raises((StudyError, ParameterError), match="threshold"):
        fitted(threshold=threshold)


def test_a_threshold_releases_no_scores_of_hidden_components() -> None:
    with pytest.raises(StudyError, match="scores of whoever has none are products"):
        fitted(threshold=2, release="scores")


@pytest.mark.parametrize("paper", [{}, {"qr": "dqr", "verify": True}], ids=str)
def test_scores_reach_their_owners_without_components(paper: dict[str, Any]) -> None:
    pca = fitted(release="scores", paper=paper)
    assert not hasattr(pca, "components_")
    right = (X - X.mean(axis=0)) @ exact(X, 1).T
    scores = np.vstack(list(pca.scores_.values()))
    np.testing.assert_allclose(np.abs(scores), np.abs(right), atol=0.02)


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**12])
def test_intervals_that_do_not_fit_end_the_run(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    from atoll.protocols.pca.sfpca.paper import protocol

    told = protocol.taken

    def wrong(*arguments: Any) -> Any:
        intervals = told(*arguments)
        low, high = intervals.of["components/0/inverse"]
        of = {**intervals.of, "components/0/inverse": (low * factor, high * factor)}
        return intervals._replace(of=of)

    monkeypatch.setattr(protocol, "taken", wrong)
    with pytest.raises((CertificateRefused, RangeOverflow)):
        fitted()


@pytest.mark.parametrize(("tau", "fine"), [(0.0, True), (1.5, False), (float("nan"), False)])
def test_a_consumer_looks_at_what_it_is_opened_itself(tau: float, fine: bool) -> None:
    """Islands that refuse tell it nothing: what it receives after a tau that is too large is no result."""
    study = sfpca_paper().study
    (me,) = study.who("consumer")
    assert study.releases("certificate", me)
    asked: list[int] = []

    class Told:
        async def opened(self, lengths: tuple[int, ...], receivers: frozenset[str]) -> list[np.ndarray]:
            assert str(me) in receivers
            asked.append(len(lengths))
            return [np.full(n, tau if len(asked) == 1 else 0.0) for n in lengths]

    receiving = releases.received(cast("Any", SimpleNamespace(me=me)), study, cast("Any", Told()), 5)
    if fine:
        assert asyncio.run(receiving).tau == tau
        assert len(asked) > 1
    else:
        with pytest.raises(CertificateRefused):
            asyncio.run(receiving)
        assert asked == [1]


def of_columns(release: dict[str, tuple[str, ...]], **paper: Any) -> dict[str, Any]:
    """What each role is given at the end."""
    example = sfpca_paper_columns()
    letters = example.study.parameters["paper"]
    assert any(low < 0 for low, _ in letters["intervals"]["places"].values())
    parameters = example.study.parameters | {"paper": letters | paper}
    study = structs.replace(example.study, parameters=parameters, release=release)
    outcome = LocalEngine().run(PROTOCOL, resolve(study), example.own)
    return {str(a): v.outputs for a, v in outcome.learned.items()}


def test_islands_with_columns_and_stated_intervals() -> None:
    """The paper's D.2 through its roles; signs have intervals on either side of zero."""
    given = of_columns(
        dict.fromkeys(("components", "explained_variance", "certificate"), ("provider",))
        | {"scores": ("island-1",)}
    )
    found = given["island-1/provider"]
    assert cosines(found["components"], exact(X, 1)).min() > 0.999
    np.testing.assert_allclose(found["total_variance"], X.var(axis=0, ddof=1).sum(), rtol=1e-4)
    np.testing.assert_allclose(found["offset"], found["components"] @ X.mean(axis=0), atol=1e-3)
    due = (X - X.mean(axis=0)) @ found["components"].T
    np.testing.assert_allclose(found["scores"]["island-1"], due, atol=0.01)
    assert "scores" not in given["island-0/provider"]


@pytest.mark.parametrize("paper", [{}, {"verify": True}], ids=str)
def test_scores_of_common_rows_reach_islands_without_components(paper: dict[str, Any]) -> None:
    given = of_columns({"scores": ("provider",)}, **paper)
    right = (X - X.mean(axis=0)) @ exact(X, 1).T
    for i in range(3):
        assert set(given[f"island-{i}/provider"]) == {"scores"}
        (scores,) = given[f"island-{i}/provider"]["scores"].values()
        np.testing.assert_allclose(np.abs(scores), np.abs(right), atol=0.06)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no iterations": ({"p": 0}, "p=0 is not possible"),
    "degree": ({"degree": 127}, "degree=127 is not possible"),
    "distributed": ({"qr": "dqr", "method": "precomp"}, "DQR^T factorises"),
    "network": ({"xi": -1.0}, "xi=-1.0 is not possible"),
    "set": ({"parameters": "paper-99"}, "no set of CKKS parameters"),
    "letter": ({"q": 3}, "unknown field q"),
    "interval": (
        {"intervals": {"scale": 0, "variances": [0, 0, 0], "places": {"a": [2.0, 1.0]}}},
        "must be positive",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused_before_anything_runs(name: str) -> None:
    changed, words = BAD[name]
    example = sfpca_paper()
    study = Study(
        name="bad",
        protocol="sfpca-paper",
        parties=parties(example.islands, "provider", "coordinator"),
        parameters={"paper": {**PAPER, **changed}},
        release={"components": ("provider",)},
    )
    with pytest.raises(StudyError, match=re.escape(words)):
        resolve(study)


def test_options_of_the_other_variant_are_refused() -> None:
    with pytest.raises(ParameterError, match="eigen"):
        fitted(eigen="encrypted")
    with pytest.raises(ParameterError, match="standardize"):
        fitted(standardize=True)
    rows = [X[i : i + 1] for i in range(5)]
    with pytest.raises(ParameterError, match=r"DQR.T of 2 rows needs an island with so many samples"):
        atoll.PCA(1, protocol="sfpca", variant="paper", paper={**PAPER, "qr": "dqr"}).fit(rows)
    with pytest.raises(ParameterError, match="sketch of"):
        atoll.PCA(3, protocol="sfpca", variant="paper", paper={**PAPER, "alpha": 9}).fit(
            list(as_islands(list(np.array_split(X, 2))).values())
        )


def test_the_digest_covers_every_letter() -> None:
    study = resolve(sfpca_paper().study)
    assert study.parameters["paper"]["degree"] == 31
    other = {**study.parameters, "paper": {**study.parameters["paper"], "w": 7}}
    assert resolve(Study(**{**_fields(study), "parameters": other})).digest != study.digest


def _fields(study: Study) -> dict[str, Any]:
    return {name: getattr(study, name) for name in study.__struct_fields__}
