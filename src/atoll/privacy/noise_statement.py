"""How much of a private PCA is noise, said from released numbers alone: post-processing, which costs nothing.

Released is M = S + G: S the second moments of the rows as they count (around the released centre, of length
one or cut), G symmetric noise of deviation sigma on the diagonal and sigma/sqrt(2) off it. G looks the same
in every basis, so how far the leading eigenvectors of M lie from those of S depends on the spectrum of S and
on sigma only. The spectrum of S is what is not known. So:

1. a spectrum is fitted, from which noise makes, on average, the one that was released;
2. from spectra around it (each value off by what noise does to one) runs are simulated;
3. their angles count by how near their gap, behind the last component asked for, is to the released one:
   a gap that noise has opened by chance is thought of, too;
4. what 95 of 100 stay below is stated, rounded up to two digits. Beyond 80 degrees, 90 is stated:
   nothing is known. Between equal eigenvalues half a degree below 90 decides about one run in twenty, and
   values that are this close leave no trace in the released spectrum from which it could be told.

*The reference* is the subspace of S: the same rows, the same released centre, the same cutting, without
noise in the second moments. What the centre's own noise does is said apart (``centre``), and what
normalising or cutting does cannot be said from released numbers (:meth:`NoiseStatement.bias`).

docs/explanation/private-utility.md has how often the stated angles hold (benchmarks/noise_statement.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from atoll import randomness
from atoll.lazy import lazy
from atoll.privacy.dp_moments import Centre, Floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

CONFIDENCE = 0.95
"""How often a stated angle holds, at least."""
NOTHING = 90.0
"""Stated where nothing is known: subspaces are never further apart."""
_KNOWN_UP_TO = 80.0
"""Degrees beyond which a bound is no knowledge, and NOTHING is stated."""
HALF = 45.0
"""Degrees from which on more than half of a direction is noise."""
MOST_LEADING = 16
"""Angles are stated for the first 1, 2, ..., 16 components, and for all of them."""

_RUNS, _FITTING, _STEPS = 720, 24, 12
_EASY_RUNS, _EASY_FITTING = 48, 96
"""Columns up to which so many are simulated; beyond, spectra vary less and fewer do."""
_FEWEST_RUNS, _FEWEST_FITTING = 24, 1
_DAMPING = 0.7
_KERNEL = 0.6
"""Width, in sigma, within which a simulated gap is like the released one."""
_SURE, _SURER = 0.01, 1e-5
"""How rarely components lie along the centre's noise by chance where they are said to; and how rarely where
that noise is so small that rows would have to lie very close together."""
_SMALL_SHARE = 1e-3


class NoiseStatement(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """What is said of the noise in released components; angles in degrees, largest principal ones."""

    leading: tuple[int, ...]
    """For how many leading components together."""
    angles: np.ndarray[Any, Any]
    """Stated: no more than this, 95 times of 100; 90 where nothing is known."""
    typical: np.ndarray[Any, Any]
    """As often more as less."""
    rows: str
    """How rows count: "normalise", "clip" or "pairs"."""
    centre: float = 0.0
    """How far its noise puts the released centre from the rows' mean (root mean square, in the data's
    units); 0 where it has none."""
    centre_share: float = 0.0
    """What part of the total variance is that distance; "normalise": at least."""
    centre_shows: bool = False
    """Whether the components lie along the noise of the centre, more than chance allows."""

    @property
    def angle(self) -> float:
        """Stated for all components together."""
        return float(self.angles[-1])

    @property
    def mostly_noise(self) -> bool:
        """Whether more than half of the components' direction, taken together, is noise."""
        return bool(self.typical[-1] >= HALF) or self.from_centre

    @property
    def from_centre(self) -> bool:
        """Whether the private centre is too noisy for what is computed around it."""
        return self.centre_shows or self.centre_share >= 0.5

    def holding(self) -> int:
        """The most leading components that are not mostly noise, taken together; 0 if there are none."""
        held = [j for j, typical in zip(self.leading, self.typical, strict=True) if typical < HALF]
        return max(held, default=0)

    def words(self) -> list[str]:
        """In plain words: angle, verdict, centre, bias."""
        return [*self._angle_words(), *self._centre_words(), self.bias()]

    def verdict(self) -> str:
        """In a few words, for a title."""
        if self.mostly_noise:
            return "mostly noise"
        if self.angle >= NOTHING:
            return "perhaps noise: no angle can be stated"
        return f"within {self.angle:g}° of the same without noise"

    def _angle_words(self) -> list[str]:
        k = self.leading[-1]
        whose, lies = ("the component", "lies") if k == 1 else (f"the {k} components together", "lie")
        same = "what the same rows, centre and cutting give without noise"
        typically = f"typically {self.typical[-1]:.2g} degrees"
        said = f"{whose} {lies} within {self.angle:g} degrees of {same}, 95 times of 100; {typically}"
        if self.angle >= NOTHING:
            said = (
                f"no angle can be stated: noise may have turned {whose} anywhere beside {same}; {typically}"
            )
        if self.typical[-1] < HALF:
            return [said]
        held = self.holding()
        better = f"; the first {held} together are not" if held > 1 else "; PC1 alone is not" if held else ""
        return [said, f"mostly noise: more than half of these directions is noise{better}"]

    def _centre_words(self) -> list[str]:
        if not self.centre:
            return []
        least = "at least " if self.rows == "normalise" else "about "
        part = f", {least}{self.centre_share:.0%} of the total variance" if self.centre_share > 0.01 else ""
        said = (
            f"the private centre is {self.centre:.3g} from the rows' mean by its own noise{part}; the angles "
            "are around that centre"
        )
        if not self.from_centre:
            return [said]
        why = "mostly noise: components show where the noisy centre lies, not how rows vary"
        return [said, f"{why}; a larger epsilon, a smaller row_norm or centre='pairs' helps"]

    def bias(self) -> str:
        """What the angles leave out, because no released number says it."""
        if self.rows == "clip":
            return "apart from noise: rows are cut at the radius, which moves components of skew data"
        what = "differences of rows" if self.rows == "pairs" else "rows"
        return (
            f"apart from noise: {what} count with length one, which moves the components of data that are "
            "not elliptical, by how much is not known from the result"
        )


