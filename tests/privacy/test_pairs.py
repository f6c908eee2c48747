"""Unit differences of row pairs: the sensitivities of docs/explanation/pairs.md, by brute force."""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from atoll.errors import DataError, ParameterError, RangeOverflow
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid, pairs, sensitivity
from atoll.privacy.accountant import Spent
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import Crowd, GaussianNoise, LaplaceNoise
from atoll.randomness import derive

SEED = bytes(range(3, 35))
RNG = np.random.default_rng(5)
ONE = grid.MOMENT_UNITS
# Tables in which rows are huge, tiny, equal, zero, opposite, and nearly too long for the grid.
TABLES = {
    "random": RNG.standard_normal((6, 3)),
    "huge": RNG.standard_normal((6, 3)) * 1e300,
    "beyond a double": np.array([[1e308, 0, 0], [-1e308, 0, 0], [0, 1e308, 0], [0, -1e308, 0]] * 2)[:6],
    "tiny": RNG.standard_normal((6, 3)) * 1e-300,
    "equal": np.ones((6, 3)),
    "zero": np.zeros((6, 3)),
    "axes": np.vstack([np.eye(3), -np.eye(3)]),
    "one far away": np.vstack([np.zeros((5, 3)), [[7.0, 0, 0]]]),
}


def plan_of(neighbours="add-remove", *, padded=False, delta=1e-5, epsilon=1.0, features=3):
    return dp.Plan(features, 1.0, epsilon, delta, neighbours, centre="pairs", padded=padded)


def moved(plan, one, its_places, two, other_places):
    """How far apart two contributions lie, in the norm and the units of the stage's noise."""
    apart = pairs.contribution_of(plan, one, np.array(its_places, dtype=np.int64)) - pairs.contribution_of(
        plan, two, np.array(other_places, dtype=np.int64)
    )
    widths, gaussian = widths_of(plan)
    assert (apart[widths == 0] == 0).all()
    scaled = apart[widths > 0].astype(float) / widths[widths > 0]
    return float(np.linalg.norm(scaled) if gaussian else np.abs(scaled).sum())


@lru_cache
def widths_of(plan):
    noise = plan.moments.noise
    widths = np.concatenate([np.full(part.size, part.width) for part in noise.parts])
    return widths, isinstance(noise, GaussianNoise)


@lru_cache
def allowed(plan):
    """The sensitivity that the noise was made for."""
    noise, cost = plan.moments.noise, plan.moments.cost
    if isinstance(noise, LaplaceNoise):
        return noise.scale * cost.epsilon
    return noise.sigma * cost.mu / 1.001


def coupled(places):
    """The places of all rows but the last, as the proof couples them with those of all rows."""
    *others, own = places
    count = len(places)
    if count % 2:  # the row in the place without a neighbour takes the last row's place
        return [own if place == count - 1 else place for place in others]
    # The last row's pair changes places with the last pair, so that its partner is the one left over.
    partner, last = own ^ 1, {count - 2, count - 1}
    new = {partner: count - 2, own: count - 1}
    if own not in last:
        new |= {count - 2: min(own, partner), count - 1: max(own, partner)}
    return [new.get(place, place) for place in others]


# --- sensitivities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_row_replaced_changes_one_pair(table, delta):
    plan = plan_of("replace", delta=delta)
    for places in itertools.permutations(range(5)):
        for row in (table[5], -table[0], np.zeros(3), RNG.standard_normal(3)):
            other = np.vstack([row, table[1:5]])
            assert moved(plan, table[:5], places, other, places) <= allowed(plan) * (1 + 1e-12)


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("capacity", [4, 5, 6])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_row_more_among_padded_places_fills_one(table, capacity, delta):
    plan = plan_of(padded=True, delta=delta)
    for rows in range(1, 5):
        for places in itertools.permutations(range(capacity), rows):
            longest = moved(plan, table[:rows], places, table[: rows - 1], places[:-1])
            assert longest <= allowed(plan) * (1 + 1e-12)


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_row_more_without_padding_exchanges_one_pair(table, rows, delta):
    plan = plan_of(delta=delta)
    for places in itertools.permutations(range(rows)):
        longest = moved(plan, table[:rows], places, table[: rows - 1], coupled(places))
        assert longest <= allowed(plan) * (1 + 1e-12)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6])
def test_the_coupled_places_are_uniform(rows):
    """What the proof needs: every arrangement of the smaller table is met equally often."""
    met = [tuple(coupled(places)) for places in itertools.permutations(range(rows))]
    assert set(met) == set(itertools.permutations(range(rows - 1)))
    assert {met.count(one) for one in set(met)} == {rows}


