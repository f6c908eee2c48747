"""How much of private components is noise: the stated angle against the angle, and words about the centre."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from atoll.privacy import dp_moments as dp
from atoll.privacy import noise_statement
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.noise_statement import NoiseStatement, fitted_spectrum, lies_along, rounded_up, state
from atoll.randomness import derive

SEED = b"n" * 32


def noise(rng: np.random.Generator, d: int) -> np.ndarray:
    """Of variance 1 on the diagonal and 1/2 off it."""
    half = rng.standard_normal((d, d)) / 2
    return np.asarray(half + half.T)


def largest_angle(found: np.ndarray, k: int) -> float:
    """Of the first k columns with the first k axes, by projectors rather than as the module does."""
    axes = np.diag(np.r_[np.ones(k), np.zeros(len(found) - k)])
    apart = np.linalg.norm(axes - found[:, :k] @ found[:, :k].T, 2)
    return float(np.degrees(np.arcsin(min(1.0, apart))))


def runs(spectrum: np.ndarray, k: int, count: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Angles, and what is stated of them."""
    rng, angles, stated = np.random.default_rng(4), [], []
    for _ in range(count):
        values, vectors = np.linalg.eigh(np.diag(spectrum) + noise(rng, len(spectrum)))
        angles.append(largest_angle(vectors[:, ::-1], k))
        stated.append(state(values[::-1] * 3.0, 3.0, k, "normalise").angle)
    return np.array(angles), np.array(stated)


SPIKES = np.r_[60.0, 30.0, 20.0, np.linspace(6, 1, 9)]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_stated_angle_holds_and_is_no_more_than_twice_the_angle(k: int) -> None:
    angles, stated = runs(SPIKES, k)
    assert np.mean(angles <= stated) >= 0.9
    assert np.median(stated) <= 2 * np.median(angles)
    assert np.median(angles) < 30


def test_components_of_nothing_but_noise_are_said_to_be_mostly_noise() -> None:
    angles, stated = runs(np.zeros(20), 2, 30)
    assert np.median(angles) > 75
    assert np.mean(angles <= stated) >= 0.9
    values = np.linalg.eigvalsh(noise(np.random.default_rng(1), 20))[::-1]
    said = state(values, 1.0, 2, "pairs")
    assert said.mostly_noise
    assert said.holding() == 0
    assert said.verdict() == "mostly noise"
    assert any(words.startswith("mostly noise: more than half") for words in said.words())


def test_gaps_that_noise_made_are_not_taken_for_gaps_of_the_rows() -> None:
    """Of noise alone: a first component that typically lies anywhere (84 degrees), and is said to."""
    rng = np.random.default_rng(4)
    values = [np.linalg.eigvalsh(noise(rng, 20))[::-1] for _ in range(6)]
    assert np.median([state(one, 1.0, 1, "normalise").typical[0] for one in values]) > 65


@pytest.mark.parametrize("k", [1, 2, 5])
def test_between_equal_eigenvalues_nothing_is_stated(k: int) -> None:
    """Where a bound just below 90 degrees held in 88% of runs: a tenth of a degree decides there."""
    angles, stated = runs(np.full(20, 30.0), k, 40)
    assert np.mean(angles <= stated) >= 0.95
    assert np.mean(stated == 90.0) >= 0.8


@pytest.mark.parametrize(
    ("angle", "shown"),
    [(0.0, 0.0), (0.0412, 0.042), (0.5, 0.5), (9.81, 9.9), (9.95, 10.0), (12.01, 13.0), (80.0, 80.0)],
)
def test_what_is_shown_is_what_is_stated(angle: float, shown: float) -> None:
    """Rounded up to two digits: rounded to the nearest, every other statement was less than computed."""
    assert rounded_up(angle) == pytest.approx(shown, abs=1e-12)
    assert rounded_up(80.1) == 90.0
    said = NoiseStatement((1,), np.array([shown]), np.array([angle / 2]), "clip")
    assert f"within {shown:g} degrees" in said.words()[0]
    assert f"within {shown:g}°" in said.verdict()


def test_an_unknown_angle_is_said_to_be_unknown() -> None:
    said = NoiseStatement((1, 2), np.array([12.0, 90.0]), np.array([5.0, 30.0]), "clip")
    assert said.words()[0].startswith("no angle can be stated: noise may have turned the 2 components")
    assert "no angle can be stated" in said.verdict()
    assert "90" not in " ".join(said.words())


def test_leading_components_are_judged_by_themselves() -> None:
    values = np.linalg.eigvalsh(np.diag(np.r_[90.0, np.zeros(15)]) + noise(np.random.default_rng(2), 16))
    said = state(values[::-1], 1.0, 3, "normalise")
    assert said.leading == (1, 2, 3)
    assert said.angles[0] < 10 < 60 < said.angles[2]
    assert said.mostly_noise
    assert said.holding() == 1
    assert any("PC1 alone is not" in words for words in said.words())


def test_without_noise_or_without_a_choice_there_is_no_angle() -> None:
    assert state(SPIKES, 0.0, 2, "clip").angle == 0.0
    everything = state(SPIKES, 1.0, 12, "clip")
    assert everything.angle == 0.0
    assert everything.leading == tuple(range(1, 13))
    many = state(np.linspace(90, 1, 30), 1.0, 20, "clip")
    assert many.leading == (*range(1, 17), 20)