def state(
    eigenvalues: Floats,
    sigma: float,
    k: int,
    rows: str,
    centre: Centre | None = None,
    components: Floats | None = None,
) -> NoiseStatement:
    """From all eigenvalues of the released second moments (falling) and the noise's sigma in their units.

    ``components`` (rows), where whoever states it has them: do they show the centre's noise?
    """
    leading = tuple(j for j in range(1, k + 1) if j <= MOST_LEADING or j == k)
    found = _simulated(np.ascontiguousarray(eigenvalues, dtype=np.float64).tobytes(), float(sigma), leading)
    if centre is None or not centre.noise:
        return NoiseStatement(leading, found.stated, found.typical, rows)
    squared = len(eigenvalues) * centre.noise**2
    share = squared / (squared + centre.radius**2)
    sure = _SURER if share < _SMALL_SHARE else _SURE
    shows = centre.step is not None and components is not None and lies_along(components, centre.step, sure)
    return NoiseStatement(
        leading, found.stated, found.typical, rows, math.sqrt(squared), share, centre_shows=shows
    )


def lies_along(components: Floats, step: Floats, chance: float = _SURE) -> bool:
    """Whether these (rows) hold more of a direction than chance lets them hold of one that is random.

    The two private means differ by noise alone, and so in a random direction; the second one's error is part
    of it. Where rows lie close together beside that error, all seem to lie the same way from the centre.
    """
    k, d = components.shape
    length = float(np.linalg.norm(step))
    if k >= d or length == 0.0:
        return False
    held = min(1.0, float(np.linalg.norm(components @ step) / length) ** 2)
    return bool(special.betainc((d - k) / 2, k / 2, 1.0 - held) < chance)


class _Angles(NamedTuple):
    stated: Floats
    typical: Floats


