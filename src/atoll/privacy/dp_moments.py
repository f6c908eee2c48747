"""Private mean, radius and second moments: pure steps around any secure sum.

Every stage has three parts. An owner forms its *contribution*, a vector of integers; it draws its
noise share (``Stage.draw_share``) and adds it; whoever receives the sum *finishes* the stage, from
public numbers alone. The stages:

1. ``first_mean``     rows cut at the public row norm; sum and number of rows.
2. ``second_mean``    the same around the first centre, cut at a radius that the first centre implies
                      (two steps as in CoinPress, Biswas et al. 2020; always two, because whether rows sit
                      far from the origin is itself a question about the data).
3. ``radius``         with ``rows="clip"`` only: a histogram of the distances from the centre.
4. ``moments``        rows around the centre, normalised (``rows="normalise"``: spatial signs) or cut at
                      the radius; sum of x x^T.

With ``centre="pairs"`` there is one stage only, ``moments`` of unit differences of row pairs: its steps
stand in ``privacy.pairs``.

Budgets are shares of mu^2 (Gaussian) or of epsilon (pure, when the study gives no delta).

Neighbours ``add-remove``: the number of rows is private and carries noise. ``replace``: it is public,
and its place in the vector has noise of width zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from atoll.errors import MessageError, ParameterError
from atoll.privacy import grid, sensitivity
from atoll.privacy.calibration import check_epsilon, gdp_mu
from atoll.privacy.mechanisms import (
    CURATOR,
    Cost,
    Crowd,
    GaussianCost,
    GaussianNoise,
    Noise,
    Part,
    PureCost,
    calibrate_gaussian,
    calibrate_laplace,
    symmetric_parts,
)
from atoll.privacy.sensitivity import Neighbours
from atoll.randomness import derive

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Sum = npt.ArrayLike  # what a secure sum returns: integers of any width
Rows = Literal["normalise", "clip"]
CentreChoice = Literal["mean", "pairs"]

_STAGE_DOMAIN = "atoll/privacy/stage/v1"

# Counts travel in these units, so that a noise share is many grid units wide.
COUNT_UNITS = grid.ROW_UNITS
# One row counts as this much of a row norm in the first mean: balances the noise on N against that on v.
COUNT_WEIGHT = 0.5

# One row counts as this much of a pair where pairs are released: a little, so that the pairs keep 99.5%.
PAIR_COUNT_WEIGHT = 0.1

FIRST_MEAN_SHARE = 0.10
SECOND_MEAN_SHARE = 0.10
RADIUS_SHARE = 0.05

# Distances from the centre: bins of ratio 2^(1/4), from 2^-10 to 2 row norms.
_BINS_PER_OCTAVE = 4
_OCTAVES_BELOW = 10
# The radius leaves about this part of the rows uncut. A wider one adds more noise than it takes away in
# distortion, on the public tables of benchmarks/dp_utility.py; the median is what breaks down last.
_UNCUT = 0.5
# Beyond these a difference of two rows, or a bin of their distances, would leave float64.
_SMALLEST_NORM, _LARGEST_NORM = 1e-150, 1e150  # their squares are doubles, too
# Below this part of the row norm the second step's radius does not go.
_SMALLEST_RADIUS = 0.05
# A noisy number of rows is not believed below this, nor below its own noise.
_SMALLEST_COUNT = 1.0


@dataclass(frozen=True)
class Stage:
    """One release: who adds what noise, and what it costs."""

    name: str
    noise: Noise
    cost: Cost

    def draw_share(self, seed: bytes) -> Integers:
        """One owner's noise for this stage; the same seed gives other stages other noise."""
        return self.noise.draw_share(derive(seed, _STAGE_DOMAIN, self.name))


