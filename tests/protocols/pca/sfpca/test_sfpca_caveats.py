"""What SF-PCA's providers are told that follows from no single message."""

from __future__ import annotations

from tests.support.examples import Example, private_sfpca, sfpca, sfpca_standardised

from atoll.review.study import review_study


def caveats(example: Example) -> str:
    (provider,) = (role for role in review_study(example.study).roles if role.role == "provider")
    return "\n".join(provider.caveats)


def test_what_all_providers_but_one_can_subtract_is_said() -> None:
    said = caveats(sfpca())
    assert "all providers but one, with the coordinator: the last island's total variance" in said
    assert "with the offset, its projected mean" in said
    assert "the power of two that the last island's own values do not exceed" in said
    assert "the power of two" not in caveats(sfpca(bounds=64.0))


def test_what_a_refused_standardised_run_shows_is_said() -> None:
    said = caveats(sfpca_standardised())
    assert "no variance, mean or standard deviation of a column is opened" in said
    assert "total variance" not in said


def test_how_many_colluders_the_noise_is_for_is_said() -> None:
    assert "more than 1 colluding providers know more of the noise" in caveats(private_sfpca())
