"""Generalized linear models by iteratively reweighted least squares, one secure sum a step.

McCullagh and Nelder (1989), section 2.5. Symbols: X -> design, W -> working weights, U -> score,
I = X^T W X -> information, D -> deviance, beta -> coefficients. A model of the intercept alone is fitted
along with it, in the same sums, for the null deviance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import DataError, RunError
from atoll.protocols.learning import normal
from atoll.protocols.learning.design import Rows, Survey
from atoll.protocols.learning.families import family_of, link_of
from atoll.protocols.learning.rows import Kind, RowsParameters, plain, protocol
from atoll.protocols.learning.task import Found, Setting, Task
from atoll.study.model import Study

_SHORTEST = 2.0**-20
"""A step that was halved to this part and still raises the deviance goes nowhere."""
_EDGE = 1e-9
"""A fitted probability this near to 0 or 1 counts as certain."""
_FACTS = 8
"""Numbers in a sum beside score and information: see :class:`_Sums`."""


class GLMParameters(RowsParameters, frozen=True):
    """``family`` and ``link`` of the model; ``tol``: a fit has settled when the next step is
    shorter than this part of a standard error."""

    family: str = "gaussian"
    link: str | None = None
    fit_intercept: bool = True
    tol: float = 1e-8


class _Sums:
    """A total, taken apart: the information's triangle, the score, and sums over rows."""

    def __init__(self, total: Matrix, p: int) -> None:
        half = p * (p + 1) // 2
        self.information = normal.from_packed(total[:half], p)
        self.score = total[half : half + p]
        rest = total[half + p :]
        self.deviance, self.pearson, self.loglikelihood, self.outside, self.certain = rest[:5]
        self.null_information, self.null_score, self.null_deviance = rest[5:8]


