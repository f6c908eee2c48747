"""Attacks on the published protocol's masks and noise, and the same attacks on ours."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.mechanisms import Crowd
from atoll.privacy.paper_forms import centred_scatter, gaussian_matrices
from atoll.randomness import derive, expand

SEED = bytes(range(3, 35))


def off_diagonal(matrix):
    return matrix[~np.eye(len(matrix), dtype=bool)]


def guess_from_noise(components, known_noise):
    """The attack: U diagonalises S + G, so off the diagonal U S U^T is what -U G U^T is."""
    return off_diagonal(-components @ known_noise @ components.T)


def relative_error(guess, truth):
    return np.linalg.norm(guess - truth) / np.linalg.norm(truth)


@pytest.fixture(scope="module")
def rows():
    table = load_digits().data[:, 2:22]
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)


@pytest.mark.parametrize("released", [20, 5])
def test_a_proxy_that_made_the_noise_removes_it(rows, released):
    scatter = centred_scatter(rows)
    noise = gaussian_matrices(SEED, 20, 1.0, 1e-5)[0]
    components = np.linalg.eigh(scatter + noise)[1].T[::-1][:released]
    truth = off_diagonal(components @ scatter @ components.T)
    assert np.linalg.norm(truth) > 1.0  # there is something to hide
    assert relative_error(guess_from_noise(components, noise), truth) < 1e-9


def distributed_run(rows, owners=10):
    """Second moments around a fixed centre with distributed noise; returns shares as the owners hold them."""
    plan = dp.Plan(20, 1.0, 1.0, 1e-5, crowd=Crowd(owners, 1))
    centre = dp.Centre(rows.mean(axis=0), float(len(rows)), 1.0)
    exact = dp.moments_contribution(plan, rows, centre)
    shares = [plan.moments.draw_share(derive(SEED, owner)) for owner in range(owners)]
    return plan, exact, shares


@pytest.mark.parametrize("known", [1, 3, 6, 9, 10])
def test_whoever_knows_some_shares_of_distributed_noise_removes_these_and_no_more(rows, known):
    """The same attack with the shares of ``known`` owners of ten: the rest of the noise stays."""
    _, exact, shares = distributed_run(rows)
    scatter = grid.unpack_triangle(exact, 20)
    components = np.linalg.eigh(scatter + grid.unpack_triangle(sum(shares), 20))[1].T[::-1]
    truth = off_diagonal(components @ scatter @ components.T)
    guess = guess_from_noise(components, grid.unpack_triangle(sum(shares[:known]), 20))
    assert relative_error(guess, truth) == pytest.approx(math.sqrt((10 - known) / 10), rel=0.2, abs=1e-9)


def test_what_a_colluder_cannot_subtract_is_as_wide_as_stated(rows):
    plan, _, shares = distributed_run(rows)
    rest = sum(shares[1:])
    spread = rest / np.concatenate([np.full(part.size, part.width) for part in plan.moments.noise.parts])
    assert spread.std() == pytest.approx(plan.moments.noise.sigma, rel=0.15)


def big_integer(n_bytes, *domain):
    return int.from_bytes(expand(SEED, n_bytes, *domain), "big")


def test_a_mask_that_is_a_multiple_of_n_hides_nothing_modulo_n():
    """As printed, b is multiplied by N so that the division comes out even: v' mod N = v mod N."""
    count = 1797
    sums = [int(value) for value in load_digits().data.sum(axis=0)]
    masked = [value + count * big_integer(16, "multiple", index) for index, value in enumerate(sums)]
    assert [value % count for value in masked] == [value % count for value in sums]
    free = [value + big_integer(16, "free", index) for index, value in enumerate(sums)]
    assert np.mean([one % count == two % count for one, two in zip(free, sums, strict=True)]) < 0.05


def test_a_free_mask_still_gives_the_scatter():
    """N(R+G) + v b^T + b v^T + b b^T - v' v'^T = N(R+G) - v v^T, in integers."""
    rng = np.random.default_rng(2)
    table = rng.integers(-1000, 1000, (50, 3)).astype(object)
    noise = rng.integers(-50, 50, (3, 3)).astype(object)
    noise = noise + noise.T
    second, total, count = table.T @ table, table.sum(axis=0), 50
    mask = np.array([big_integer(12, "b", index) for index in range(3)], dtype=object)
    sent = count * (second + noise) + np.outer(total, mask) + np.outer(mask, total) + np.outer(mask, mask)
    opened = sent - np.outer(total + mask, total + mask)
    assert (opened == count * (second + noise) - np.outer(total, total)).all()
