"""Noise shares: their width, their sum, and what they guarantee."""

import math

import numpy as np
import pytest

from atoll.errors import ParameterError
from atoll.privacy.mechanisms import (
    CURATOR,
    Crowd,
    GaussianNoise,
    LaplaceNoise,
    Part,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise_bytes,
    gaussian_cost,
    laplace_cost,
    modulus_bits,
    noise_from_bytes,
    symmetric_parts,
)
from atoll.randomness import derive

SEED = bytes(32)


def summed(noise, owners):
    return sum(noise.draw_share(derive(SEED, owner)) for owner in range(owners))


@pytest.mark.parametrize("owners", [3, 10, 30, 100])
def test_total_variance_is_n_over_n_minus_one_of_the_curator(owners):
    """Utility does not fall with the number of owners."""
    parts = (Part(8_000),)
    alone = calibrate_gaussian(0.3, 1000.0, parts).draw_share(SEED)
    crowd = calibrate_gaussian(0.3, 1000.0, parts, Crowd(owners, colluders=1))
    ratio = summed(crowd, owners).var() / alone.var()
    assert ratio == pytest.approx(owners / (owners - 1), rel=0.05)
    assert crowd.deviation_of_sum(0) ** 2 / crowd.sigma**2 == pytest.approx(owners / (owners - 1))


@pytest.mark.parametrize(("colluders", "dropouts"), [(1, 0), (2, 1), (0, 3), (4, 4)])
def test_honest_shares_alone_reach_the_stated_width(colluders, dropouts):
    noise = calibrate_gaussian(0.5, 500.0, (Part(20_000),), Crowd(10, colluders, dropouts))
    honest = summed(noise, 10 - colluders - dropouts)
    assert honest.std() == pytest.approx(noise.sigma, rel=0.03)
    assert gaussian_cost(noise, 500.0).mu == pytest.approx(0.5)


def test_honest_polya_shares_alone_are_the_stated_laplace():
    noise = calibrate_laplace(0.5, 500.0, (Part(40_000),), Crowd(7, 1, 1))
    assert laplace_cost(noise, 500.0).epsilon == 0.5
    honest = summed(noise, 5)
    assert np.abs(honest).mean() == pytest.approx(1000.0, rel=0.03)
    assert summed(noise, 7).std() == pytest.approx(noise.deviation_of_sum(0), rel=0.03)
    assert noise.deviation_of_sum(0) == pytest.approx(1000 * math.sqrt(2 * 7 / 5), rel=1e-3)


def test_symmetric_noise_is_isotropic_in_the_frobenius_norm():
    features = 120
    noise = calibrate_gaussian(1.0, 1e6, symmetric_parts(features))
    drawn = noise.draw_share(SEED)
    assert drawn.size == noise.size == features * (features + 1) // 2
    assert drawn[features:].std() == pytest.approx(noise.sigma / math.sqrt(2), rel=0.03)
    assert np.mean([noise.draw_share(derive(SEED, i))[:features].std() for i in range(20)]) == pytest.approx(
        noise.sigma, rel=0.05
    )
    assert noise.deviation_of_sum(1) == pytest.approx(noise.deviation_of_sum(0) / math.sqrt(2))


def test_sigma_is_a_thousandth_wider_than_the_closed_form():
    assert calibrate_gaussian(0.25, 2000.0, (Part(1),)).sigma == pytest.approx(8000 * 1.001)


def test_narrow_shares_are_refused():
    with pytest.raises(ParameterError, match="grid units wide"):
        GaussianNoise(100.0, (Part(3),), Crowd(101, 1))
    with pytest.raises(ParameterError, match="finer grid"):
        GaussianNoise(20.0, symmetric_parts(4))
    GaussianNoise(16.0, (Part(3), Part(1, 0.0)))


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_noise_too_wide_to_draw_is_refused_when_it_is_planned(kind):
    with pytest.raises(ParameterError, match="cannot be drawn"):
        kind(2.0**60, (Part(3),))


