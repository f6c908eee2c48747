"""Noise, and apart from it what the noise guarantees.

A *release* is a vector of integers summed over owners. ``Crowd`` says who adds noise; ``GaussianNoise``
and ``LaplaceNoise`` say how wide it is on each part of the vector and draw one owner's share from a
seed; ``gaussian_cost`` and ``laplace_cost`` map a noise and a sensitivity to a privacy cost. The
``calibrate_*`` functions go the other way.

Distributed noise: of n owners, c may pool what they know and t may fail to send. Every owner adds noise
of variance sigma^2/(n-c-t), so that the honest shares that surely arrive reach sigma^2 by themselves;
the sum carries n/(n-c-t) sigma^2. A trusted curator is a crowd of one.

Sums of discrete Gaussians are not discrete Gaussians; from 16 grid units per share on the difference
vanishes (Kairouz, Liu and Steinke 2021), and narrower shares are refused. Sums of Polya shares are
discrete Laplace exactly, at any width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atoll.errors import ParameterError
from atoll.privacy.calibration import GRID_INFLATION
from atoll.privacy.samplers import check_width, discrete_gaussian, polya_share

Integers = npt.NDArray[np.int64]

MIN_SHARE_WIDTH = 16.0
# How far from its mean a noise sum may be thought to reach when a modulus is chosen.
TAIL_WIDTHS = 12.0


@dataclass(frozen=True)
class Crowd:
    """Who adds noise: ``owners`` shares, of which ``colluders`` are known and ``dropouts`` may be missing."""

    owners: int
    colluders: int = 0
    dropouts: int = 0

    def __post_init__(self) -> None:
        if self.colluders < 0 or self.dropouts < 0:
            raise ParameterError("colluders and dropouts cannot be negative", option="colluders")
        if self.honest < 1:
            raise ParameterError(
                f"{self.owners} owners with {self.colluders} colluders and {self.dropouts} dropouts "
                "leave nobody whose noise counts",
                hint="add islands, or lower colluders or dropouts",
                option="colluders",
            )

    @property
    def honest(self) -> int:
        """How many shares alone must carry the stated privacy."""
        return self.owners - self.colluders - self.dropouts

    def variance_factor(self, present: int | None = None) -> float:
        """Variance of the noise in the sum, over that of a trusted curator."""
        arrived = self.owners if present is None else present
        if not self.owners - self.dropouts <= arrived <= self.owners:
            raise ParameterError(
                f"{arrived} of {self.owners} owners contributed; only {self.dropouts} may be missing"
            )
        return arrived / self.honest


CURATOR = Crowd(1)


@dataclass(frozen=True)
class Part:
    """``size`` coordinates whose noise is ``width`` times as wide as the release's; 0 means public."""

    size: int
    width: float = 1.0


def check_spending(what: str, spent: float) -> None:
    """Nothing is ever given back by a release: a negative cost would be budget out of nowhere."""
    if not (math.isfinite(spent) and spent >= 0.0):
        raise ParameterError(f"a release cannot cost {what}={spent!r}", hint="a finite number from 0 on")


@dataclass(frozen=True)
class GaussianCost:
    """A release that is mu-GDP."""

    mu: float

    def __post_init__(self) -> None:
        check_spending("mu", self.mu)


@dataclass(frozen=True)
class PureCost:
    """A release that is epsilon-private, without a delta."""

    epsilon: float

    def __post_init__(self) -> None:
        check_spending("epsilon", self.epsilon)


