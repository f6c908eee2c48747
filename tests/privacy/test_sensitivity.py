"""Closed forms of how far one row moves a statistic: never exceeded, and attained."""

import math

import numpy as np
import pytest

from atoll.errors import ParameterError
from atoll.privacy import sensitivity as sens
from atoll.privacy.paper_forms import centred_scatter

RNG = np.random.default_rng(7)


def unit_rows(count, features):
    rows = RNG.standard_normal((count, features))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_replacing_one_row_moves_the_centred_scatter_by_four():
    for count in (2, 5, 50, 1000):
        rows = np.zeros((count, 4))
        rows[:, 0] = 1.0
        other = rows.copy()
        other[0, 0] = -1.0
        moved = np.linalg.norm(centred_scatter(rows) - centred_scatter(other))
        assert moved == pytest.approx(4 * (count - 1) / count)
        assert moved == pytest.approx(sens.centred_scatter_replace(count))


def test_no_pair_moves_the_centred_scatter_farther():
    for _ in range(300):
        count = int(RNG.integers(2, 8))
        rows = unit_rows(count, 3) * RNG.random((count, 1)) ** 0.2
        other = rows.copy()
        other[0] = unit_rows(1, 3)[0]
        moved = np.linalg.norm(centred_scatter(rows) - centred_scatter(other))
        assert moved <= sens.centred_scatter_replace(count) + 1e-12


def test_second_moments_move_by_one_or_by_the_root_of_two():
    one, two = np.eye(3)[0], np.eye(3)[1]
    assert np.linalg.norm(np.outer(one, one)) == sens.second_moments_frobenius(1, "add-remove")
    replaced = np.linalg.norm(np.outer(one, one) - np.outer(two, two))
    assert replaced == pytest.approx(sens.second_moments_frobenius(1, "replace"))
    assert sens.second_moments_frobenius(3, "replace") == pytest.approx(9 * math.sqrt(2))


@pytest.mark.parametrize("features", [1, 2, 3, 6])
def test_one_norms_are_attained_when_a_row_is_added(features):
    row = np.full(features, 1 / math.sqrt(features))
    triangle = np.abs(np.outer(row, row)[np.triu_indices(features)]).sum()
    assert triangle == pytest.approx(sens.second_moments_triangle_l1(1, features, "add-remove"))
    assert np.abs(row).sum() == pytest.approx(sens.row_sum_l1(1, features, "add-remove"))
    assert np.abs(row - -row).sum() == pytest.approx(sens.row_sum_l1(1, features, "replace"))
    for one, two in zip(unit_rows(200, features), unit_rows(200, features), strict=True):
        moved = np.abs((np.outer(one, one) - np.outer(two, two))[np.triu_indices(features)]).sum()
        assert moved <= sens.second_moments_triangle_l1(1, features, "replace")


@pytest.mark.parametrize("features", [1, 3, 8, 16])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_pure_epsilon_of_published_ppca(features, epsilon):
    """Noise for sensitivity p/n at epsilon/2; a row of ones really moves X^T X/n by p^2/n, or p(p+1)/2n."""
    count = 2000
    scale = 2 * features / (count * epsilon)
    moved = np.ones((features, features)) / count
    mean = features / count / scale
    full, triangle = moved.sum() / scale, moved[np.triu_indices(features)].sum() / scale
    assert mean == pytest.approx(epsilon / 2)
    assert mean + full == pytest.approx((features + 1) * epsilon / 2)
    assert mean + triangle == pytest.approx((features + 3) * epsilon / 4)


@pytest.mark.parametrize(("w", "u"), [(0.0, 0.0), (0.5, 1.0), (1.3, 0.2), (3.0, 1.0)])
@pytest.mark.parametrize("bound", [1.0, 0.7])
def test_joint_release_sensitivity(bound, w, u):
    added = math.sqrt(bound**4 + w**2 * bound**2 + u**2)
    assert sens.joint_release(bound, w, u, "add-remove") == pytest.approx(added)

    limit = sens.joint_release(bound, w, u, "replace")
    angles = np.linspace(0, math.pi, 2001)
    for shorter in (1.0, 0.9, 0.5, 0.0):
        one = np.array([bound, 0.0])
        two = bound * shorter * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        moved = [
            math.hypot(np.linalg.norm(np.outer(one, one) - np.outer(y, y)), w * np.linalg.norm(one - y))
            for y in two
        ]
        assert max(moved) <= limit + 1e-12
        if shorter == 1.0:
            assert max(moved) == pytest.approx(limit, rel=1e-5)


def test_a_row_stands_in_one_bin():
    assert sens.histogram_l2("add-remove") == sens.histogram_l1("add-remove") == 1
    assert sens.histogram_l2("replace") == pytest.approx(np.linalg.norm([1, -1]))
    assert sens.histogram_l1("replace") == 2


def test_unknown_neighbours_are_refused():
    with pytest.raises(ParameterError, match="add-remove"):
        sens.check_neighbours("bounded")
