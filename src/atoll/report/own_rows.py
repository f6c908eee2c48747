"""An owner's own rows beside a result: projected, or predicted. Nothing of this leaves the page that its
owner makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.data.levels import as_levels
from atoll.errors import DataError
from atoll.lazy import lazy
from atoll.protocols.learning.design import INTERCEPT
from atoll.protocols.learning.families import link_of

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.runtime.result import Result

pd: Any = lazy("pandas")

Matrix = npt.NDArray[np.float64]


def projections(result: Result, island: Island) -> Matrix | None:
    """The island's rows on the released components; None where these were not released."""
    if "components" not in result:
        return None
    named = result.outputs.get("columns")  # None where islands brought arrays, whose columns have no names
    columns = tuple(island.columns) if named is None else tuple(map(str, named))
    _check_columns(island, columns)
    if len(columns) != np.shape(result["components"])[1]:
        raise DataError(
            f"{island.name}: the table has {len(columns)} columns, where the result needs "
            f"{np.shape(result['components'])[1]}",
            hint="give the table that took part in the study, or one with the same columns",
        )
    rows = island.features(columns)
    if np.isnan(rows).any():
        raise DataError(
            f"{island.name}: rows with missing values cannot be projected", hint="fill them, or drop the rows"
        )
    components = np.asarray(result["components"])
    scale = result.outputs.get("scale")  # a provider's result says None where columns are as they are
    divisors = np.ones(len(columns)) if scale is None else np.asarray(scale)
    divisors = np.where(divisors == 0.0, 1.0, divisors)
    if "offset" in result:
        return np.asarray(rows / divisors @ components.T - np.asarray(result["offset"]))
    return np.asarray((rows - np.asarray(result["mean"])) / divisors @ components.T)


class Predicted(NamedTuple):
    """Own rows with a target: what was seen, and what the model says."""

    seen: npt.NDArray[Any]
    score: Matrix
    """The mean of a regression, or how far a row lies on the side of the last class."""


def predicted(result: Result, island: Island) -> Predicted | None:
    """What a model says of the island's rows; None where the table has no target, or there is no model."""
    target = result.study.parameters.get("target")
    if "model" not in result or target is None or target not in island.columns:
        return None
    model, given = result["model"], result.study.parameters
    terms = [name for name in model["names"] if name != INTERCEPT]
    design, kept = _design(island, terms, tuple(given.get("categorical") or ()), target)
    weights = np.atleast_2d(np.asarray(model["coefficients"], np.float64))[-1]
    intercept = weights[list(model["names"]).index(INTERCEPT)] if INTERCEPT in model["names"] else 0.0
    slopes = np.array([w for w, name in zip(weights, model["names"], strict=True) if name != INTERCEPT])
    score = design @ slopes + intercept
    if given.get("offset"):
        score = score + np.asarray(island.values(given["offset"]), np.float64)[kept]
    if "family" in model:
        score = link_of(model["family"], model.get("link")).mean(score)
    return Predicted(np.asarray(island.values(target))[kept], score)


def _design(
    island: Island, terms: list[str], categorical: tuple[str, ...], target: str
) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """The terms of a model for the rows that miss nothing, and which rows these are."""
    kept = ~np.asarray(pd.isna(island.values(target)))
    columns = []
    for term in terms:
        name, bracket, level = term.partition("[")
        if bracket and name in categorical:
            _check_columns(island, (name,))
            values = island.values(name)
            kept &= ~np.asarray(pd.isna(values))
            columns.append((np.array(as_levels(values)) == level[:-1]).astype(np.float64))
        else:
            _check_columns(island, (term,))
            values = np.asarray(island.values(term), np.float64)
            kept &= ~np.isnan(values)
            columns.append(values)
    design = np.column_stack(columns) if columns else np.empty((island.n_rows, 0))
    return design[kept], kept


def _check_columns(island: Island, columns: tuple[str, ...]) -> None:
    lacking = [column for column in columns if column not in island.columns]
    if lacking:
        raise DataError(
            f"{island.name}: the table has no column {lacking[0]!r}, which the result needs",
            hint="give the table that took part in the study, or one with the same columns",
        )
