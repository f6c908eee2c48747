"""The table that goes with a regression: estimates, standard errors, tests, intervals, and how well it fits.

Everything is computed from what the study released: the coefficients, their covariance and a few sums.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.errors import NotReleased
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
    from scipy import stats
else:
    pd = lazy("pandas")
    stats = lazy("scipy.stats")

COLUMNS = ("estimate", "std_error", "statistic", "p_value", "low", "high", "exp_estimate")


@dataclass(frozen=True)
class Summary:
    """A fitted regression as a table: ``print`` it, or take :meth:`frame`, :meth:`as_dict`, :meth:`json`."""

    names: tuple[str, ...]
    table: Mapping[str, Any]
    """Columns of the table: arrays by name."""
    facts: Mapping[str, Any]
    covariance: Any
    """Of the coefficients."""
    level: float = 0.95

    @classmethod
    def of(cls, outputs: Any, level: float = 0.95) -> Summary:
        """From a result of a regression (a mapping of its outputs)."""
        model, fit = outputs["model"], outputs["fit"]
        if "covariance" not in fit:
            raise NotReleased(
                "this fit has no standard errors: it has a penalty, several classes, weights of a "
                "classifier, or a target that the columns explain exactly",
                hint="LinearRegression, LogisticRegression(C=None) of two classes, and GLM have them",
            )
        beta, covariance = np.ravel(model["coefficients"]), np.asarray(fit["covariance"])
        errors = np.sqrt(np.diag(covariance))
        # Normal responses have t statistics; elsewhere the large-sample z, as R and statsmodels print them.
        exact = model["family"] == "gaussian" and "deviance" not in fit
        spread = stats.t(fit["df_residual"]) if exact else stats.norm()
        statistic = beta / errors
        reach = spread.ppf(0.5 + level / 2.0) * errors
        table = {
            "estimate": beta,
            "std_error": errors,
            "statistic": statistic,
            "p_value": 2.0 * spread.sf(np.abs(statistic)),
            "low": beta - reach,
            "high": beta + reach,
            "exp_estimate": np.exp(np.minimum(beta, 700.0)),
        }
        facts = _facts(outputs, exact)
        return cls(tuple(model["names"]), table, facts, covariance, level)

    def frame(self) -> pd.DataFrame:
        """The table as a frame, one row for each coefficient."""
        return pd.DataFrame({name: self.table[name] for name in COLUMNS}, index=list(self.names))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        rows = {
            name: {column: float(self.table[column][i]) for column in COLUMNS}
            for i, name in enumerate(self.names)
        }
        return {
            "coefficients": rows,
            **self.facts,
            "covariance": self.covariance.tolist(),
            "level": self.level,
        }

    def json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.as_dict())

    def __str__(self) -> str:
        facts = self.facts
        width = max(len(name) for name in self.names)
        letter = facts["statistic"]
        heads = (
            "estimate",
            "std error",
            letter,
            f"P>|{letter}|",
            f"{self.level:.0%} low",
            "high",
            "exp(est)",
        )
        lines = [
            f"{facts['family']} regression, link {facts['link']}",
            f"{facts['n']:,} rows used, {facts['dropped']:,} with missing values left out" + self._reasons(),
            f"{facts['islands']} islands",
            "",
            " " * width + "".join(f"{head:>12}" for head in heads),
        ]
        for i, name in enumerate(self.names):
            cells = "".join(_cell(column, float(self.table[column][i])) for column in COLUMNS)
            lines.append(f"{name:<{width}}{cells}")
        lines += ["", *(f"{name:<22}{value}" for name, value in self._lines())]
        return "\n".join(lines)

    __repr__ = __str__

    def _reasons(self) -> str:
        said = [f"{reason} {n:,}" for reason, n in self.facts["dropped_for"].items() if n]
        return f" ({', '.join(said)})" if said else ""

    def _lines(self) -> list[tuple[str, str]]:
        facts, shown = self.facts, []
        for name, words in _WORDS.items():
            if name in facts:
                value = facts[name]
                shown.append((words, f"{value:,}" if isinstance(value, int) else f"{value:.6g}"))
        return shown

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th>"
            + "".join(f"<td>{_cell(c, float(self.table[c][i])).strip()}</td>" for c in COLUMNS)
            + "</tr>"
            for i, name in enumerate(self.names)
        )
        heads = "".join(f"<th>{html.escape(column.replace('_', ' '))}</th>" for column in COLUMNS)
        facts = "".join(f"<tr><td>{words}</td><td>{value}</td></tr>" for words, value in self._lines())
        return f"<table><tr><th></th>{heads}</tr>{rows}</table><table>{facts}</table>"


_WORDS = {
    "iterations": "iterations",
    "null_deviance": "null deviance",
    "df_null": "  degrees of freedom",
    "deviance": "residual deviance",
    "df_residual": "  degrees of freedom",
    "dispersion": "dispersion",
    "loglikelihood": "log-likelihood",
    "aic": "AIC",
    "bic": "BIC",
    "r_squared": "R squared",
    "adjusted_r_squared": "adjusted R squared",
    "f_statistic": "F statistic",
    "f_p_value": "  p of F",
}


def _facts(outputs: Any, exact: bool) -> dict[str, Any]:
    model, fit = outputs["model"], outputs["fit"]
    said: dict[str, Any] = {
        "family": model["family"],
        "link": model["link"],
        "statistic": "t" if exact else "z",
        "n": int(outputs["n_samples"]),
        "dropped": int(outputs["n_dropped"]),
        "dropped_for": {name: int(n) for name, n in outputs["dropped"].items()},
        "islands": len(outputs["islands"]),
    }
    for name in _WORDS:
        if name in fit:
            value = fit[name]
            said[name] = int(value) if name.startswith("df") or name == "iterations" else float(value)
    if "residual_sum_of_squares" in fit:  # which is the deviance of normal responses
        ones = model["names"][0] == "(Intercept)"
        said |= {"deviance": float(fit["residual_sum_of_squares"]), "df_null": said["n"] - int(ones)}
        said["null_deviance"] = float(fit["total_sum_of_squares"])
    return said | _of_squares(model, fit, said["n"])


def _of_squares(model: Mapping[str, Any], fit: Mapping[str, Any], n: int) -> dict[str, float]:
    """R squared and F of a linear model, where they mean something: there is an intercept."""
    if model["family"] != "gaussian" or model["link"] != "identity" or model["names"][0] != "(Intercept)":
        return {}
    left = float(fit.get("residual_sum_of_squares", fit.get("deviance", 0.0)))
    whole = float(fit.get("total_sum_of_squares", fit.get("null_deviance", 0.0)))
    k, df = len(model["names"]) - 1, int(fit["df_residual"])
    if whole <= 0.0 or k == 0 or df <= 0 or left <= 0.0:
        return {}
    r2 = 1.0 - left / whole
    F = (whole - left) / k / (left / df)
    return {
        "r_squared": r2,
        "adjusted_r_squared": 1.0 - (1.0 - r2) * (n - 1) / df,
        "f_statistic": F,
        "f_p_value": float(stats.f.sf(F, k, df)),
    }


def _cell(column: str, value: float) -> str:
    if column == "p_value":
        return f"{'<0.001' if value < 0.001 else format(value, '.3f'):>12}"
    if column == "statistic":
        return f"{value:>12.3f}"
    return f"{value:>12.5g}"