def test_the_sensitivities_are_those_written_down_and_attained():
    z, x, y = np.zeros(3), np.eye(3)[0], np.eye(3)[1]
    replace, padded, bare = plan_of("replace"), plan_of(padded=True), plan_of()
    assert allowed(replace) == pytest.approx(math.sqrt(2) * ONE, rel=1e-12)
    assert allowed(padded) == pytest.approx(math.sqrt(1.01) * ONE, rel=1e-12)
    assert allowed(bare) == pytest.approx(math.sqrt(2.01) * ONE, rel=1e-12)
    assert moved(replace, [z, x], (0, 1), [z, y], (0, 1)) == pytest.approx(allowed(replace), rel=1e-12)
    assert moved(padded, [z, x], (0, 1), [z], (0,)) == pytest.approx(allowed(padded), rel=1e-12)
    assert moved(bare, [z, y, x], (0, 2, 1), [z, y], (0, 1)) == pytest.approx(allowed(bare), rel=1e-12)
    # Pure epsilon: a pair weighs (d+1)/2 in the 1-norm, and a row a tenth of a unit.
    ones = np.ones(3)
    assert allowed(plan_of(padded=True, delta=None)) == pytest.approx(2.1 * ONE, rel=1e-12)
    assert allowed(plan_of(delta=None)) == pytest.approx(4.1 * ONE, rel=1e-12)
    pure = plan_of(padded=True, delta=None)
    assert moved(pure, [z, ones], (0, 1), [z], (0,)) == pytest.approx(allowed(pure), rel=1e-5)
    assert sensitivity.pair_moments_frobenius(1.0, padded=True) == 1.0


def test_pairs_by_the_order_of_the_table_would_not_do():
    """Why places are drawn: a row removed at the head of a table shifts every pair behind it."""
    stairs = np.cumsum([np.eye(3)[step % 2] for step in range(41)], axis=0)
    shifted = moved(plan_of(), stairs, range(41), stairs[1:], range(40))
    assert shifted == pytest.approx(20 * math.sqrt(2) * ONE, rel=1e-3)  # the noise is for sqrt(2)


# --- places ----------------------------------------------------------------------------------------------


def test_places_are_distinct_and_a_function_of_the_seed():
    places = pairs.draw_places(SEED, 300, 400)
    assert len(set(places.tolist())) == 300
    assert places.min() >= 0
    assert places.max() < 400
    assert np.array_equal(places, pairs.draw_places(SEED, 300, 400))
    assert not np.array_equal(places, pairs.draw_places(derive(SEED, 1), 300, 400))


def test_places_are_uniform():
    drawn = [tuple(pairs.draw_places(derive(SEED, run), 3, 4).tolist()) for run in range(6000)]
    counts = [drawn.count(one) for one in itertools.permutations(range(4), 3)]
    assert sum(counts) == 6000
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_table_beyond_its_capacity_is_refused_without_its_numbers():
    with pytest.raises(DataError, match="ward has more rows than the capacity that was declared") as refused:
        pairs.check_capacity(41, 40, "ward")
    assert "41" not in str(refused.value)
    assert "40" not in str(refused.value)
    with pytest.raises(RangeOverflow, match="ward declares a capacity for which the grid is too small"):
        pairs.check_capacity(3, 1 << 22, "ward")
    pairs.check_capacity(40, 40)


# --- contributions ---------------------------------------------------------------------------------------


def test_a_pair_counts_by_the_direction_of_its_difference():
    plan = plan_of("replace")
    table = np.array([[5.0, 5, 5], [2, 9, 5], [1, 1, 1], [1, 1, 1], [3, 3, 3]])
    found = pairs.contribution_of(plan, table, np.array([0, 1, 2, 3, 4]))
    unit = np.trunc(np.array([0.6, -0.8, 0]) * grid.ROW_UNITS)
    # The equal rows, and the fifth, which has no partner, count as rows and not as pairs.
    assert grid.unpack_triangle(found[:-1], 3) == pytest.approx(np.outer(unit, unit))
    assert found[-1] == 5 * grid.ROW_UNITS


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_difference_is_too_long_or_not_a_number(table):
    units = pairs.unit_differences(table, np.arange(6))
    assert units.shape == (3, 3)
    assert ((units.astype(object) ** 2).sum(axis=1) <= ONE).all()
    assert np.array_equal(units, -pairs.unit_differences(table, np.array([1, 0, 3, 2, 5, 4])))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_are_fine(rows):
    plan = plan_of(padded=True)
    found = pairs.pair_contribution(plan, np.eye(3)[:rows], 2, SEED)
    assert found[-1] == rows * grid.ROW_UNITS
    assert found[:-1].any() == (rows == 2)


