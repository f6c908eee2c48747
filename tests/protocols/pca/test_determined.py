"""Where outputs say the second moments: the count, who is refused, and what the review says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from sklearn.datasets import load_wine
from tests.support.examples import pppca, sfpca, sfpca_columns_scores, sfpca_encrypted, sfpca_scores

import atoll
from atoll.errors import ParameterError, PrivacyError, StudyError
from atoll.protocols import resolve
from atoll.protocols.base import check_study
from atoll.protocols.pca import determined
from atoll.protocols.pca.determined import Given, Table, line
from atoll.protocols.pca.pppca.outputs import outsiders
from atoll.protocols.pca.pppca.protocol import PROTOCOL as PPPCA
from atoll.protocols.pca.sfpca import digits as sfpca_digits
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters
from atoll.protocols.pca.sfpca.protocol import PROTOCOL as SFPCA
from atoll.review.study import Guess, review_study
from atoll.runtime.execute import run_study

WINE = load_wine().data
HALVES = {"north": WINE[:90], "south": WINE[90:]}


def without(example: Any, *names: str, **parameters: Any) -> Any:
    kept = {name: value for name, value in example.study.parameters.items() if name not in names}
    return structs.replace(example.study, parameters=kept | parameters)


# ---- the count ----


def test_the_bits_that_are_known_and_unknown() -> None:
    # 3 columns, 1 component: two directions, one offset at 26 bits; a variance and the total at 52.
    assert determined.known_bits(3, 1, Given(26)) == 26 * 3 + 52 * 2
    assert determined.known_bits(3, 1, Given(26, mean=True, variances=False)) == 26 * 2
    # 6 second moments of log2(10 * 16 / 2) bits, 3 sums of log2(10 * 4).
    unknown = 6 * np.log2(80) + 3 * np.log2(40)
    assert determined.unknown_bits(Table(3, 100, 4), Given()) == pytest.approx(unknown)
    own = Table(3, 100, 4, own_columns=2)
    assert determined.unknown_bits(own, Given()) == pytest.approx(3 * np.log2(80) + np.log2(40))
    rest = Table(3, 200, 4, own_rows=100)
    assert determined.unknown_bits(rest, Given()) == pytest.approx(unknown)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (Table(13, 178, 2048), (8, 4)),
        (Table(30, 569, 4300), (27, 10)),
        (Table(20, 500, 4), (4, 2)),
        (Table(717, 60000, 255), (469, 182)),
        (Table(2, 500), (1, 1)),
    ],
)
def test_the_line(table: Table, expected: tuple[int, int]) -> None:
    assert (line(table, Given(26)), line(table, Given(52))) == expected


def test_all_components_but_one_are_the_covariance_and_so_are_as_many_as_the_rank() -> None:
    big = Table(300, 10_000)
    assert not determined.is_whole(big, 298, Given())
    assert determined.is_whole(big, 299, Given())
    assert not determined.is_whole(big, 299, Given(variances=False))
    assert determined.is_whole(Table(300, 20), 19, Given())
    assert not determined.is_whole(Table(300, 20), 18, Given())
    assert determined.spans(7.0, 7.0)
    assert not determined.spans(7.0 - 1e-10, 7.0)


# ---- who is refused ----


def test_two_of_three_components_give_the_covariance_back() -> None:
    """The computed value behind the sentence: rebuilt to rounding, so refused unless accepted."""
    X = WINE[:, :3]
    islands = [X[:90], X[90:]]
    with pytest.raises(PrivacyError, match="the whole joint covariance"):
        atoll.PCA(2).fit(islands)
    pca = atoll.PCA(2, accept_determined=True).fit(islands)
    W, values = pca.components_, pca.explained_variance_
    last = np.eye(3) - W.T @ W
    rebuilt = (W.T * values) @ W + (pca.total_variance_ - values.sum()) * last
    np.testing.assert_allclose(rebuilt, np.cov(X.T), rtol=1e-12, atol=1e-14)


def test_components_that_leave_no_variance_are_refused() -> None:
    flat = np.random.default_rng(2).normal(size=(200, 2)) @ np.random.default_rng(3).normal(size=(2, 40))
    islands = [flat[:100], flat[100:]]
    for options in ({}, {"protocol": "sfpca"}):
        with pytest.raises(PrivacyError, match="explain all of the variance"):
            atoll.PCA(2, **options).fit(islands)
        assert atoll.PCA(1, **options).fit(islands).n_components_ == 1


def test_the_servers_own_party_is_not_refused() -> None:
    example = pppca()
    study = without(example, "accept_determined")
    with pytest.raises(PrivacyError, match="2 of 4 columns and 40 rows say the whole joint covariance"):
        run_study(study, example.own)  # standardised: the scales are released too
    plain = without(example, "accept_determined", standardize=False)
    with pytest.raises(PrivacyError, match="whole numbers in a range of 65,536"):
        run_study(plain, example.own)
    alone = structs.replace(study, release={"components": ("server",), "explained_variance": ("server",)})
    assert outsiders(study)
    assert not outsiders(alone)
    assert run_study(alone, example.own).result["components"].shape == (2, 4)


def test_a_study_names_what_cannot_be_right() -> None:
    example = sfpca()
    for parameters, words in (
        ({"digits": 8}, "digits=8 is not possible"),
        ({"digits": 41}, "digits=41 is not possible"),
        ({"n_components": None}, "all components, or all but one"),
        ({"n_components": 3, "columns": ("age", "dose", "weight", "stay")}, "all components, or all but one"),
    ):
        with pytest.raises(StudyError, match=words):
            check_study(SFPCA, without(example, "accept_determined", **parameters))
    # Whoever has scores of its own rows solves them for the components.
    with pytest.raises(StudyError, match="all components, or all but one"):
        check_study(SFPCA, without(sfpca_scores(), "accept_determined", n_components=None))
    with pytest.raises(StudyError, match="digits"):
        check_study(SFPCA, without(example, digits="most"))
    with pytest.raises(StudyError, match="scores of common rows"):
        check_study(SFPCA, without(sfpca_columns_scores(), "accept_determined"))
    with pytest.raises(ParameterError, match="accept_determined='yes'"):
        atoll.PCA(2, accept_determined="yes").fit(HALVES)


@pytest.mark.parametrize("narrow", [1.0, 0.5])
def test_one_wide_column_does_not_make_up_for_narrow_ones(narrow: float) -> None:
    """Bits add up: ranges of 1 and 16 are worth two of 4. No column has less than one."""
    bounds = ((0.0, narrow), (0.0, 16.0))
    declared = ranges.declared(bounds, ["yes", "dose"])
    assert declared is not None
    assert sfpca_digits._mean_range(declared) == pytest.approx(4.0)
    assert sfpca_digits._declared_range(SFPCAParameters(n_components=1, bounds=bounds)) == pytest.approx(4.0)


def test_nothing_is_sent_of_the_data_before_a_study_is_refused() -> None:
    example = sfpca(bounds=64.0)
    with pytest.raises(PrivacyError, match="say all second moments") as refused:
        run_study(without(example, "accept_determined"), example.own)
    assert "accept_determined=True" in str(refused.value.hint)


# ---- what is released ----


@pytest.mark.parametrize("digits", [None, 16])
def test_every_output_has_the_digits_of_the_study_and_no_more(digits: int | None) -> None:
    bits = digits or 26
    mine = atoll.PCA(3, protocol="sfpca", bounds=2048.0, digits=digits).fit(HALVES)
    full = atoll.PCA(3, protocol="sfpca", bounds=2048.0, digits="full").fit(HALVES)
    off = np.abs(mine.components_ - full.components_)
    assert 2.0 ** -(bits + 3) < off.mean() < 2.0**-bits
    assert off.max() <= 2.0**-bits
    # Sums are divided by the next power of two above n, which is less than two times as much.
    # Three uniform numbers are all below 2^-8 of their range once in a million runs.
    off = np.abs(mine.offset_ - full.offset_)
    assert 2048 * 2.0 ** -(bits + 8) < off.max() <= 2048 * 2.0**-bits * 256 / 178
    # Variances are opened with a double's digits of the total, not of the smallest of them.
    atol = 2.0**-48 * full.total_variance_
    np.testing.assert_allclose(mine.explained_variance_, full.explained_variance_, rtol=0, atol=atol)
    for name, rows in HALVES.items():  # whoever has both gets nothing from one that the other does not say
        np.testing.assert_allclose(mine.scores_[name], mine.transform(rows), atol=1e-9)


def test_kept_components_are_opened_and_used_with_the_same_noise() -> None:
    kept = atoll.PCA(3, protocol="sfpca", bounds=2048.0, release="encrypted").fit(HALVES).encrypted_
    first, again = kept.open(), kept.open()
    np.testing.assert_array_equal(first["components"], again["components"])
    np.testing.assert_array_equal(first["offset"], again["offset"])
    exact = np.linalg.svd(WINE - WINE.mean(axis=0), full_matrices=False)[2][:3]
    off = np.abs(np.abs(first["components"]) - np.abs(exact))
    assert 2.0**-29 < off.mean() < 2.0**-26
    # Rows that solve for the components find those with the noise: it does not average out.
    scores = kept.project({"north": HALVES["north"]})["north"]
    rows = np.hstack([HALVES["north"] / 2048, np.ones((90, 1))])
    solved = np.linalg.lstsq(rows, scores / 2048, rcond=None)[0][:13].T
    assert (
        np.abs(solved - first["components"]).max()
        < np.abs(solved - np.sign(solved) * np.abs(exact)).max() / 3
    )


# ---- what the review says ----


def test_the_review_says_where_the_line_is_and_where_the_study_is() -> None:
    study = without(sfpca(bounds=((0.0, 3.0),)), "accept_determined", n_components=2)
    said = review_study(study, 12, guess=Guess((910, 910, 910))).determined
    assert "11 components or more say the whole joint covariance" in said[0]
    at = line(Table(12, 2730, 3, own_rows=910), Given(26))
    assert f"{at} within a range of 3" in said[0]
    assert said[1] == (
        "the study has 2 components: that is enough if all columns hold whole numbers within a range of 3; "
        "then a run is refused"
    )
    fewer = review_study(
        without(example_of(study), digits=16, n_components=1), 12, guess=Guess((910, 910, 910))
    )
    assert fewer.determined[1] == "the study has 1 component: fewer than that"
    accepted = review_study(without(example_of(study), accept_determined=True), 12).determined
    assert accepted[1].endswith("which the study accepts")


def example_of(study: Any) -> Any:
    return sfpca()._replace(study=study)


def test_the_review_counts_for_those_who_are_not_pppcas_server() -> None:
    study = without(pppca(), "accept_determined", "label")
    said = review_study(study, 20, guess=Guess((500, 500, 500))).determined
    for within in (1, 9, 255, 65536):
        at = line(Table(20, 1500, within), Given(mean=True, scales=True))
        assert f"{at} within a range of {within:,}" in said[0]
    assert PPPCA.determines(structs.replace(study, release={}), Guess) == ()


def test_components_that_stay_encrypted_count_as_given() -> None:
    """Their holders may open them later, and nobody looks at the digits then."""
    kept = sfpca_encrypted().study
    stated = {**kept.parameters, "n_components": 3, "columns": ("age", "dose", "weight", "stay")}
    assert {address.role for address in sfpca_digits.takers(kept)} == {"provider", "coordinator"}
    resolve(structs.replace(kept, parameters=stated))
    del stated["accept_determined"]
    with pytest.raises(StudyError, match="say the whole joint covariance"):
        resolve(structs.replace(kept, parameters=stated))