@lru_cache(maxsize=16)
def _simulated(eigenvalues: bytes, sigma: float, leading: tuple[int, ...]) -> _Angles:
    """Every role that saw the spectrum states the same: draws are from a fixed seed and nothing secret."""
    values = np.frombuffer(eigenvalues)
    if sigma <= 0.0:
        return _Angles(np.zeros(len(leading)), np.zeros(len(leading)))
    scaled, rng = values / sigma, randomness.public(len(values))
    fitted = fitted_spectrum(scaled, rng)
    spectra, vectors = _runs(fitted, rng)
    stated, typical = [], []
    for j in leading:
        if j == len(values):  # the whole space
            stated.append(0.0)
            typical.append(0.0)
            continue
        seen = _largest_angles(vectors, j)
        off = (spectra[:, j - 1] - spectra[:, j]) - (scaled[j - 1] - scaled[j])
        # Never all of no weight: a spectrum that no run comes near is judged by all of them.
        weights = np.exp(-0.5 * (off / _KERNEL) ** 2) + 1e-6
        stated.append(_quantile(seen, weights, CONFIDENCE))
        typical.append(_quantile(seen, weights, 0.5))
    # Rounded: machines that differ in a last bit state the same.
    return _Angles(np.array([rounded_up(angle) for angle in stated]), np.round(typical, 2))


def rounded_up(angle: float) -> float:
    """To two digits, so that what is shown is what is stated; beyond 80 degrees to 90."""
    if angle > _KNOWN_UP_TO:
        return NOTHING
    if angle <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(angle)) - 1)
    return round(math.ceil(angle / unit - 1e-9) * unit, 12)


def _effort(d: int, most: int, fewest: int, easy: int) -> int:
    return max(fewest, round(most * min(1.0, (easy / d) ** 2)))


def fitted_spectrum(released: Floats, rng: randomness.Public) -> Floats:
    """Falling and not negative: noise of sigma 1 makes the released spectrum of it, on average."""
    d = len(released)
    noise = _noise(rng, _effort(d, _FITTING, _FEWEST_FITTING, _EASY_FITTING), d)
    fitted = np.maximum(released, 0.0)
    for _ in range(_STEPS):
        made = np.linalg.eigvalsh(noise + np.diag(fitted))[:, ::-1].mean(axis=0)
        fitted = np.maximum(_falling(fitted + _DAMPING * (released - made)), 0.0)
    return fitted


def _runs(fitted: Floats, rng: randomness.Public) -> tuple[Floats, Floats]:
    """Released spectra, and eigenvectors (columns) in the basis of the reference, of simulated runs."""
    d = len(fitted)
    runs = _effort(d, _RUNS, _FEWEST_RUNS, _EASY_RUNS)
    truths = np.maximum(fitted + rng.standard_normal((runs, d)), 0.0)
    released = _noise(rng, runs, d)
    places = np.arange(d)
    released[:, places, places] += -np.sort(-truths, axis=1)
    values, vectors = np.linalg.eigh(released)
    return values[:, ::-1], vectors[:, :, ::-1]


def _noise(rng: randomness.Public, runs: int, d: int) -> Floats:
    """Variance 1 on the diagonal, 1/2 off it."""
    half = rng.standard_normal((runs, d, d)) / 2.0
    return np.asarray(half + half.transpose(0, 2, 1))


def _largest_angles(vectors: Floats, j: int) -> Floats:
    """Of the first j eigenvectors with the first j axes, run by run."""
    smallest = np.linalg.svd(vectors[:, :j, :j], compute_uv=False)[:, -1]
    return np.asarray(np.degrees(np.arccos(np.minimum(smallest, 1.0))))


def _quantile(seen: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(seen)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(seen[order[min(int(np.searchsorted(reached, share)), len(seen) - 1)]])


def _falling(values: Sequence[float] | Floats) -> Floats:
    """The nearest falling sequence: neighbours in the wrong order are averaged."""
    means: list[float] = []
    counts: list[int] = []
    for value in values:
        means.append(float(value))
        counts.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            total = counts[-2] + counts[-1]
            means[-2] = (means[-2] * counts[-2] + means[-1] * counts[-1]) / total
            counts[-2] = total
            means.pop()
            counts.pop()
    return np.repeat(means, counts)
