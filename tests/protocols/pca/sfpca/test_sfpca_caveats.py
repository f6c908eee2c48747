"""What SF-PCA's providers are told that follows from no single message."""

from __future__ import annotations

import pytest
from tests.support.examples import (
    Example,
    private_sfpca,
    sfpca,
    sfpca_columns,
    sfpca_columns_scores,
    sfpca_scores,
    sfpca_standardised,
    sfpca_standardised_scores,
)

from atoll.review.study import review_study


def caveats(example: Example) -> str:
    (provider,) = (role for role in review_study(example.study).roles if role.role == "provider")
    return "\n".join(provider.caveats)


def test_what_all_providers_but_one_can_subtract_is_said() -> None:
    said = caveats(sfpca())
    assert "work together with the coordinator, can work out the last island's total variance" in said
    assert "with the offset, its projected mean" in said
    assert "the power of two that the last island's own values do not exceed" in said
    assert "the power of two" not in caveats(sfpca(bounds=64.0))


def test_what_a_refused_standardised_run_shows_is_said() -> None:
    said = caveats(sfpca_standardised())
    assert "no variance, mean or standard deviation of a column is opened" in said
    assert "total variance" not in said


def test_how_many_colluders_the_noise_is_for_is_said() -> None:
    assert "more than 1 colluding providers know more of the noise" in caveats(private_sfpca())


WHOLE = "all eigenvalues of the joint covariance (as many as columns)"
RITZ = "approximate eigenvalues (Ritz values), the leading ones of which are the explained variances"
CERTIFIED = "and one number that certifies the accuracy"
DIGITS = "; exact to about 16 digits"
ENDING = f"{CERTIFIED}{DIGITS}"


@pytest.mark.parametrize(
    ("example", "opened"),
    [
        (sfpca(recipe="direct"), f"{WHOLE}{DIGITS}"),
        (sfpca(n_components=None), f"{WHOLE}{DIGITS}"),
        (sfpca(recipe="strict", n_components=None), f"{WHOLE}, {CERTIFIED}{DIGITS}"),
        (sfpca(recipe="strict"), f"26 {RITZ}, {CERTIFIED}{DIGITS}"),
        (
            sfpca(direct_up_to=42),
            f"if the tables have up to 42 columns, {WHOLE}; if they have more, 26 {RITZ}, {ENDING}",
        ),
        (sfpca(spectrum="ritz"), f"26 {RITZ}, {CERTIFIED}{DIGITS}"),
        (sfpca(direct_up_to=42, columns=["age", "dose", "weight"]), f"{WHOLE}{DIGITS}"),
        (sfpca(direct_up_to=42, columns=[f"x{i}" for i in range(42)]), f"{WHOLE}{DIGITS}"),
        (sfpca(direct_up_to=42, columns=[f"x{i}" for i in range(43)]), f"26 {RITZ}, {CERTIFIED}{DIGITS}"),
        (
            sfpca(recipe="direct", standardize=True),
            f"all eigenvalues of the joint correlation matrix (as many as columns){DIGITS}",
        ),
        (private_sfpca(), "all eigenvalues of the noisy second moments (as many as columns)"),
    ],
)
def test_what_a_recipe_opens_of_the_spectrum_is_said_to_whoever_sees_it(
    example: Example, opened: str
) -> None:
    for role in review_study(example.study).roles:
        assert (opened in role.learns) == (role.role in ("provider", "coordinator")), role.role


@pytest.mark.parametrize(
    ("example", "said"),
    [
        (sfpca(), "the total variance"),
        (sfpca_standardised(), "how many columns are not constant"),
        (private_sfpca(), "the total variance, noisy"),
    ],
)
def test_what_is_opened_of_the_total_is_said(example: Example, said: str) -> None:
    totals = ("the total variance", "how many columns are not constant", "the total variance, noisy")
    (provider,) = (role for role in review_study(example.study).roles if role.role == "provider")
    assert [words for words in provider.learns if words in totals] == [said]


def test_that_a_first_try_may_be_refused_is_said_where_there_is_a_second() -> None:
    tried = "if the first try turns out not to be accurate enough and is repeated: that it was"
    assert tried in caveats(sfpca())
    assert tried not in caveats(sfpca(recipe="direct"))
    assert tried not in caveats(private_sfpca())


def test_what_scores_say_of_other_islands_is_said_where_there_are_scores() -> None:
    of_columns = (
        "all providers but one know the columns of the last, if it has 2 or fewer, up to a linear map"
    )
    assert of_columns in caveats(sfpca_columns_scores())
    assert "a row's scores" not in caveats(sfpca_columns())
    solved = "an island with more independent rows than columns can solve its scores for components"
    assert solved in caveats(sfpca_scores())
    assert solved not in caveats(sfpca())
    deviations = set(caveats(sfpca_standardised_scores()).splitlines())
    deviations -= set(caveats(sfpca_standardised()).splitlines()) | set(caveats(sfpca_scores()).splitlines())
    assert len(deviations) == 1
    assert "standard deviation" in deviations.pop()


@pytest.mark.parametrize(
    ("example", "role", "said"),
    [
        (sfpca(), "consumer", "explained and total variance"),
        (
            private_sfpca(),
            "consumer",
            "explained and total variance, noisy, and how much of the components is noise",
        ),
        (sfpca(), "consumer", "every island's number of rows"),
        (
            sfpca(digits="full"),
            "consumer",
            "the principal components, and their product with the mean of each column",
        ),
        (
            sfpca_columns_scores(),
            "provider",
            "the projections of the rows that all islands have in common (to ",
        ),
        (sfpca_scores(), "provider", "the projections of its own rows (to "),
    ],
)
def test_an_output_is_called_what_it_is(example: Example, role: str, said: str) -> None:
    (reviewed,) = (r for r in review_study(example.study).roles if r.role == role)
    assert any(
        words == said or (said.endswith("(to ") and words.startswith(said)) for words in reviewed.learns
    )
