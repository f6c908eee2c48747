"""Which recipe "auto" is: settled from the study's links, before it has a digest; and what may forbid it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.examples import private_sfpca, sfpca

from atoll.errors import ParameterError, StudyError
from atoll.protocols import resolve
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters, decide
from atoll.protocols.pca.sfpca.settled import _faster_up_to
from atoll.review.study import review_study
from atoll.secret_matrices.costs import rates
from atoll.study.model import Study

NEAR = {"latency": 0.05, "bandwidth": 10_000.0}
"""As in one rack: computing counts, rounds do not."""


def settled(**parameters: Any) -> SFPCAParameters:
    return resolve(sfpca(**parameters).study).read_parameters(SFPCAParameters)


def ten_islands(**parameters: Any) -> Study:
    study = sfpca(**parameters).study
    more = tuple(msgspec.structs.replace(study.parties[0], name=f"island-{i}") for i in range(10))
    return msgspec.structs.replace(study, parties=(*more, *study.parties[3:]))


def test_up_to_128_columns_the_faster_recipe_is_taken() -> None:
    p = settled()
    assert p.direct_limit == 128
    assert decide(p, 1000, 60).recipes == ("direct",)
    assert decide(p, 1000, 129).recipes == ("default", "accurate")
    near = resolve(ten_islands(links=NEAR)).read_parameters(SFPCAParameters)
    assert 42 < near.direct_limit < 128
    assert decide(near, 1000, 128).recipes == ("default", "accurate")
    assert decide(near, 1000, 42).recipes == ("direct",)


def test_the_choice_is_what_the_forecast_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the path whose table all parties decide by, whatever this processor has."""
    monkeypatch.setattr(rates, "vector_path", lambda: rates.reference().path)
    near = resolve(ten_islands(links=NEAR))
    limit = near.read_parameters(SFPCAParameters).direct_limit
    for columns, direct_wins in ((limit, True), (limit + 8, False)):
        given = Circumstances(columns, (), 0.00005, 1.25e9)
        taken = forecast(near, given)[1].seconds_apart
        other = msgspec.structs.replace(
            near, parameters={**near.parameters, "recipe": "strict" if direct_wins else "direct"}
        )
        assert taken <= forecast(other, given)[1].seconds_apart * 1.001


def test_the_choice_is_part_of_the_digest_and_of_no_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = resolve(sfpca().study)
    assert study.parameters["direct_up_to"] == 128
    assert resolve(study) == study
    assert resolve(sfpca(links=NEAR).study).digest != study.digest
    slow = rates.shipped()
    python = msgspec.structs.replace(slow.python, rotation=rates.Rate(1.0, 1.0))
    monkeypatch.setenv(rates.FILE_VARIABLE, str(tmp_path / "calibration.json"))
    rates.store(msgspec.structs.replace(slow, python=python, cores=64))
    _faster_up_to.cache_clear()
    assert resolve(sfpca().study).digest == study.digest
    table = rates.reference()
    monkeypatch.setattr(rates, "vector_path", lambda: "scalar")
    assert rates.shipped().path == "scalar"
    assert rates.reference() == table
    assert table.path == "avx2"
    _faster_up_to.cache_clear()
    assert resolve(sfpca().study).digest == study.digest


def test_a_study_may_state_the_number_itself() -> None:
    assert settled(direct_up_to=50).direct_limit == 50
    assert decide(settled(direct_up_to=50), 1000, 51).recipes == ("default", "accurate")
    with pytest.raises(StudyError, match="direct_up_to=257 is not possible"):
        settled(direct_up_to=257)


def test_ritz_forbids_what_opens_all_eigenvalues() -> None:
    p = settled(spectrum="ritz")
    assert decide(p, 1000, 27).recipes == ("default", "accurate")
    with pytest.raises(ParameterError, match="2 components of 26 columns open that many"):
        decide(p, 1000, 26)
    with pytest.raises(ParameterError, match="open that many"):
        decide(settled(spectrum="ritz", recipe="strict"), 1000, 26)
    for wrong in ({"recipe": "direct"}, {"n_components": None}):
        with pytest.raises(StudyError, match="spectrum='ritz' forbids opening all eigenvalues, which"):
            settled(spectrum="ritz", **wrong)
    with pytest.raises(StudyError, match="which an epsilon"):
        resolve(private_sfpca(spectrum="ritz").study)


@pytest.mark.parametrize("links", [{"latency": -1.0}, {"bandwidth": 0.0}])
def test_links_are_links(links: dict[str, float]) -> None:
    with pytest.raises(StudyError, match="links need a latency"):
        settled(links=links)


# ---- what the review says ----


def opened(study: Study) -> str:
    (provider,) = (role for role in review_study(study).roles if role.role == "provider")
    return next(words for words in provider.learns if "eigenvalues" in words or "Ritz" in words)


def test_the_review_says_what_is_opened_and_why() -> None:
    both = opened(sfpca().study)
    assert both.startswith("if the tables have up to 128 columns, all eigenvalues of the joint covariance")
    assert "because that is faster on links of 20 ms and 1,000 Mbit/s and exact" in both
    assert "if they have more, 26 approximate eigenvalues (Ritz values)" in both
    assert opened(sfpca(spectrum="ritz").study).startswith("26 approximate eigenvalues (Ritz values)")
    few = opened(sfpca(columns=("age", "dose", "weight", "stay")).study)
    assert few.startswith("all eigenvalues")
    assert "Ritz" not in few


@pytest.mark.parametrize(
    ("parameters", "columns", "said"),
    [
        ({}, 60, "direct, because up to 128 columns the study takes it, as the faster one on links of 20 ms"),
        ({}, 20, "direct, because it is exact, and opens what strict would open as well: all 20 eigen"),
        ({}, 200, "strict (default policy), because it opens 26 numbers of the spectrum where direct"),
        ({"spectrum": "ritz"}, 60, "which spectrum = 'ritz' forbids"),
        ({"direct_up_to": 50}, 60, "20 ms and 1,000 Mbit/s the study takes direct up to 50 columns"),
    ],
)
def test_the_forecast_says_why(parameters: dict[str, Any], columns: int, said: str) -> None:
    assert said in forecast(resolve(sfpca(**parameters).study), Circumstances(columns))[1].course[0]


def test_the_forecast_is_for_the_studys_links() -> None:
    far = resolve(sfpca(links={"latency": 200.0, "bandwidth": 10.0}).study)
    given = Circumstances(60)
    usual = forecast(resolve(sfpca().study), given)[1]
    assert forecast(far, given)[1].seconds_apart > 3 * usual.seconds_apart
    assert "links of 200 ms and 10 Mbit/s" in forecast(far, given)[1].assumes[1]