def test_all_noise_at_once_is_as_wide_as_the_sum_of_shares():
    noise = GaussianNoise(1000.0, (Part(20_000), Part(20_000, 0.5), Part(2, 0.0)), Crowd(4, 1))
    drawn = noise.draw_sum(SEED)
    for part, values in enumerate((drawn[:20_000], drawn[20_000:40_000])):
        assert values.std() == pytest.approx(noise.deviation_of_sum(part), rel=0.03)
    assert drawn[40_000:].tolist() == [0, 0]


def test_public_parts_get_no_noise():
    for noise in (GaussianNoise(50.0, (Part(4), Part(2, 0.0))), LaplaceNoise(50.0, (Part(4), Part(2, 0.0)))):
        drawn = noise.draw_share(SEED)
        assert (drawn[4:] == 0).all()
        assert drawn[:4].any()
        assert noise.deviation_of_sum(1) == 0.0


def test_parts_and_seeds_draw_apart():
    noise = GaussianNoise(1000.0, (Part(5), Part(5)))
    drawn = noise.draw_share(SEED)
    assert not np.array_equal(drawn[:5], drawn[5:])
    assert not np.array_equal(drawn, noise.draw_share(derive(SEED, 1)))


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_no_part_repeats_another(kind):
    """The same noise on two parts vanishes in their difference."""
    drawn = kind(1000.0, (Part(50), Part(50)), Crowd(3, 1)).draw_share(SEED)
    assert (drawn[:50] == drawn[50:]).mean() < 0.2


def test_a_scale_is_rounded_up():
    noise = LaplaceNoise(10.2, (Part(1), Part(1, 0.5), Part(1, 2.0)))
    assert [noise.part_scale(part) for part in range(3)] == [11, 6, 21]


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_shares_survive_their_bytes(kind):
    noise = kind(1000.0, (Part(7), Part(2, 3.0)), Crowd(3, 1))
    recorded = draw_noise_bytes(noise, SEED)
    assert recorded == draw_noise_bytes(noise, SEED)
    assert np.array_equal(noise_from_bytes(recorded), noise.draw_share(SEED))


@pytest.mark.parametrize("crowd", [(0, 0, 0), (2, 2, 0), (5, 2, 3), (3, -1, 0), (3, 0, -1)])
def test_crowds_without_honest_noise_are_refused(crowd):
    with pytest.raises(ParameterError):
        Crowd(*crowd)


def test_missing_shares_beyond_the_study_are_refused():
    crowd = Crowd(10, 1, 2)
    assert crowd.variance_factor(8) == pytest.approx(8 / 7)
    with pytest.raises(ParameterError, match="7 of 10"):
        crowd.variance_factor(7)
    assert CURATOR.variance_factor() == 1.0


def test_modulus_leaves_room_for_values_and_noise():
    noise = GaussianNoise(2.0**30, (Part(1),))
    assert 2 ** modulus_bits(2.0**40, noise) > 2 * (2.0**40 + 12 * 2.0**30)
    assert modulus_bits(0.0, noise) >= 35


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_the_stated_noise_is_that_of_the_owners_who_are_there(kind):
    """Of ten owners two may be missing: noise of eight is stated where eight came."""
    noise = kind(1000.0, (Part(3), Part(3, 0.5)), Crowd(10, 1, 2))
    whole = noise.deviation_of_sum(0)
    assert noise.deviation_of_sum(0, 10) == whole
    assert noise.deviation_of_sum(0, 8) == pytest.approx(whole * math.sqrt(0.8))
    assert noise.deviation_of_sum(1, 8) == pytest.approx(noise.deviation_of_sum(0, 8) / 2, rel=1e-6)
    if kind is GaussianNoise:
        assert noise.deviation_of_sum(0, 8) == pytest.approx(1000.0 * math.sqrt(8 / 7))
