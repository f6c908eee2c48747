"""Trees: the right one is found, second measurements make it exact, an owner believes no other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.support.synthesis_examples import synthesis

from atoll.errors import MessageError
from atoll.privacy.calibration import gdp_mu
from atoll.privacy.lab.audit import audit
from atoll.privacy.mechanisms import Crowd, GaussianNoise, Part
from atoll.protocols.synthesis import marginal, moments, trees
from atoll.protocols.synthesis.marginal import SELECTION_SHARE, TreePlan, joined
from atoll.protocols.synthesis.moments import Plan
from atoll.randomness import derive
from atoll.runtime.execute import run_study

SIZES = (2, 3, 4, 3)
SEED = bytes(range(32))


def chain(n: int = 20_000) -> np.ndarray:
    """Column 2 follows 0, 1 follows 2, 3 follows 1."""
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, 2 * first, rng.integers(0, 4, n))
    third = np.where(rng.random(n) < 0.6, second % 3, rng.integers(0, 3, n))
    fourth = np.where(rng.random(n) < 0.6, third, rng.integers(0, 3, n))
    return np.column_stack([first, third, second, fourth])


def shares(codes: np.ndarray, a: int, b: int) -> np.ndarray:
    cells = codes[:, a] * SIZES[b] + codes[:, b]
    return np.bincount(cells, minlength=SIZES[a] * SIZES[b]) / len(codes)


def measured(epsilon: float) -> tuple[moments.Moments, TreePlan, np.ndarray]:
    codes, plan = chain(), Plan(SIZES, epsilon, 1e-5, Crowd(3, 1), share=SELECTION_SHARE)
    noise = sum(plan.stage.draw_share(derive(SEED, owner)) for owner in range(3))
    first = moments.finish(plan, moments.contribution(plan, codes) + noise)
    second = marginal.tree_plan(plan, trees.selected(first))
    noise = sum(second.stage.draw_share(derive(SEED, owner)) for owner in range(3))
    return first, second, marginal.contribution(second, codes) + noise


def test_the_tree_of_the_dependence_is_found_and_its_tables_are_those_of_the_rows() -> None:
    first, plan, total = measured(5.0)
    assert {frozenset(edge) for edge in plan.edges} == {frozenset(e) for e in ((0, 2), (2, 1), (1, 3))}
    assert trees.is_tree(plan.edges, 4)
    found, codes = joined(first, plan, total, 3), chain()
    model = trees.fit(found, plan.edges)
    for (a, b), table in zip(plan.edges, trees.tables_of(model, SIZES), strict=True):
        counted = np.bincount(codes[:, a] * SIZES[b] + codes[:, b], minlength=SIZES[a] * SIZES[b]) / len(
            codes
        )
        assert table.ravel() == pytest.approx(counted, abs=0.004)
        assert found.second_noise[a, b] < 0.8 * first.second_noise[a, b]
    drawn = trees.sample(model, SIZES, [np.ones(k) for k in SIZES], 20_000, np.random.default_rng(0))
    for a, b in ((0, 3), (2, 3)):  # no edge: what the tree says of them
        cells = [
            np.bincount(t[:, a] * SIZES[b] + t[:, b], minlength=SIZES[a] * SIZES[b]) for t in (codes, drawn)
        ]
        assert np.abs(cells[0] - cells[1]).sum() / 40_000 < 0.02


def test_every_row_moves_the_second_release_by_its_sensitivity() -> None:
    plan = TreePlan((2, 3, 4), ((0, 1), (1, 2)), 1.0, 1e-5, Crowd(3, 1))
    noise = plan.stage.noise
    assert isinstance(noise, GaussianNoise)
    widths = np.repeat([part.width for part in noise.parts], [part.size for part in noise.parts])
    rows = np.array(list(itertools.product(range(2), range(3), range(4))))
    moved = [np.linalg.norm(marginal.contribution(plan, row[None]) / widths) for row in rows]
    assert np.array(moved) / noise.sigma * 1.001 == pytest.approx(plan.stage.cost.mu)  # type: ignore[union-attr]


@pytest.mark.parametrize("thinner", [1.0, 3.0])
def test_the_audit_acquits_both_releases_together_and_convicts_a_third_of_their_noise(thinner: float) -> None:
    """One row more moves both; each is seen along the direction in which it moves, in units of its noise, and
    both together along the direction in which the pair moves. One of three owners' shares is known."""
    epsilon, runs, sizes = 1.0, 20_000, (2, 3, 4)
    first = Plan(sizes, epsilon, 1e-5, Crowd(3, 1), share=SELECTION_SHARE)
    row, seen = np.array([[1, 2, 0]]), [np.zeros(runs), np.zeros(runs)]
    for place, (plan, made) in enumerate(
        (
            (first, moments.contribution(first, row)),
            (tables := marginal.tree_plan(first, ((0, 1), (1, 2))), marginal.contribution(tables, row)),
        )
    ):
        noise = plan.stage.noise
        assert isinstance(noise, GaussianNoise)
        widths = np.repeat([part.width for part in noise.parts], [part.size for part in noise.parts])
        reach = float(np.linalg.norm(made / widths)) / noise.sigma
        thin = GaussianNoise(noise.sigma / thinner, (Part(runs),), noise.crowd)
        for side in range(2):
            shares = sum(thin.draw_share(derive(SEED, place, side, owner)) for owner in range(2))
            seen[side] += reach * (shares / noise.sigma + (reach if side == 0 else 0.0))
    length = gdp_mu(epsilon, 1e-5)
    found = audit(seen[0], seen[1], length**2 + length / thinner, 1e-5)
    assert (found.epsilon_at_least > epsilon) == (thinner > 1.0)