Cost = GaussianCost | PureCost


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian; ``sigma`` (grid units) is what the honest shares add up to."""

    sigma: float
    parts: tuple[Part, ...]
    crowd: Crowd = CURATOR

    def __post_init__(self) -> None:
        share = self.sigma / math.sqrt(self.crowd.honest)
        narrow = [share * part.width for part in self.parts if 0 < share * part.width < MIN_SHARE_WIDTH]
        if narrow:
            raise ParameterError(
                f"a noise share would be only {min(narrow):.3g} grid units wide",
                hint=f"use a finer grid: shares must be at least {MIN_SHARE_WIDTH:g} units wide",
            )
        _check_widest(share, self.parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def draw_share(self, seed: bytes) -> Integers:
        """One owner's noise, a function of its seed."""
        share = self.sigma / math.sqrt(self.crowd.honest)
        return np.concatenate(
            [
                discrete_gaussian(seed, share * part.width, part.size, index)
                if part.width > 0
                else np.zeros(part.size, dtype=np.int64)
                for index, part in enumerate(self.parts)
            ]
        )

    def draw_sum(self, seed: bytes) -> Integers:
        """All owners' noise at once, as one discrete Gaussian: what the shares' sum is, to within nothing
        that could be seen; for rehearsals with too many owners to draw for each."""
        whole = self.sigma * math.sqrt(self.crowd.variance_factor())
        return GaussianNoise(whole, self.parts).draw_share(seed)

    def deviation_of_sum(self, part: int, present: int | None = None) -> float:
        """Standard deviation of the noise on one part of the sum, in grid units."""
        return self.sigma * self.parts[part].width * math.sqrt(self.crowd.variance_factor(present))


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace in Polya shares; ``scale`` (grid units) is that of the honest shares' sum."""

    scale: float
    parts: tuple[Part, ...]
    crowd: Crowd = CURATOR

    def __post_init__(self) -> None:
        _check_widest(self.scale, self.parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def part_scale(self, part: int) -> int:
        """Rounded up: never less noise than stated."""
        return math.ceil(self.scale * self.parts[part].width)

    def draw_share(self, seed: bytes) -> Integers:
        """One owner's noise, a function of its seed."""
        return np.concatenate(
            [
                polya_share(seed, self.part_scale(index), self.crowd.honest, part.size, index)
                if part.width > 0
                else np.zeros(part.size, dtype=np.int64)
                for index, part in enumerate(self.parts)
            ]
        )

    def deviation_of_sum(self, part: int, present: int | None = None) -> float:
        """Standard deviation of the noise on one part of the sum, in grid units."""
        scale = self.part_scale(part)
        if scale == 0:
            return 0.0
        ratio = math.exp(-1.0 / scale)
        return math.sqrt(2.0 * ratio * self.crowd.variance_factor(present)) / (1.0 - ratio)


Noise = GaussianNoise | LaplaceNoise


def _check_widest(width: float, parts: tuple[Part, ...]) -> None:
    """What could not be drawn is refused here, before any budget is spent on it."""
    widest = width * max(part.width for part in parts)
    if widest > 0:
        check_width(max(1.0, widest))


def gaussian_cost(noise: GaussianNoise, sensitivity: float) -> GaussianCost:
    """``sensitivity``: 2-norm with every coordinate divided by its part's width.

    The width that exceeds the ideal by ``GRID_INFLATION`` is the price of the grid, not extra privacy.
    """
    return GaussianCost(sensitivity * GRID_INFLATION / noise.sigma)


def laplace_cost(noise: LaplaceNoise, sensitivity: float) -> PureCost:
    """``sensitivity``: 1-norm with every coordinate divided by its part's width."""
    return PureCost(sensitivity / noise.scale)


def calibrate_gaussian(
    mu: float, sensitivity: float, parts: tuple[Part, ...], crowd: Crowd = CURATOR
) -> GaussianNoise:
    """The noise whose honest shares make a release of that sensitivity mu-GDP."""
    return GaussianNoise(sensitivity * GRID_INFLATION / mu, parts, crowd)


def calibrate_laplace(
    epsilon: float, sensitivity: float, parts: tuple[Part, ...], crowd: Crowd = CURATOR
) -> LaplaceNoise:
    """The noise whose honest shares make a release of that sensitivity epsilon-private."""
    return LaplaceNoise(sensitivity / epsilon, parts, crowd)


def symmetric_parts(features: int) -> tuple[Part, Part]:
    """Noise shape of a symmetric matrix [diagonal, upper triangle]: isotropic in the Frobenius norm."""
    return Part(features, 1.0), Part(features * (features - 1) // 2, math.sqrt(0.5))


def draw_noise_bytes(noise: Noise, seed: bytes) -> bytes:
    """A share as little-endian int64, for a role's record."""
    return noise.draw_share(seed).astype("<i8").tobytes()


def noise_from_bytes(recorded: bytes) -> Integers:
    return np.frombuffer(recorded, dtype="<i8").astype(np.int64)


def modulus_bits(largest_value: float, noise: Noise) -> int:
    """Bits of a modulus that the noisy sum cannot wrap: more than 2 (largest + 12 deviations)."""
    widest = max(noise.deviation_of_sum(part) for part in range(len(noise.parts)))
    return math.ceil(math.log2(2.0 * (largest_value + TAIL_WIDTHS * widest))) + 1