@dataclass(frozen=True)
class Plan:
    """Everything public about the private moments of a study."""

    features: int
    row_norm: float
    epsilon: float
    delta: float | None
    neighbours: Neighbours = "add-remove"
    rows: Rows = "normalise"
    crowd: Crowd = CURATOR
    assume_centered: bool = False
    centre: CentreChoice = "mean"
    padded: bool = False
    """With ``centre="pairs"`` and ``add-remove``: every owner draws its pairs among as many places as it
    declared, of which some are empty. One row more or less then changes a pair by filling a place."""

    def __post_init__(self) -> None:
        if self.row_norm is None or not (_SMALLEST_NORM <= self.row_norm <= _LARGEST_NORM):
            raise ParameterError(
                f"a private analysis needs a public bound on the norm of a row, got {self.row_norm!r}",
                hint="set row_norm from what is known about the columns, never from the rows themselves",
                option="row_norm",
            )
        if self.features < 1:
            raise ParameterError(f"features must be at least 1, got {self.features}")
        if self.rows not in get_args(Rows):
            raise ParameterError(
                f"rows must be one of {', '.join(get_args(Rows))}, got {self.rows!r}", option="rows"
            )
        if self.centre not in get_args(CentreChoice):
            choices = ", ".join(get_args(CentreChoice))
            raise ParameterError(f"centre must be one of {choices}, got {self.centre!r}", option="centre")
        self._check_pairs()
        sensitivity.check_neighbours(self.neighbours)
        check_epsilon(self.epsilon)
        self._budget(1.0)  # refuses a wrong delta now rather than in the first stage

    def _check_pairs(self) -> None:
        if self.padded and (self.centre != "pairs" or self.neighbours != "add-remove"):
            raise ParameterError(
                "padded can only be used with centre='pairs' and neighbours='add-remove'",
                hint="leave it out: only there a capacity makes the noise narrower",
                option="padded",
            )
        if self.centre == "pairs" and self.assume_centered:
            raise ParameterError(
                "assume_centered cannot be used with centre='pairs', which needs no mean",
                hint="leave one of the two out",
                option="assume_centered",
            )
        if self.centre == "pairs" and self.rows != "normalise":
            raise ParameterError(
                f"rows={self.rows!r} cannot be used with centre='pairs', whose differences have length one",
                hint="leave rows out, or centre='mean'",
                option="rows",
            )

    def _budget(self, share: float) -> Cost:
        if self.delta is None:
            return PureCost(self.epsilon * share)
        return GaussianCost(gdp_mu(self.epsilon, self.delta) * math.sqrt(share))

    def _stage(self, name: str, share: float, l2: float, l1: float, parts: tuple[Part, ...]) -> Stage:
        """``l2`` and ``l1``: sensitivities with every coordinate divided by its part's width."""
        cost = self._budget(share)
        if l2 == 0.0:  # nothing private in it
            return Stage(name, GaussianNoise(0.0, parts, self.crowd), GaussianCost(0.0))
        if isinstance(cost, GaussianCost):
            return Stage(name, calibrate_gaussian(cost.mu, l2, parts, self.crowd), cost)
        return Stage(name, calibrate_laplace(cost.epsilon, l1, parts, self.crowd), cost)

    @property
    def private_count(self) -> bool:
        return self.neighbours == "add-remove"

    @property
    def moments_share(self) -> float:
        """What the stages before leave over."""
        if self.centre == "pairs":
            return 1.0
        left = 1.0 - (RADIUS_SHARE if self.rows == "clip" else 0.0)
        if not self.assume_centered:
            return left - FIRST_MEAN_SHARE - SECOND_MEAN_SHARE
        return left - FIRST_MEAN_SHARE if self.private_count else left

    @property
    def first_mean(self) -> Stage:
        """Also the stage that counts the rows; with ``assume_centered`` it only counts them."""
        one = float(grid.ROW_UNITS)
        length = 0.0 if self.assume_centered else sensitivity.row_sum_l2(one, self.neighbours)
        length1 = 0.0 if self.assume_centered else sensitivity.row_sum_l1(one, self.features, self.neighbours)
        count = COUNT_WEIGHT * COUNT_UNITS if self.private_count else 0.0
        parts = (
            Part(self.features, 0.0 if self.assume_centered else 1.0),
            Part(1, 1.0 / COUNT_WEIGHT if self.private_count else 0.0),
        )
        return self._stage("first mean", FIRST_MEAN_SHARE, math.hypot(length, count), length1 + count, parts)

    @property
    def second_mean(self) -> Stage:
        one = float(grid.ROW_UNITS)
        return self._stage(
            "second mean",
            SECOND_MEAN_SHARE,
            sensitivity.row_sum_l2(one, self.neighbours),
            sensitivity.row_sum_l1(one, self.features, self.neighbours),
            (Part(self.features),),
        )

    @property
    def radius(self) -> Stage:
        return self._stage(
            "radius",
            RADIUS_SHARE,
            sensitivity.histogram_l2(self.neighbours) * COUNT_UNITS,
            sensitivity.histogram_l1(self.neighbours) * COUNT_UNITS,
            (Part(radius_edges(self.row_norm).size + 1),),
        )

    @property
    def moments(self) -> Stage:
        if self.centre == "pairs":
            return self._pair_moments()
        one = float(grid.ROW_UNITS)
        l1 = sensitivity.second_moments_triangle_l1(one, self.features, self.neighbours)
        # In the 1-norm the off-diagonal of a triangle counts once; one scale for all entries.
        parts = symmetric_parts(self.features) if self.delta is not None else (
            Part(grid.triangle_size(self.features)),
        )  # fmt: skip
        frobenius = sensitivity.second_moments_frobenius(one, self.neighbours)
        return self._stage("second moments", self.moments_share, frobenius, l1, parts)

    def _pair_moments(self) -> Stage:
        """Second moments of unit differences and, beside them, the number of rows.

        docs/explanation/pairs.md proves both sensitivities.
        """
        one = float(grid.ROW_UNITS)
        # A count is 2^20 times coarser than second moments; in their units one row weighs PAIR_COUNT_WEIGHT.
        weight = PAIR_COUNT_WEIGHT * grid.MOMENT_UNITS if self.private_count else 0.0
        width = COUNT_UNITS / weight if self.private_count else 0.0
        moments = symmetric_parts(self.features) if self.delta is not None else (
            Part(grid.triangle_size(self.features)),
        )  # fmt: skip
        return self._stage(
            "pair moments",
            self.moments_share,
            math.hypot(sensitivity.pair_moments_frobenius(one, padded=self.padded), weight),
            sensitivity.pair_moments_triangle_l1(one, self.features, padded=self.padded) + weight,
            (*moments, Part(1, width)),
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All releases of a run, in order: what the ledger is debited."""
        if self.centre == "pairs":
            return (self.moments,)
        found = [self.first_mean]
        if not self.assume_centered:
            found.append(self.second_mean)
        if self.rows == "clip":
            found.append(self.radius)
        return (*found, self.moments)


@dataclass(frozen=True)
class Centre:
    """Public after its stage: where rows are centred, how many there are, and how far they may reach."""

    point: Floats
    count: float
    radius: float
    noise: float = 0.0
    """Deviation of each coordinate of the point by its own noise; 0 before the second mean."""
    step: Floats | None = None
    """How far the second mean is from the first."""


# A receiver that is another machine may round a last digit otherwise.
_ROUNDING = 1e-9


def check_centre(plan: Plan, stage: str, before: Centre | None, told: Centre) -> None:
    """Refuse a centre that no honest receiver sends after ``stage``; an owner asks before it uses one.

    The noise is made for rows around any finite centre, cut at any radius that is one; an owner that computed
    with anything else would add to its sum what no noise hides.
    """
    point, norm = told.point, plan.row_norm
    if point.shape != (plan.features,) or point.dtype != np.float64 or not np.isfinite(point).all():
        raise _refused(f"is not {plan.features} finite numbers")
    if not grid.row_norms(point[None, :])[0] <= norm * (1.0 + _ROUNDING):
        raise _refused("lies beyond row_norm, where no mean of rows can be")
    if not (math.isfinite(told.count) and told.count >= _SMALLEST_COUNT):
        raise _refused("comes with a number of rows that is none")
    if not _radius_fits(plan, stage, told.radius):
        raise _refused("comes with a radius outside its limits")
    if before is None:
        return
    at_radius = stage == plan.radius.name
    kept = np.array_equal(point, before.point) if at_radius else told.radius == before.radius
    if not (kept and told.count == before.count):
        raise _refused(f"changes what the {stage} does not")


def _radius_fits(plan: Plan, stage: str, radius: float) -> bool:
    if stage == plan.radius.name:
        return bool(np.isclose(radius_edges(plan.row_norm), radius, rtol=_ROUNDING, atol=0.0).any())
    low = 1.0 if plan.assume_centered else _SMALLEST_RADIUS
    return low * (1.0 - _ROUNDING) <= radius / plan.row_norm <= 1.0 + _ROUNDING


def _refused(what: str) -> MessageError:
    return MessageError(
        f"the public centre {what}; nothing was computed with it",
        hint="whoever opens the sums sent it, and does not follow the protocol",
    )


# --- stages 1 and 2: the mean ----------------------------------------------------------------------------


def first_mean_contribution(plan: Plan, rows: npt.ArrayLike) -> Integers:
    table = grid.checked_rows(rows, plan.features)
    total = np.zeros(plan.features, dtype=np.int64)
    if not plan.assume_centered:
        total = grid.row_sum(grid.cut_to_grid(table, plan.row_norm))
    return np.append(total, np.int64(table.shape[0] * COUNT_UNITS))


def finish_first_mean(plan: Plan, total: Sum, present: int | None = None) -> Centre:
    values = np.asarray(total).astype(np.float64)
    noise = plan.first_mean.noise
    count_noise = noise.deviation_of_sum(1, present) / COUNT_UNITS
    count = max(float(values[-1]) / COUNT_UNITS, count_noise, _SMALLEST_COUNT)
    unit = plan.row_norm / grid.ROW_UNITS
    point = values[:-1] * unit / count
    length = float(np.linalg.norm(point))
    # A mean of rows within the row norm lies within it; the noise may have carried it out.
    point = point * min(1.0, plan.row_norm / length) if length > 0 else point
    spread = noise.deviation_of_sum(0, present) * unit / count
    return Centre(point, count, _implied_radius(plan, point, spread))


def _implied_radius(plan: Plan, point: Floats, spread: float) -> float:
    """Mean square distance from the mean is at most B^2 - |mean|^2; the noise lengthens ``point``."""
    squared = max(float(point @ point) - plan.features * spread * spread, 0.0)
    return max(math.sqrt(max(plan.row_norm**2 - squared, 0.0)), _SMALLEST_RADIUS * plan.row_norm)


def second_mean_contribution(plan: Plan, rows: npt.ArrayLike, centre: Centre) -> Integers:
    table = grid.checked_rows(rows, plan.features)
    return grid.row_sum(grid.cut_to_grid(_centred(plan, table, centre), centre.radius))


def finish_second_mean(plan: Plan, centre: Centre, total: Sum, present: int | None = None) -> Centre:
    step = np.asarray(total).astype(np.float64) * (centre.radius / grid.ROW_UNITS) / centre.count
    point = centre.point + step
    length = float(np.linalg.norm(point))
    point = point * min(1.0, plan.row_norm / length) if length > 0 else point
    return after_second_mean(plan, centre, Centre(point, centre.count, centre.radius), present)


def after_second_mean(plan: Plan, first: Centre, second: Centre, present: int | None = None) -> Centre:
    """The second centre, with what its own noise does to it: follows from public numbers."""
    unit = first.radius / grid.ROW_UNITS / first.count
    deviation = plan.second_mean.noise.deviation_of_sum(0, present) * unit
    return replace(second, noise=deviation, step=second.point - first.point)


def _centred(plan: Plan, table: Floats, centre: Centre) -> Floats:
    """Rows cut at the row norm first, as in the first stage, so that an outlier stays what it was."""
    return np.asarray(grid.shorten(table, plan.row_norm) - centre.point)


# --- stage 3: the radius ---------------------------------------------------------------------------------


def radius_edges(row_norm: float) -> Floats:
    """Public upper edges of the distance bins; the last bin is open."""
    steps = np.arange(-_OCTAVES_BELOW * _BINS_PER_OCTAVE, _BINS_PER_OCTAVE + 1)
    return np.asarray(row_norm * 2.0 ** (steps / _BINS_PER_OCTAVE))


def radius_contribution(plan: Plan, rows: npt.ArrayLike, centre: Centre) -> Integers:
    table = grid.checked_rows(rows, plan.features)
    distances = grid.row_norms(_centred(plan, table, centre))
    edges = radius_edges(plan.row_norm)
    counts = np.bincount(np.searchsorted(edges, distances), minlength=edges.size + 1)
    return np.asarray(counts.astype(np.int64) * COUNT_UNITS)


def finish_radius(plan: Plan, centre: Centre, total: Sum) -> Centre:
    """The first edge below which about half of the rows lie."""
    counts = np.asarray(total).astype(np.float64) / COUNT_UNITS
    reached = np.cumsum(counts)
    target = _UNCUT * max(float(reached[-1]), _SMALLEST_COUNT)
    edges = radius_edges(plan.row_norm)
    first = (
        min(int(np.argmax(reached >= target)), edges.size - 1)
        if (reached >= target).any()
        else edges.size - 1
    )
    return replace(centre, radius=float(edges[first]))


# --- stage 4: second moments -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PrivateMoments:
    """Noisy sum of x x^T around the centre, in the data's units (or in unit rows), and its noise.

    ``count``: how many summands the matrix has. ``samples``: how many rows there are; as many, unless
    the summands are pairs.
    """

    matrix: Floats
    count: float
    sigma: float
    rows: Rows
    samples: float


def moments_contribution(plan: Plan, rows: npt.ArrayLike, centre: Centre) -> Integers:
    table = _centred(plan, grid.checked_rows(rows, plan.features), centre)
    integers = (
        grid.normalise_to_grid(table) if plan.rows == "normalise" else grid.cut_to_grid(table, centre.radius)
    )
    return grid.second_moment_triangle(integers)


def finish_moments(plan: Plan, centre: Centre, total: Sum, present: int | None = None) -> PrivateMoments:
    matrix = grid.unpack_triangle(total, plan.features) * moment_unit(plan, centre)
    sigma = moment_deviation(plan, centre, present)
    return PrivateMoments(matrix, centre.count, sigma, plan.rows, samples=centre.count)


def moment_unit(plan: Plan, centre: Centre) -> float:
    """What one unit of the integer second moments is worth."""
    reach = 1.0 if plan.rows == "normalise" else centre.radius
    return reach * reach / grid.MOMENT_UNITS


def moment_deviation(plan: Plan, centre: Centre, present: int | None = None) -> float:
    """sigma of the summed second moments: sqrt(2) times the noise's deviation off the diagonal."""
    return moment_sigma(plan, present) * moment_unit(plan, centre)


def moment_sigma(plan: Plan, present: int | None = None) -> float:
    """The same in grid units."""
    sigma = plan.moments.noise.deviation_of_sum(0, present)
    # The spectrum of a symmetric noise matrix is set by its off-diagonal entries.
    return sigma * math.sqrt(2.0) if plan.delta is None else sigma


def starting_centre(plan: Plan, first: Centre) -> Centre:
    """With ``assume_centered``: the origin, with the rows' own norm as radius."""
    return Centre(np.zeros(plan.features), first.count, plan.row_norm)


# --- post-processing: costs no privacy -------------------------------------------------------------------


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues without the noise's inflation, largest first, and components as rows.

    ``of_normalised_rows``: the values are those of rows of length one, not of the data.
    """

    eigenvalues: Floats
    components: Floats
    of_normalised_rows: bool


def spectrum(moments: PrivateMoments) -> Spectrum:
    """Eigenvalues of the covariance (per row, not per row minus one: the count is noisy anyway)."""
    values, vectors = np.linalg.eigh(moments.matrix)
    kept = deflate(values[::-1], moments.matrix.shape[0], moments.sigma) / moments.count
    return Spectrum(kept, vectors[:, ::-1].T, moments.rows == "normalise")


def deflate(eigenvalues: Floats, features: int, sigma: float) -> Floats:
    """theta = (lambda + sqrt(lambda^2 - 2 d sigma^2))/2, and 0 inside the noise's own spectrum.

    Off-diagonal noise of variance sigma^2/2 has eigenvalues up to sqrt(2 d) sigma, and moves a value
    theta beyond that to theta + d sigma^2/(2 theta).
    """
    inside = np.maximum(eigenvalues, 0.0) ** 2 - 2.0 * features * sigma * sigma
    return np.asarray(np.where(inside > 0.0, (eigenvalues + np.sqrt(np.maximum(inside, 0.0))) / 2.0, 0.0))