@pytest.mark.parametrize(
    "edges", [(), ((0, 1),), ((0, 1), (2, 3)), ((0, 1), (1, 2), (2, 0)), ((0, 1), (0, 9), (1, 2))]
)
def test_what_is_no_tree_is_refused(edges: tuple[tuple[int, int], ...]) -> None:
    assert not trees.is_tree(edges, 4)


def test_an_owner_measures_no_pairs_that_are_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "selected", lambda _: ((0, 1), (0, 1), (0, 1)))
    example = synthesis("marginal-synthesis")
    with pytest.raises(MessageError, match="no tree"):
        run_study(example.study, example.own)


def test_a_condition_below_tells_the_columns_above() -> None:
    """Bayes' rule up the tree 0 - 1 - 2: rows of cell 1 of the last column say how likely the first's are."""
    tables = [np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([[0.45, 0.05], [0.05, 0.45]])]
    values = {"edges": [[0, 1], [1, 2]], "tables": np.concatenate([one.ravel() for one in tables])}
    weights = [np.ones(2), np.ones(2), np.array([0.0, 1.0])]
    drawn = trees.sample(values, (2, 2, 2), weights, 10_000, np.random.default_rng(0))
    assert (drawn[:, 2] == 1).all()
    assert drawn[:, 1].mean() == pytest.approx(0.9, abs=1e-3)
    assert drawn[:, 0].mean() == pytest.approx(0.9 * 0.8 + 0.1 * 0.2, abs=1e-3)


@pytest.mark.parametrize("size", [0.05, 0.5, 1.5])
def test_dependence_that_noise_alone_would_show_is_none(size: float) -> None:
    """Also far below what noise shows, where the formula of what stays grows again."""
    matrix, noise = np.array([[0.0, 1.0, 0.0, 0.0]]), 0.01
    below = matrix * noise * 2.0 * size  # the edge is at 1 + 1/2, in units of the noise of a row of four
    assert (trees._shrunk(below, noise) == 0.0).all()
    assert (trees._shrunk(below.T, noise) == 0.0).all()
    assert np.abs(trees._shrunk(matrix * noise * 2.0 * 4.0, noise)).max() == pytest.approx(
        2 * noise * math.sqrt((16 - 1.25) ** 2 - 1) / 4
    )
