"""Numbers about components and columns that follow from what was released: loadings, contributions, cos²."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.report.analyses.base import Column, Table

if TYPE_CHECKING:
    from atoll.runtime.result import Result

Matrix = npt.NDArray[np.float64]

TABLED = 20
"""Components beyond these are in the result file only."""


class Spectrum(NamedTuple):
    """Variances of components, as shares of the whole."""

    variance: Matrix
    shares: Matrix
    total: float
    columns: int | None
    """How many columns there are, where that is known: the number of all components."""


def spectrum_of(result: Result) -> Spectrum | None:
    """What was released of the variances; None for nothing."""
    if "explained_variance" not in result or "total_variance" not in result:
        return None
    variance, total = np.asarray(result["explained_variance"], np.float64), float(result["total_variance"])
    known = np.shape(result["components"])[1] if "components" in result else None
    if known is None and result.outputs.get("columns") is not None:
        known = len(result["columns"])
    return Spectrum(variance, variance / (total or 1.0), total, known)


def broken_stick(columns: int, k: int) -> Matrix:
    """The shares of the k largest of ``columns`` pieces of a stick that is broken at random."""
    pieces = np.cumsum(1.0 / np.arange(columns, 0, -1))[::-1] / columns
    return np.asarray(pieces[:k])


def suggested(spectrum: Spectrum) -> int | None:
    """How many leading components have more than a broken stick's share; None where nobody can say."""
    if spectrum.columns is None:
        return None
    above = spectrum.shares > broken_stick(spectrum.columns, len(spectrum.shares))
    return int(np.argmin(above)) if not above.all() else len(above)


def suggestion_words(spectrum: Spectrum) -> str:
    """The suggestion and its reason, in a sentence."""
    k = suggested(spectrum)
    if k is None:
        return ""
    rule = (
        "the broken-stick rule, which keeps leading components whose share is larger than that of a stick "
        "broken at random into as many pieces as there are columns"
    )
    if k == 0:
        return f"No component stands out ({rule})."
    if k == len(spectrum.shares) and spectrum.columns is not None and k < spectrum.columns:
        return f"Suggested number of components: {k} or more, all that were computed ({rule})."
    return f"Suggested number of components: {k} ({rule})."


class Variables(NamedTuple):
    """Columns as components see them, a row for each column."""

    names: tuple[str, ...]
    weights: Matrix
    """Entries of the components: columns x components."""
    contributions: Matrix
    """Percent of a component that a column makes up."""
    correlations: Matrix | None
    """Of columns with components; None where the columns' variances are not known."""

    @property
    def cos2(self) -> Matrix | None:
        """How much of a column's variance a component shows."""
        return None if self.correlations is None else self.correlations**2


def variables_of(result: Result) -> Variables | None:
    """From the components; None where they were not released."""
    if "components" not in result:
        return None
    weights = np.asarray(result["components"], np.float64).T
    names = tuple(map(str, result.outputs.get("columns") or ()))  # None where islands brought arrays
    if len(names) != len(weights):
        names = tuple(f"x{i}" for i in range(len(weights)))
    return Variables(names, weights, 100.0 * weights**2, _correlations(result, weights))


def _correlations(result: Result, weights: Matrix) -> Matrix | None:
    spectrum = spectrum_of(result)
    if spectrum is None or len(spectrum.variance) != weights.shape[1]:
        return None
    if result.study.parameters.get("standardize"):
        of_columns = np.full(len(weights), spectrum.total / len(weights))
    elif "covariance" in result:
        of_columns = np.diag(np.asarray(result["covariance"]))
    else:
        return None
    known = weights * np.sqrt(np.maximum(spectrum.variance, 0.0))
    spread = np.sqrt(np.maximum(of_columns, 0.0))[:, None]
    # Noise and rounding may lead a little beyond one.
    quotients = np.divide(known, spread, out=np.zeros_like(known), where=spread > 0)
    return np.asarray(np.clip(quotients, -1.0, 1.0))


NO_CORRELATIONS = (
    "Correlations of columns with components, and with them the correlation circle and cos², need the "
    "variance of each column, which this study does not release. Standardised studies do not need it."
)


def long_tables(variables: Variables) -> list[Table]:
    """Loadings, contributions and cos² of every column."""
    k = min(variables.weights.shape[1], TABLED)
    heads = [f"PC{i + 1}" for i in range(k)]
    found = [
        _by_column(
            "loadings", "Loadings: entries of the components", variables.names, variables.weights, heads
        ),
        _by_column(
            "contributions",
            "Contributions of columns to components, in percent",
            variables.names,
            variables.contributions,
            heads,
        ),
    ]
    if variables.correlations is not None and variables.cos2 is not None:
        title = "Correlations of columns with components"
        found.append(_by_column("correlations", title, variables.names, variables.correlations, heads))
        title = "cos²: the share of a column's variance that a component shows"
        found.append(_by_column("cos2", title, variables.names, variables.cos2, heads))
    return found


def _by_column(name: str, title: str, names: tuple[str, ...], values: Matrix, heads: list[str]) -> Table:
    rows = [(column, *map(float, row[: len(heads)])) for column, row in zip(names, values, strict=True)]
    return Table(name, title, (Column("column"), *(Column(head, "{:.4g}") for head in heads)), rows)


def islands_table(ellipses: Mapping[str, Any]) -> Table:
    """Where islands lie along the components, and how far they spread, as they released it."""
    k = min(len(one["mean"]) for one in ellipses.values())
    heads = [Column(f"{what} PC{i + 1}", "{:.3g}") for i in range(k) for what in ("mean", "deviation")]
    rows = [
        (island, *(float(one[what][i]) for i in range(k) for what in ("mean", "deviation")))
        for island, one in ellipses.items()
    ]
    return Table("ellipses", "Ellipses: each island's mean and deviation", (Column("island"), *heads), rows)