class GLM(Task):
    """One model. A point is beta, the null model's intercept, the dispersion, and whether it is the first."""

    def __init__(self, setting: Setting, survey: Survey | None = None) -> None:
        super().__init__(setting, survey)
        p: GLMParameters = setting.parameters
        self.family, self.link = family_of(p.family), link_of(p.family, p.link)
        self.longest = setting.width * (setting.width + 1) // 2 + setting.width + _FACTS
        self.point_length = setting.width + 3
        self._best: tuple[Matrix, _Sums] | None = None
        self._step: Matrix | None = None
        self._part, self._iterations = 1.0, 0
        self._settled = False
        self._curve: list[float] = []
        """The deviance after every step."""

    # ---- islands ----

    def is_point(self, point: Matrix) -> bool:
        first, phi = point[-1], point[-2]
        return bool(first == 1.0 or (first == 0.0 and phi > 0.0))

    def check_rows(self, rows: Rows, island: str) -> None:
        wrong = ~self.family.is_response(rows.y)
        if wrong.any():
            raise DataError(
                f"{island}: the target {self.setting.parameters.target!r} holds a value that is not "
                f"{self.family.response}, as the family {self.setting.parameters.family!r} needs",
                hint="choose another family, or recode the target",
            )

    def local(self, rows: Rows, point: Matrix) -> Matrix:
        beginning, phi = bool(point[-1]), float(point[-2])
        if beginning:
            return self._beginning(rows)
        beta, null = point[:-3], np.full(len(rows.y), point[-3])
        eta = rows.X @ beta + rows.offset
        return self._at(rows, eta, null + rows.offset, phi)

    def _beginning(self, rows: Rows) -> Matrix:
        """Weights and working responses at means near the responses, as least squares."""
        eta = self.link.link(self.family.starting_mean(rows.y))
        W, z = self._working(rows, eta)
        WX = rows.X * W[:, None]
        facts = np.zeros(_FACTS)
        facts[5], facts[6] = W.sum(), (W * z).sum()
        return np.concatenate([normal.packed(rows.X.T @ WX), WX.T @ z, facts])

    def _working(self, rows: Rows, eta: Matrix) -> tuple[Matrix, Matrix]:
        mu, slope = self.link.mean(eta), self.link.slope(eta)
        W = rows.weight * slope**2 / self.family.variance(mu)
        return W, eta - rows.offset + (rows.y - mu) / slope

    def _at(self, rows: Rows, eta: Matrix, null_eta: Matrix, phi: float) -> Matrix:
        with np.errstate(all="ignore"):
            mu, slope = self.link.mean(eta), self.link.slope(eta)
            V = self.family.variance(mu)
            inside = self.family.is_mean(mu) & np.isfinite(slope)
            W = np.where(inside & (V > 0), rows.weight * slope**2 / V, 0.0)
            r = np.where(inside & (V > 0), rows.weight * (rows.y - mu) * slope / V, 0.0)
            pearson = np.where(inside & (V > 0), rows.weight * (rows.y - mu) ** 2 / V, 0.0)
            deviance = np.where(inside, rows.weight * self.family.deviance(rows.y, mu), 0.0)
            likely = np.where(inside, self.family.loglikelihood(rows.y, mu, rows.weight, phi), 0.0)
            certain = (
                (mu < _EDGE) | (mu > 1 - _EDGE) if not self.family.dispersed else np.zeros(len(mu), bool)
            )
            null = self._null(rows, null_eta)
        facts = [deviance.sum(), pearson.sum(), likely.sum(), (~inside).sum(), certain.sum(), *null]
        return np.concatenate([normal.packed(rows.X.T @ (rows.X * W[:, None])), rows.X.T @ r, facts])

    def _null(self, rows: Rows, eta: Matrix) -> list[float]:
        mu, slope = self.link.mean(eta), self.link.slope(eta)
        V = self.family.variance(mu)
        return [
            float((rows.weight * slope**2 / V).sum()),
            float((rows.weight * (rows.y - mu) * slope / V).sum()),
            float((rows.weight * self.family.deviance(rows.y, mu)).sum()),
        ]

    # ---- the server ----

    def start(self) -> Matrix:
        return np.append(np.zeros(self.setting.width + 2), 1.0)

    def advance(self, total: Matrix) -> Matrix | None:
        sums = _Sums(total, self.setting.width)
        if self._step is None:
            normal.check_independent(sums.information, self.setting.names)
            beta = normal.solve(sums.information, sums.score)
            self._step = np.zeros_like(beta)
            self._point = np.array([*beta, sums.null_score / sums.null_information, 1.0, 0.0])
            return self._point
        if self._settled:
            self._best = (self._point, sums)
            return None
        return self._stepped(sums)

    def _stepped(self, sums: _Sums) -> Matrix | None:
        """The next Newton step, or half of the latest one where it went too far."""
        better = sums.outside == 0 and (
            self._best is None or sums.deviance <= self._best[1].deviance * (1 + 1e-9) + 1e-9
        )
        if not better:
            return self._halved()
        self._best, self._part = (self._point, sums), 1.0
        self._iterations += 1
        self._curve.append(float(sums.deviance))
        normal.check_independent(sums.information, self.setting.names)
        self._step = normal.solve(sums.information, sums.score)
        if self._in_errors(sums) <= self.setting.parameters.tol:
            return self._finish(sums)
        if self._iterations >= self.setting.parameters.max_iter:
            raise self._not_settled(sums)
        self._refuse_separation(sums)
        return self._move()

    def _in_errors(self, sums: _Sums) -> float:
        """How far the next step would go, in standard errors: of the model, or of the null model."""
        assert self._step is not None
        squares = max(float(self._step @ sums.score), float(sums.null_score**2 / sums.null_information))
        return float(np.sqrt(max(squares, 0.0) / (self._dispersion(sums) or 1.0)))

    def _finish(self, sums: _Sums) -> Matrix | None:
        """Where the dispersion is estimated, one more sum at the same point says the likelihood."""
        self._settled = True
        if not self.family.dispersed:
            return None
        scale = self._likelihood_scale(sums)
        if not scale > 0.0:
            raise RunError(
                "the columns explain the target exactly: nothing is left that could say how sure numbers are",
                hint="the target is constant, or a combination of the columns; LinearRegression fits it",
            )
        self._point = self._point.copy()
        self._point[-2] = scale
        return self._point

    def _move(self) -> Matrix:
        assert self._best is not None
        assert self._step is not None
        point, sums = self._best
        self._point = point.copy()
        self._point[:-3] += self._part * self._step
        self._point[-3] += sums.null_score / sums.null_information
        return self._point

    def _halved(self) -> Matrix:
        self._part /= 2.0
        if self._best is None or self._part < _SHORTEST:
            raise RunError(
                "the fit does not settle: no step from here lowers the deviance",
                hint="the link may not suit the data: try another one, or other columns",
            )
        return self._move()

    def _refuse_separation(self, sums: _Sums) -> None:
        """Some columns tell the outcome for certain: coefficients then grow without end."""
        assert self.survey is not None
        if self.family.dispersed or self._iterations < 8 or not sums.certain:
            return
        if sums.deviance < 1e-6 * self.survey.n or self._iterations >= 25:
            raise self._separated(sums)

    def _separated(self, sums: _Sums) -> RunError:
        step = normal.solve(sums.information, sums.score)
        scale = np.abs(step) * np.sqrt(np.diag(sums.information))
        names = [self.setting.names[i] for i in np.argsort(-scale)[:3] if scale[i] > 0.05 * scale.max()]
        return RunError(
            f"the outcome is told for certain by {', '.join(map(repr, names))} (separation): "
            f"{round(sums.certain)} rows have a fitted probability of 0 or 1",
            hint="leave that column out, join rare levels, or use LogisticRegression, which shrinks",
        )

    def _not_settled(self, sums: _Sums) -> RunError:
        if not self.family.dispersed and sums.certain:
            return self._separated(sums)
        return RunError(
            f"the fit did not settle within max_iter = {self.setting.parameters.max_iter} steps",
            hint="a larger max_iter or tol; or the link does not suit the data",
        )

    def _likelihood_scale(self, sums: _Sums) -> float:
        """What the likelihood is taken at: for a linear model its own optimum, else the dispersion.

        So does statsmodels; R's ``glm`` takes the optimum for normal responses under every link.
        """
        assert self.survey is not None
        p: GLMParameters = self.setting.parameters
        if p.family == "gaussian" and p.link in (None, "identity"):
            return float(sums.deviance) / self.survey.n
        return self._dispersion(sums)

    def _dispersion(self, sums: _Sums) -> float:
        assert self.survey is not None
        left = self.survey.n - self.setting.width
        return float(sums.pearson) / left if self.family.dispersed else 1.0

    def found(self) -> Found:
        assert self._best is not None
        assert self.survey is not None
        point, sums = self._best
        T, n, p = self.setting.restoring(), self.survey.n, self.setting.width
        phi = self._dispersion(sums)
        covariance = phi * (T @ normal.inverse(sums.information) @ T.T)
        chosen: GLMParameters = self.setting.parameters
        model: dict[str, Any] = {
            "names": self.setting.names,
            "coefficients": T @ point[:-3],
            "family": chosen.family,
            "link": chosen.link or self.family.links[0],
        }
        log_n, llf = np.log(n), float(sums.loglikelihood)
        fit = {
            "covariance": covariance,
            "deviance": float(sums.deviance),
            "null_deviance": float(sums.null_deviance),
            "pearson": float(sums.pearson),
            "dispersion": phi,
            "loglikelihood": llf,
            "aic": -2.0 * llf + 2.0 * p,
            "bic": -2.0 * llf + log_n * p,
            "df_residual": n - p,
            "df_null": n - 1,  # the null model has an intercept, also where the model has none
            "iterations": self._iterations,
            "dispersion_estimated": self.family.dispersed,
            "loss_curve": np.array(self._curve),
        }
        return Found(plain(model), plain(fit))


def _check(study: Study) -> None:
    p = study.read_parameters(GLMParameters)
    link_of(p.family, p.link)


PROTOCOL = protocol(
    Kind(
        name="glm",
        title="Generalized linear model by secure sums",
        analysis="regression",
        parameters=GLMParameters,
        task=GLM,
        opened="the number of rows used and left out, sums and squares of every column, and in every step "
        "the score and the information matrix, deviance, Pearson's chi-squared and likelihood, how many rows "
        "are fitted with certainty or not at all, and the same of a model of the intercept alone",
        points=lambda _: 8,
        check=_check,
    )
)
