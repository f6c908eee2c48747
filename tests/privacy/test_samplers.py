"""Discrete samplers: chi-square against exact probabilities, reproducible, exact whatever the margin."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from atoll.errors import ParameterError
from atoll.privacy import samplers
from atoll.privacy.samplers import discrete_gaussian, discrete_laplace, polya_share
from atoll.randomness import derive

SEED = bytes(range(32))
DRAWS = 100_000
# One false alarm in a hundred thousand runs; the seeds are fixed, so a failure is a change of code.
SMALLEST_P = 1e-5


def chi_square_p(draws, log_weight, reach):
    """p-value of ``draws`` against probabilities proportional to exp(log_weight(k)), tails pooled."""
    support = np.arange(-reach, reach + 1)
    weights = np.exp([log_weight(int(k)) for k in support])
    expected = weights / weights.sum() * draws.size
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=support.size)
    big = expected >= 10
    observed_bins = np.append(observed[big], observed[~big].sum())
    expected_bins = np.append(expected[big], expected[~big].sum())
    if expected_bins[-1] < 10:
        observed_bins[-2] += observed_bins[-1]
        expected_bins[-2] += expected_bins[-1]
        observed_bins, expected_bins = observed_bins[:-1], expected_bins[:-1]
    return stats.chisquare(observed_bins, expected_bins).pvalue


@pytest.mark.parametrize("sigma", [1.0, 1.7, 4.0, 16.0, 37.25])
def test_discrete_gaussian_has_its_distribution(sigma):
    draws = discrete_gaussian(SEED, sigma, DRAWS)
    assert chi_square_p(draws, lambda k: -k * k / (2 * sigma * sigma), int(12 * sigma)) > SMALLEST_P


@pytest.mark.parametrize("scale", [1, 2, 7, 40])
def test_discrete_laplace_has_its_distribution(scale):
    draws = discrete_laplace(SEED, scale, DRAWS)
    assert chi_square_p(draws, lambda k: -abs(k) / scale, 40 * scale) > SMALLEST_P


@pytest.mark.parametrize(("scale", "holders"), [(1, 2), (3, 3), (12, 5), (40, 9)])
def test_polya_shares_add_up_to_a_discrete_laplace(scale, holders):
    draws = sum(polya_share(SEED, scale, holders, DRAWS, owner) for owner in range(holders))
    assert chi_square_p(draws, lambda k: -abs(k) / scale, 40 * scale) > SMALLEST_P


@pytest.mark.parametrize(("scale", "holders"), [(5, 4), (30, 10)])
def test_one_polya_share_is_a_difference_of_negative_binomials(scale, holders):
    up, down = (
        samplers._negative_binomial(samplers.Stream(SEED, (side,)), scale, holders, DRAWS) for side in "+-"
    )
    shape = stats.nbinom(1 / holders, 1 - math.exp(-1 / scale))
    for side in (up, down):
        assert chi_square_p(side, lambda k: shape.logpmf(k) if k >= 0 else -math.inf, 60 * scale) > SMALLEST_P


def test_the_chi_square_test_can_fail():
    draws = discrete_gaussian(SEED, 4.0, DRAWS)
    assert chi_square_p(draws, lambda k: -k * k / (2 * 4.1**2), 48) < SMALLEST_P
    rounded = np.rint(np.random.default_rng(1).laplace(scale=2.0, size=DRAWS)).astype(int)
    assert chi_square_p(rounded, lambda k: -abs(k) / 2, 80) < SMALLEST_P


@pytest.mark.parametrize("sigma", [1.0e3, 2.0**45 + 0.3])
def test_wide_gaussians_look_gaussian(sigma):
    draws = discrete_gaussian(SEED, sigma, DRAWS) / sigma
    bins = np.linspace(-3.5, 3.5, 57)
    counts = np.histogram(draws, np.concatenate([[-np.inf], bins, [np.inf]]))[0]
    expected = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], bins, [np.inf]]))) * DRAWS
    assert stats.chisquare(counts, expected).pvalue > SMALLEST_P


@pytest.mark.parametrize(
    "draw",
    [
        lambda margin: discrete_gaussian(SEED, 37.25, 400, margin=margin),
        lambda margin: discrete_gaussian(SEED, 2.0**50 + 0.5, 200, margin=margin),
        lambda margin: discrete_laplace(SEED, 9, 400, margin=margin),
        lambda margin: polya_share(SEED, 9, 3, 400, margin=margin),
        lambda margin: polya_share(SEED, 2**44, 3, 100, margin=margin),
    ],
    ids=["gaussian", "wide gaussian", "laplace", "polya", "wide polya"],
)
def test_deciding_every_comparison_in_decimals_changes_no_draw(draw):
    assert np.array_equal(draw(samplers.MARGIN), draw(1.0))


def test_a_uniform_number_gets_further_bits_until_the_comparison_is_decided():
    stream = samplers.Stream(SEED, ("test",))
    stream.words(1)
    further = stream.further_bits(stream.requests, 0, 8)
    # A threshold within the first word's cell: only the second word decides.
    for offset, below in ((1, True), (-1, False)):
        threshold = Fraction((5 << 64) + further + offset, 1 << 128)
        assert samplers._uniform_is_below(stream, 5, 0, partial(_as_decimal, threshold)) is below


def test_every_draw_of_every_request_has_further_bits_of_its_own():
    stream = samplers.Stream(SEED, ("test",))
    assert len({stream.further_bits(request, index, 8) for request in (1, 2) for index in (0, 1)}) == 4


def _as_decimal(value, digits):
    with localcontext() as context:
        context.prec = digits
        return Decimal(value.numerator) / Decimal(value.denominator)


def test_draws_are_a_function_of_seed_and_domain():
    one = discrete_gaussian(SEED, 100.0, 50, "a")
    assert np.array_equal(one, discrete_gaussian(SEED, 100.0, 50, "a"))
    assert not np.array_equal(one, discrete_gaussian(SEED, 100.0, 50, "b"))
    assert not np.array_equal(one, discrete_gaussian(derive(SEED, "other"), 100.0, 50, "a"))
    assert not np.array_equal(polya_share(SEED, 9, 2, 50, 0), polya_share(SEED, 9, 2, 50, 1))


@pytest.mark.parametrize("width", [0.0, 0.5, 2.0**57, math.nan, math.inf])
def test_widths_that_cannot_be_drawn_are_refused(width):
    with pytest.raises(ParameterError, match="grid units"):
        discrete_gaussian(SEED, width, 1)


def test_a_stream_does_not_show_its_seed():
    stream = samplers.Stream(SEED, ("x",))
    assert repr(stream) == "Stream(0 requests)"


def test_opendp_agrees_and_its_narrow_integers_saturate():
    """Why opendp's sampler is a check here and not the source: 32-bit results clamp without a word."""
    dp.enable_features("contrib")
    sigma = 6.0
    theirs = _opendp_gaussian(sigma, 20_000, "i64")
    assert chi_square_p(theirs, lambda k: -k * k / (2 * sigma * sigma), 72) > SMALLEST_P
    narrow = _opendp_gaussian(1e12, 200, "i32")
    assert np.isin(narrow, [-(2**31), 2**31 - 1]).mean() > 0.9
    assert np.abs(discrete_gaussian(SEED, 1e12, 200)).max() > 1e11


def _opendp_gaussian(sigma, count, kind):
    space = dp.vector_domain(dp.atom_domain(T=kind)), dp.l2_distance(T=float)
    return np.array(dp.m.make_gaussian(*space, scale=sigma)([0] * count))


@pytest.mark.parametrize("holders", [0, -1])
def test_a_noise_share_has_a_holder(holders):
    polya_share(bytes(32), 3, 1, 1)
    with pytest.raises(ParameterError, match="at least one holder"):
        polya_share(bytes(32), 3, holders, 1)
