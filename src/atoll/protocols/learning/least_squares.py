"""Least squares, ridge and lasso from one secure sum: the products of all columns with each other.

Symbols: X -> design, y -> response, w -> weights, G -> their Gram matrix over all rows, beta -> coefficients.
Objectives are scikit-learn's: |y - X beta|^2 + alpha |beta|^2 (ridge), |y - X beta|^2 / 2n + alpha |beta|_1
(lasso); the intercept is free.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import ParameterError
from atoll.protocols.learning import normal
from atoll.protocols.learning.design import Rows, Survey
from atoll.protocols.learning.rows import Kind, RowsParameters, plain, protocol, refuse_offset
from atoll.protocols.learning.task import WHOLE, Found, Setting, Task
from atoll.study.model import Study


class LeastSquaresParameters(RowsParameters, frozen=True):
    """``penalty`` and its weight ``alpha``."""

    penalty: Literal["none", "l2", "l1"] = "none"
    alpha: float = 0.0
    fit_intercept: bool = True


class LeastSquares(Task):
    """One sum: the Gram matrix of the design and the response, weighted, and the weights' sum."""

    def __init__(self, setting: Setting, survey: Survey | None = None) -> None:
        super().__init__(setting, survey)
        wide = setting.width + 1
        self.longest = wide * (wide + 1) // 2 + 1
        self.point_length = 1

    def local(self, rows: Rows, point: Matrix) -> Matrix:
        del point
        Z = np.column_stack([rows.X, self._response(rows.y)])
        gram = Z.T @ (Z * rows.weight[:, None])
        return np.append(normal.packed(gram), rows.weight.sum())

    def _response(self, y: Matrix) -> Matrix:
        units = self.setting.units
        return np.asarray((y - units.centre[-1]) / units.unit[-1])

    def start(self) -> Matrix:
        return np.zeros(1)

    def advance(self, total: Matrix) -> Matrix | None:
        self._G = normal.from_packed(total[:-1], self.setting.width + 1)
        self._weight = float(total[-1])
        return None

    def found(self) -> Found:
        assert self.survey is not None
        p: LeastSquaresParameters = self.setting.parameters
        A, b = self._G[:-1, :-1], self._G[:-1, -1]
        if p.penalty == "none":
            normal.check_independent(A, self.setting.names)
            beta = normal.solve(A, b)
        else:
            beta = self._ridge(A, b, p.alpha) if p.penalty == "l2" else self._lasso(A, b, p.alpha)
        unit, T = self.setting.units.unit[-1], self.setting.restoring()
        coefficients = T @ beta * unit
        if self.setting.intercept:
            coefficients[0] += self.setting.units.centre[-1]
        left = max(0.0, float(self._G[-1, -1] - 2.0 * beta @ b + beta @ A @ beta)) * unit**2
        model = {"names": self.setting.names, "coefficients": coefficients, "family": "gaussian"}
        return Found(plain(model | {"link": "identity"}), plain(self._fit(left, A, T)))

    def _fit(self, left: float, A: Matrix, T: Matrix) -> dict[str, object]:
        assert self.survey is not None
        n, p, unit = self.survey.n, self.setting.width, float(self.setting.units.unit[-1])
        whole = self._G[-1, -1] - (self._G[0, -1] ** 2 / self._weight if self.setting.intercept else 0.0)
        fit: dict[str, object] = {
            "residual_sum_of_squares": left,
            "total_sum_of_squares": float(whole) * unit**2,
            "df_residual": n - p,
        }
        if self.setting.parameters.penalty == "none" and left > 0.0:
            sigma2 = left / (n - p)
            fit |= {"dispersion": sigma2, "covariance": sigma2 * (T @ normal.inverse(A) @ T.T)}
            if self.setting.parameters.weights is None:
                likely = -0.5 * n * (np.log(2.0 * np.pi * left / n) + 1.0)
                fit |= {"loglikelihood": likely, "aic": 2 * p - 2 * likely, "bic": np.log(n) * p - 2 * likely}
        return fit

    def _own_units(self) -> Matrix:
        """What one unit of each coefficient is in the columns' and the response's own units."""
        start, units = int(self.setting.intercept), self.setting.units
        return np.asarray(units.unit[-1] / units.unit[: self.setting.width - start])

    def _ridge(self, A: Matrix, b: Matrix, alpha: float) -> Matrix:
        """The penalty is on coefficients in the columns' own units."""
        penalty = np.zeros(self.setting.width)
        # |y|^2 is in units of the response, so the penalty is as well.
        penalty[int(self.setting.intercept) :] = alpha / self.setting.units.unit[:-1] ** 2
        return normal.solve(A + np.diag(penalty), b)

    def _lasso(self, A: Matrix, b: Matrix, alpha: float) -> Matrix:
        """On the products about the means, with coefficients in the columns' own units."""
        from sklearn.linear_model import Lasso  # takes long to import, and only the lasso needs it

        start, unit = int(self.setting.intercept), self.setting.units.unit
        S, c = A[start:, start:], b[start:]
        if start:
            S, c = S - np.outer(A[1:, 0], A[0, 1:]) / A[0, 0], c - A[1:, 0] * b[0] / A[0, 0]
        D = unit[:-1]
        S, c = S * np.outer(D, D), c * D * unit[-1]
        # Any R, r with R^T R = S and R^T r = c have the objective of the rows themselves.
        values, vectors = np.linalg.eigh(S)
        keep = values > values[-1] * 1e-13
        R = (vectors[:, keep] * np.sqrt(values[keep])).T
        r = vectors[:, keep].T @ c / np.sqrt(values[keep])
        search = Lasso(alpha * self._weight / len(R), fit_intercept=False, tol=1e-14, max_iter=1_000_000)
        own = search.fit(R, r).coef_
        beta = own * D / unit[-1]
        if not start:
            return np.asarray(beta)
        return np.concatenate([[(b[0] - A[0, 1:] @ beta) / A[0, 0]], beta])


def _check(study: Study) -> None:
    p = study.read_parameters(LeastSquaresParameters)
    refuse_offset(p.offset, "GLM with the family gaussian has one")
    if not p.alpha >= 0.0 or not np.isfinite(p.alpha):
        raise ParameterError(f"alpha={p.alpha!r} must be 0 or more", option="alpha")


PROTOCOL = protocol(
    Kind(
        name="least-squares",
        title="Least squares by one secure sum",
        analysis="regression",
        parameters=LeastSquaresParameters,
        task=LeastSquares,
        opened="the number of rows used and left out, and the sums, squares and products of all columns and "
        "the target",
        points=lambda _: 1,
        goes_on=False,
        check=_check,
        says=(WHOLE, ", which say the joint products of all columns (without a penalty)"),
    )
)
