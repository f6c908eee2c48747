"""What ``atoll review`` says of SF-PCA, against what a party can work out of what it receives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, private_sfpca, sfpca, sfpca_scores

from atoll.errors import StudyError
from atoll.protocols import check_study, protocol_of
from atoll.report.assessment import as_markdown
from atoll.review.study import review_study
from atoll.runtime.execute import run_study

ALL = "give, with their variances, "


def said(example: Example, role: str) -> str:
    reviewed = {r.role: r for r in review_study(example.study).roles}[role]
    return "\n".join((*reviewed.learns, *reviewed.caveats))


# ---- as many components as columns ----


@pytest.mark.parametrize("n_components", [None, 4])
def test_all_components_give_mean_and_covariance_and_the_review_says_so(n_components: int | None) -> None:
    columns = ("age", "dose", "weight", "stay")
    example = sfpca(n_components=n_components, columns=columns, digits="full")
    result = run_study(example.study, example.own).result
    W = result["components"]
    X = np.vstack([island.features(columns) for island in example.islands.values()])
    np.testing.assert_allclose(W.T @ result["offset"], X.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(W.T * result["explained_variance"] @ W, np.cov(X.T), atol=1e-9)
    for role in ("provider", "consumer"):
        assert f"all components {ALL}the joint covariance and, with the offset, the mean" in said(
            example, role
        )
    assert ALL not in said(example, "coordinator")  # is given no components


def test_the_number_of_columns_decides_whether_components_can_be_turned_back() -> None:
    named: dict[str, Any] = {"columns": ("age", "dose", "weight", "stay")}
    assert "joint covariance and" not in said(sfpca(**named), "provider")
    three = said(sfpca(columns=("age", "dose", "weight")), "provider")
    assert (
        "from all components but one, their variances and the total, it can work out the joint covariance"
        in three
    )
    assert f"where the tables have no more than 2 columns, the components {ALL}" in said(sfpca(), "provider")


def test_scores_that_were_solved_give_the_same() -> None:
    alone, beside = sfpca_scores(), sfpca()
    release = {"scores": ("provider",), "components": ("consumer",)}
    beside = Example(structs.replace(beside.study, release=release), beside.islands)
    for example in (alone, beside):
        assert ALL in said(example, "provider")
        assert "can solve its scores for components and offset" in said(example, "provider")
    assert ALL not in said(EXAMPLES["sfpca-columns-scores"](), "provider")


def test_standardised_or_noisy_components_give_what_they_are_made_of() -> None:
    assert f"{ALL}the correlation matrix" in said(sfpca(standardize=True), "consumer")
    assert "the mean of each column" not in said(sfpca(standardize=True), "consumer")
    assert f"{ALL}all noisy second moments" in said(private_sfpca(), "consumer")


# ---- how contributions travel ----


@pytest.mark.parametrize(
    ("example", "summed"),
    [(sfpca(), "the range of the data"), (private_sfpca(), "the private centre"), (sfpca(bounds=64.0), None)],
)
def test_encryption_hides_contributions_and_a_secure_sum_only_what_it_adds(
    example: Example, summed: str | None
) -> None:
    text = as_markdown(review_study(example.study))
    assert "travels encrypted under a collective key" in text
    assert "travels only inside a secure sum" not in text
    assert ("ecure sum" in text) == (summed is not None)
    if summed is not None:
        assert f"For {summed} there is a secure sum (`shares`): " in text
        assert f"Secure sum `shares` (for {summed} only): " in text


def test_projections_are_said_to_reach_their_owners_or_those_who_see_others() -> None:
    own = as_markdown(review_study(sfpca_scores().study))
    assert "go to the island that holds the record only" in own
    common = as_markdown(review_study(EXAMPLES["sfpca-columns-scores"]().study))
    assert "Projections of records are sent" in common


def test_components_that_can_be_opened_later_count_as_known() -> None:
    example = sfpca()
    columns = ("age", "dose", "weight", "stay")
    study = structs.replace(
        example.study,
        parameters={"n_components": 3, "columns": columns},
        release={"encrypted": ("provider", "coordinator")},
    )
    with pytest.raises(StudyError, match="all components, or all but one, say the whole joint covariance"):
        check_study(protocol_of("sfpca"), study)


def test_the_rows_below_which_an_island_is_reported_are_said() -> None:
    assert "fewer than 30 rows are named in a warning" in said(sfpca(), "provider")
    assert "fewer than 64 rows are named in a warning" in said(sfpca(n_components=30), "provider")
    every = "30 rows, or than four more than twice the number of components, are named in a warning"
    assert every in said(sfpca(n_components=None), "provider")
