"""Composition, cross-checked, and the sentence that a person reads."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from atoll.errors import ParameterError
from atoll.privacy.accountant import Spent, gaussian_guess_accuracy, gdp_of_pure, guess_accuracy, in_words
from atoll.privacy.calibration import gdp_epsilon, gdp_mu
from atoll.privacy.mechanisms import GaussianCost, PureCost


def test_gaussian_releases_compose_as_their_squares():
    spent = Spent.of([GaussianCost(0.3), GaussianCost(0.4)])
    assert spent.mu == pytest.approx(0.5)
    assert spent.epsilon(1e-5) == pytest.approx(gdp_epsilon(0.5, 1e-5))
    assert spent + Spent(1.2) == Spent(math.hypot(0.5, 1.2))


def test_composition_agrees_with_privacy_loss_distributions():
    peer = PLDAccountant(value_discretization_interval=1e-3)
    for mu in (0.3, 0.4, 0.1):
        peer.compose(GaussianDpEvent(1 / mu))
    ours = Spent.of([GaussianCost(0.3), GaussianCost(0.4), GaussianCost(0.1)]).epsilon(1e-5)
    theirs = peer.get_epsilon(1e-5)
    assert theirs - 5e-3 <= ours <= theirs + 1e-9


@pytest.mark.parametrize("pure", [[0.05] * 20, [0.5, 0.5], [1.5]])
@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_a_mixture_is_an_upper_bound(mu, pure):
    """Never below what a numerical accountant finds for the same mechanisms."""
    peer = PLDAccountant(value_discretization_interval=1e-3)
    peer.compose(GaussianDpEvent(1 / mu))
    for epsilon in pure:
        peer.compose(LaplaceDpEvent(1 / epsilon))
    costs = [GaussianCost(mu), *(PureCost(epsilon) for epsilon in pure)]
    ours = Spent.of(costs).epsilon(1e-5)
    assert ours >= peer.get_epsilon(1e-5) - 5e-3
    whole = math.hypot(mu, *(gdp_of_pure(epsilon) for epsilon in pure))
    assert ours == pytest.approx(gdp_epsilon(whole, 1e-5))


@given(st.floats(0.0, 60.0), st.floats(1e-9, 1 - 1e-9))
def test_a_pure_release_is_at_most_as_private_as_the_gaussian_one_it_counts_as(epsilon, alpha):
    """Trade-off curves: the smallest type II error at type I error alpha. Gaussian never above pure."""
    gaussian = ndtr(ndtri(1 - alpha) - gdp_of_pure(epsilon))
    pure = max(0.0, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
    assert gaussian <= pure + 1e-9


def test_the_mu_of_a_pure_release_in_numbers():
    assert gdp_of_pure(0.0) == 0.0
    assert gdp_of_pure(1.0) == pytest.approx(1.2320, abs=1e-4)
    assert gaussian_guess_accuracy(gdp_of_pure(1.0)) == pytest.approx(guess_accuracy(1.0))
    assert gdp_of_pure(701.0) == pytest.approx(gdp_of_pure(700.0), rel=0.01)
    assert gdp_of_pure(701.0) > gdp_of_pure(700.0)


@pytest.mark.parametrize("wrong", [-1e-12, -1.0, math.nan, math.inf, -math.inf])
def test_nothing_costs_less_than_nothing(wrong):
    for make in (GaussianCost, PureCost, Spent, lambda x: Spent(0.0, (0.1, x))):
        with pytest.raises(ParameterError, match="a release cannot cost"):
            make(wrong)


@given(st.lists(st.floats(0, 3)), st.lists(st.floats(0, 3)), st.floats(0, 3), st.booleans())
def test_another_release_never_lowers_what_was_spent(mus, epsilons, more, pure):
    costs = [*map(GaussianCost, mus), *map(PureCost, epsilons)]
    one = [PureCost(more) if pure else GaussianCost(more)]
    for delta in (None, 1e-9, 1e-5, 0.1):
        before, after = Spent.of(costs).epsilon(delta), Spent.of([*costs, *one]).epsilon(delta)
        assert after >= before * (1 - 1e-12) >= 0.0


def test_pure_releases_add_up_and_gaussian_ones_are_never_pure():
    assert Spent.of([PureCost(0.3), PureCost(0.4)]).epsilon(None) == pytest.approx(0.7)
    assert Spent.of([PureCost(0.3), GaussianCost(0.1)]).epsilon(None) == math.inf
    assert Spent().epsilon(1e-5) == 0.0
    assert Spent().epsilon(None) == 0.0
    # Many small pure releases at a delta: less than adding up.
    assert Spent.of([PureCost(0.01)] * 1000).epsilon(1e-5) < 5


def test_two_rows_cost_twice_the_mu():
    assert Spent(0.5, (0.1,)).for_pairs() == Spent(1.0, (0.2,))


def test_guess_accuracy_closed_form():
    assert guess_accuracy(1.0) == pytest.approx(math.e / (1 + math.e))
    assert guess_accuracy(0.0, 0.0) == 0.5
    assert guess_accuracy(0.0, 0.1) == pytest.approx(0.55)
    assert guess_accuracy(1.0, 1e-2) == pytest.approx((math.e + 1e-2) / (1 + math.e))
    assert guess_accuracy(1e4) == 1.0


def test_no_attack_on_a_gaussian_release_beats_the_bounds():
    mu = gdp_mu(1.0, 1e-5)
    rng = np.random.default_rng(3)
    secret = rng.integers(0, 2, 400_000)
    seen = mu * secret + rng.standard_normal(secret.size)
    found = ((seen > mu / 2) == secret).mean()
    assert found == pytest.approx(gaussian_guess_accuracy(mu), abs=0.003)
    assert found < guess_accuracy(1.0, 1e-5)


def test_randomised_response_attains_the_bound():
    epsilon, delta = 1.0, 0.05
    honest = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    # With probability delta the secret is shown outright.
    assert delta + honest == pytest.approx(guess_accuracy(epsilon, delta))


def test_the_sentence():
    assert in_words(1.0, 1e-5, "replace") == (
        "an attacker who knows all other rows improves a 50:50 guess about one row to at most 73%"
    )
    assert in_words(1.0, None).endswith("about one row to at most 73% (whether it is in the data at all)")
    assert in_words(20.0, 1e-5).startswith("no useful bound")