def test_the_capacity_counts_where_the_plan_is_padded_only():
    table = RNG.standard_normal((60, 3))
    full = pairs.pair_contribution(plan_of(), table, 600, SEED)
    assert np.trace(grid.unpack_triangle(full[:-1], 3)) == pytest.approx(30 * ONE, rel=1e-5)
    sparse = pairs.pair_contribution(plan_of(padded=True), table, 600, SEED)
    assert np.trace(grid.unpack_triangle(sparse[:-1], 3)) < 10 * ONE
    assert full[-1] == sparse[-1] == 60 * grid.ROW_UNITS


# --- the whole release -----------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("form", [("replace", False), ("add-remove", False), ("add-remove", True)])
def test_one_stage_spends_the_whole_budget(form, delta):
    plan = dp.Plan(7, 1.0, 0.8, delta, form[0], crowd=Crowd(5, 1), centre="pairs", padded=form[1])
    assert [stage.name for stage in plan.stages] == ["pair moments"]
    assert Spent.of(stage.cost for stage in plan.stages).epsilon(delta) == pytest.approx(0.8)
    assert plan.moments.noise.size == 7 * 8 // 2 + 1
    assert isinstance(plan.moments.noise, LaplaceNoise if delta is None else GaussianNoise)


def test_its_noise_is_not_that_of_another_stage():
    """One seed, two plans: whoever runs both must not be able to subtract one's noise from the other's."""
    ours, theirs = plan_of().moments, dp.Plan(3, 1.0, 1.0, 1e-5).moments
    assert ours.name != theirs.name
    scaled = ours.draw_share(SEED)[:6] / ours.noise.sigma - theirs.draw_share(SEED) / theirs.noise.sigma
    assert np.abs(scaled).min() > 1e-3


def test_replace_opens_the_number_of_rows_and_add_remove_does_not():
    table = RNG.standard_normal((1001, 3))
    exact = rehearse(plan_of("replace"), [table], SEED).moments
    noisy = rehearse(plan_of(), [table], SEED).moments
    assert exact.samples == 1001.0
    assert noisy.samples != 1001.0
    assert noisy.samples == pytest.approx(1001.0, abs=4 * 10 * math.sqrt(2.01) * 3.73)
    assert noisy.count == pytest.approx(500, abs=30)  # pairs, by the trace


@pytest.mark.parametrize("delta", [1e-5, None])
def test_without_noise_it_is_the_spatial_sign_covariance_of_differences(delta):
    spread, far = np.array([3.0, 1.0, 0.3, 0.1]), np.array([900.0, -50.0, 7.0, 0.0])
    table = RNG.standard_normal((4000, 4)) * spread + far
    plan = plan_of(delta=delta, epsilon=1e5, features=4)
    run = rehearse(plan, np.array_split(table, 4), SEED)
    assert run.centre is None
    assert run.moments.samples == pytest.approx(4000, abs=0.5)
    assert run.moments.count == pytest.approx(2000, abs=0.5)
    values = run.spectrum.eigenvalues
    assert values.sum() == pytest.approx(1.0, abs=1e-3)
    assert np.abs(run.spectrum.components) == pytest.approx(np.eye(4), abs=0.06)
    direct = (table - far)[:2000] - (table - far)[2000:]
    signs = direct / np.linalg.norm(direct, axis=1, keepdims=True)
    assert values == pytest.approx(np.linalg.eigvalsh(signs.T @ signs / 2000)[::-1], abs=0.03)


def test_a_mean_far_away_changes_nothing():
    """Where rows lie is nothing that pairs ask for."""
    table = np.rint(RNG.standard_normal((200, 3)) * 64)
    plan = plan_of(padded=True)
    near = rehearse(plan, [table], SEED, capacities=[250]).sums["pair moments"]
    far = rehearse(plan, [table + 2.0**30], SEED, capacities=[250]).sums["pair moments"]
    assert np.array_equal(near, far)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"centre": "median"}, "centre must be one of mean, pairs"),
        ({"assume_centered": True}, "assume_centered cannot be used with centre='pairs'"),
        ({"rows": "clip"}, "rows='clip' cannot be used with centre='pairs'"),
        ({"padded": True, "neighbours": "replace"}, "padded can only be used"),
        ({"padded": True, "centre": "mean"}, "padded can only be used"),
    ],
)
def test_plans_that_mean_nothing_are_refused(wrong, said):
    options = {"features": 3, "row_norm": 1.0, "epsilon": 1.0, "delta": 1e-5, "centre": "pairs"}
    with pytest.raises(ParameterError, match=said):
        dp.Plan(**(options | wrong))