def test_every_role_states_the_same() -> None:
    first = state(SPIKES, 1.0, 2, "normalise")
    noise_statement._simulated.cache_clear()
    np.testing.assert_array_equal(first.angles, state(SPIKES, 1.0, 2, "normalise").angles)


def test_the_fitted_spectrum_is_the_one_without_noise() -> None:
    rng = np.random.default_rng(3)
    made = np.mean([np.linalg.eigvalsh(np.diag(SPIKES) + noise(rng, 12))[::-1] for _ in range(300)], axis=0)
    assert made[0] - SPIKES[0] > 0.05  # noise inflates the leading ones
    fitted = fitted_spectrum(made, rng)
    np.testing.assert_allclose(fitted[:3], SPIKES[:3], atol=0.6)
    assert (np.diff(fitted) <= 0).all()
    assert (fitted_spectrum(made - 5.0, rng) >= 0).all()


# ---- the centre ----


def tight_rows(n: int, d: int) -> np.ndarray:
    """Rows that lie close together, far from the origin: a private mean of them is mostly noise."""
    rng = np.random.default_rng(5)
    return np.asarray(0.5 + 0.05 * rng.standard_normal((n, d)) * np.r_[3.0, 2.0, np.ones(d - 2)])


def of_run(rows: np.ndarray, number: int, epsilon: float = 1.0) -> NoiseStatement:
    d = rows.shape[1]
    run = rehearse(dp.Plan(d, math.sqrt(d), epsilon, 1e-5), [rows], derive(SEED, number))
    values, vectors = np.linalg.eigh(run.moments.matrix)
    return state(values[::-1], run.moments.sigma, 2, "normalise", run.centre, vectors[:, ::-1][:, :2].T)


def test_components_that_show_the_noisy_centre_are_said_to_be_mostly_noise() -> None:
    said = [of_run(tight_rows(300, 40), number) for number in range(10)]
    # Around the noisy centre all rows lie the same way: the angle is small, and tells nothing.
    assert np.median([one.angles[0] for one in said]) < 30
    assert np.mean([one.centre_shows and one.mostly_noise for one in said]) >= 0.8
    shown = next(one for one in said if one.centre_shows)
    assert "mostly noise: components show where the noisy centre lies" in " ".join(shown.words())


def test_a_good_centre_raises_no_alarm() -> None:
    said = [of_run(tight_rows(20_000, 10), number, epsilon=5.0) for number in range(6)]
    assert not any(one.mostly_noise for one in said)
    assert all(0 < one.centre < 0.1 for one in said)


def test_a_small_noise_of_the_centre_needs_more_than_one_chance_in_a_hundred() -> None:
    """Of a hundred good fits one lies along it: said each time, "mostly noise" would be a false alarm."""
    components, step = np.eye(8)[:2], np.r_[0.93, 0.0, np.sqrt(1 - 0.93**2), np.zeros(5)]
    spectrum = np.r_[4.0, 2.0, np.ones(6)] * 1000
    small = dp.Centre(np.zeros(8), 4000.0, 2.5, 0.005, step)
    assert lies_along(components, step)
    assert not state(spectrum, 1.0, 2, "normalise", small, components).mostly_noise
    assert state(spectrum, 1.0, 2, "normalise", replace(small, noise=0.1), components).mostly_noise
    along = np.r_[1.0, np.zeros(7)]
    assert state(spectrum, 1.0, 2, "normalise", replace(small, step=along), components).mostly_noise


def test_random_directions_rarely_lie_along_the_centres_noise() -> None:
    rng = np.random.default_rng(6)
    components = np.eye(12)[:3]
    alarms = [lies_along(components, rng.standard_normal(12)) for _ in range(1000)]
    assert 0 < np.mean(alarms) < 0.025
    assert lies_along(components, np.r_[1.0, np.zeros(11)])
    assert not lies_along(np.eye(12), rng.standard_normal(12))


def test_the_centres_noise_is_what_its_draws_are() -> None:
    rows, d = tight_rows(400, 6), 6
    plan = dp.Plan(d, math.sqrt(d), 2.0, 1e-5, neighbours="replace")
    centres = [rehearse(plan, [rows], derive(SEED, number)).centre for number in range(200)]
    points = np.array([centre.point for centre in centres if centre is not None])
    said = np.median([centre.noise for centre in centres if centre is not None])
    assert said == pytest.approx(float(points.std(axis=0).mean()), rel=0.2)


def test_the_share_of_a_centres_noise_counts_too() -> None:
    far = dp.Centre(np.zeros(12), 10.0, 1.0, noise=1.0, step=None)
    said = state(SPIKES, 1.0, 2, "clip", far)
    assert said.centre == pytest.approx(math.sqrt(12))
    assert said.centre_share == pytest.approx(12 / 13)
    assert said.mostly_noise
    assert not state(SPIKES, 1.0, 2, "clip", dp.Centre(np.zeros(12), 10.0, 1.0)).mostly_noise


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("normalise", "rows count with length one"),
        ("pairs", "differences of rows count with length one"),
        ("clip", "rows are cut"),
    ],
)
def test_what_the_angle_leaves_out_is_said_apart(rows: str, words: str) -> None:
    assert words in state(SPIKES, 1.0, 2, rows).words()[-1]
