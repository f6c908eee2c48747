"""k-means by Lloyd's algorithm: islands add sums and counts per cluster, the server moves the centres."""

from __future__ import annotations

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix
from atoll.errors import DataError, ParameterError, StudyError
from atoll.protocols.learning.design import Rows, Survey
from atoll.protocols.learning.rows import Kind, RowsParameters, plain, protocol
from atoll.protocols.learning.task import Found, Setting, Task
from atoll.study.model import Study


class KMeansParameters(RowsParameters, frozen=True):
    """``init``: the first centres, which everybody knows; without it they are drawn around the joint mean, in
    the directions' joint deviations, from ``seed``. ``tol``: as scikit-learn's, times the mean variance."""

    n_clusters: int = 8
    init: tuple[tuple[float, ...], ...] | None = None
    seed: int = 0
    max_iter: int = 300
    tol: float = 0.0


class KMeans(Task):
    """A point is the centres and those of before: whoever changed its cluster since is counted."""

    def __init__(self, setting: Setting, survey: Survey | None = None) -> None:
        super().__init__(setting, survey)
        self.k, self.d = setting.parameters.n_clusters, len(setting.terms)
        self.longest = self.k * (self.d + 1) + 2
        self.point_length = 2 * self.k * self.d + 1
        self.iterations = 0
        self.curve: list[float] = []
        """The inertia at every point."""

    @property
    def coefficients(self) -> int:
        return max(int(self.k), self.d)

    def is_point(self, point: Matrix) -> bool:
        return bool(point[-1] in (0.0, 1.0))

    def _own(self, X: Matrix) -> Matrix:
        """Rows from the common centre, in the columns' own units: distances must not know others."""
        return np.asarray(X * self.setting.units.unit[:-1])

    def local(self, rows: Rows, point: Matrix) -> Matrix:
        centres, before = point[:-1].reshape(2, self.k, self.d)
        X = self._own(rows.X)
        nearest, distances = _nearest(X, centres)
        changed = len(X) if not point[-1] else int((nearest != _nearest(X, before)[0]).sum())
        sums = np.zeros((self.k, self.d))
        np.add.at(sums, nearest, X)
        counts = np.bincount(nearest, minlength=self.k)
        return np.concatenate([sums.ravel(), counts, [distances.sum(), changed]])

    def start(self) -> Matrix:
        assert self.survey is not None
        p: KMeansParameters = self.setting.parameters
        centre = self.setting.units.centre[:-1]
        if p.init is not None:
            if any(len(row) != self.d for row in p.init):
                raise DataError(
                    f"init has centres of {len(p.init[0])} numbers for {self.d} columns",
                    hint="one number for each column, in the order of columns = [...]",
                )
            self.centres = np.array(p.init) - centre
        else:
            mean = self.survey.total[:-1] / self.survey.n
            spread = np.sqrt(np.maximum(self.survey.squares[:-1] / self.survey.n - mean**2, 0.0))
            drawn = randomness.public(p.seed).normal(size=(self.k, self.d))
            self.centres = mean - centre + drawn * spread
        return np.concatenate([self.centres.ravel(), self.centres.ravel(), [0.0]])

    def advance(self, total: Matrix) -> Matrix | None:
        sums = total[: self.k * self.d].reshape(self.k, self.d)
        counts = total[self.k * self.d : -2]
        changed = round(float(total[-1]))
        self.curve.append(float(total[-2]))
        self.counts = counts
        if changed == 0 or self._near or self.iterations >= self.setting.parameters.max_iter:
            return None
        self.iterations += 1
        # A cluster without rows stays where it is.
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], self.centres)
        shift = float(((moved - self.centres) ** 2).sum())
        before, self.centres = self.centres, moved
        self._near = shift <= self.setting.parameters.tol * self._mean_variance()
        return np.concatenate([moved.ravel(), before.ravel(), [1.0]])

    _near = False

    def _mean_variance(self) -> float:
        assert self.survey is not None
        mean = self.survey.total[:-1] / self.survey.n
        return float(np.maximum(self.survey.squares[:-1] / self.survey.n - mean**2, 0.0).mean())

    def found(self) -> Found:
        model = {"names": self.setting.terms, "centres": self.centres + self.setting.units.centre[:-1]}
        fit = {"inertia": self.curve[-1], "iterations": self.iterations, "counts": np.round(self.counts)}
        return Found(plain(model), plain(fit | {"loss_curve": np.array(self.curve)}))


def _nearest(X: Matrix, centres: Matrix) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Matrix]:
    """The nearest centre of each row, and the squared distance, computed from differences."""
    products = (centres**2).sum(axis=1) - 2.0 * X @ centres.T
    nearest = np.argmin(products, axis=1)
    return nearest, ((X - centres[nearest]) ** 2).sum(axis=1)


def _check(study: Study) -> None:
    p = study.read_parameters(KMeansParameters)
    if p.n_clusters < 1:
        raise ParameterError(f"n_clusters={p.n_clusters} must be 1 or more", option="n_clusters")
    if p.init is not None and len(p.init) != p.n_clusters:
        raise StudyError(
            f"init has {len(p.init)} centres for {p.n_clusters} clusters", path=("parameters", "init")
        )
    if p.init is not None and not all(len(row) == len(p.init[0]) for row in p.init):
        raise StudyError("init has centres of different lengths", path=("parameters", "init"))
    if p.init is not None and not np.isfinite(np.array(p.init)).all():
        raise StudyError("init holds a number that is not finite", path=("parameters", "init"))
    if p.categorical:
        raise StudyError(
            "k-means takes numbers only: a category has no mean", path=("parameters", "categorical")
        )
    if p.target is not None or p.weights is not None or p.offset is not None:
        raise StudyError("clusters have no target, weights or offset", path=("parameters",))


PROTOCOL = protocol(
    Kind(
        name="kmeans",
        title="k-means by secure sums",
        analysis="clusters",
        parameters=KMeansParameters,
        task=KMeans,
        opened="the number of rows used and left out, sums and squares of every column, and in every step "
        "each cluster's sum and number of rows (a cluster of one row is that row), the summed distance, and "
        "how many rows changed their cluster",
        points=lambda _: 12,
        needs_target=False,
        intercept=lambda _: False,
        recentres=lambda _: True,
        check=_check,
    )
)
