"""What a report shows of regressions, classifiers, clusters and descriptions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.report import learning_plots, own_rows
from atoll.report.charts import Chart
from atoll.report.plots import shortened

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.report.own_rows import Predicted
    from atoll.runtime.result import Result

OWN = "Made of your own rows alone; no other site's rows are shown."


def charts_of(analysis: str, result: Result, own: Island | None) -> list[Chart]:
    """All charts for which something was released, and those of the owner's own rows."""
    known = {"clusters": _clusters, "description": _description}
    if analysis in known:
        return known[analysis](result)
    if "model" not in result:
        return []
    charts = [_forest(result)] if analysis == "regression" else _weights(result)
    said = None if own is None else own_rows.predicted(result, own)
    return charts if said is None else charts + _of_rows(analysis, result, said)


def _forest(result: Result) -> Chart:
    model, name = result["model"], shortened(result.study.name)
    estimates, low, high = np.asarray(model["coefficients"], np.float64), None, None
    words = "Every point is a coefficient. "
    if "fit" in result and "covariance" in result["fit"]:
        from atoll.protocols.learning.summary import Summary

        table = Summary.of(result).table
        low, high = np.asarray(table["low"]), np.asarray(table["high"])
        words += (
            "Its line is the 95 % confidence interval: where it crosses zero, the data do not tell the sign."
        )
    else:
        words += "A penalised or encrypted fit has no standard errors, and so no intervals."
    draw = partial(
        learning_plots.forest_figure,
        model["names"],
        estimates,
        low,
        high,
        f"{name}: coefficients",
        "Estimate",
    )
    return Chart("forest", "Coefficients", words, draw)


def _weights(result: Result) -> list[Chart]:
    model, name = result["model"], shortened(result.study.name)
    weights = np.atleast_2d(np.asarray(model["coefficients"], np.float64))
    heads = list(model["classes"]) if len(weights) > 1 else [model["classes"][-1]]
    return [
        Chart(
            f"weights-{i + 1}",
            f"Weights towards {head}",
            "A column whose weight is above zero speaks for the class, one below zero against it.",
            partial(
                learning_plots.forest_figure,
                model["names"],
                row,
                None,
                None,
                f"{name}: weights towards {head}",
                "Weight",
            ),
        )
        for i, (head, row) in enumerate(zip(heads[:6], weights[:6], strict=True))
    ]


def _of_rows(analysis: str, result: Result, said: Predicted) -> list[Chart]:
    """Own rows beside what the model says of them."""
    name, model = shortened(result.study.name), result["model"]
    two = _two_classes(analysis, model, said.seen)
    if two is None:
        if analysis != "regression":
            return []
        left = np.asarray(said.seen, np.float64) - said.score
        words = f"{OWN} A good model leaves a cloud without a shape around zero."
        draw = partial(learning_plots.residuals_figure, said.score, left, f"{name}: residuals of own rows")
        return [Chart("residuals", "Residuals of your own rows", words, draw)]
    if two.all() or not two.any():
        return []
    words = (
        f"{OWN} The farther the curve from the dashed line, the better the model tells the two classes apart."
    )
    draw = partial(learning_plots.roc_figure, two, said.score, f"{name}: ROC curve of own rows")
    charts = [Chart("roc", "ROC curve of your own rows", words, draw)]
    chance = _chance(model, said)
    if chance is not None:
        words = (
            f"{OWN} On the dashed line things happen as often as the model says; numbers: rows in a group."
        )
        title = f"{name}: calibration on own rows"
        draw = partial(learning_plots.calibration_figure, two, chance, title)
        charts.append(Chart("calibration", "Calibration on your own rows", words, draw))
    return charts


def _two_classes(analysis: str, model: Any, seen: Any) -> Any:
    """Which rows are of the last of two classes; None where there are not two."""
    if analysis == "regression":
        return np.asarray(seen, np.float64) > 0.5 if model.get("family") == "binomial" else None
    classes = [str(c) for c in model["classes"]]
    if len(classes) != 2:
        return None
    from atoll.data.levels import as_levels

    return np.array(as_levels(np.asarray(seen))) == classes[-1]


def _chance(model: Any, said: Predicted) -> Any:
    """The probability of the last class, where the model has one: a hinge has none."""
    if model.get("family") == "binomial":
        return said.score
    return 1.0 / (1.0 + np.exp(-said.score)) if model.get("loss") == "logistic" else None


def _clusters(result: Result) -> list[Chart]:
    if "model" not in result:
        return []
    centres = np.asarray(result["model"]["centres"], np.float64)
    counts = [int(count) for count in result["fit"]["counts"]] if "fit" in result else []
    draw = partial(
        learning_plots.centres_figure,
        centres,
        list(result["model"]["names"]),
        counts,
        f"{shortened(result.study.name)}: centres of clusters",
    )
    words = (
        "Each tile is a cluster's centre in one column: how far below or above the mean of all centres, in "
        "standard deviations of the centres." + (" n: rows of all islands in the cluster." if counts else "")
    )
    return [Chart("centres", "Clusters", words, draw)]


def _description(result: Result) -> list[Chart]:
    if "description" not in result or not len(result["description"]["numbers"]):
        return []
    told = result["description"]
    title = f"{shortened(result.study.name)}: correlations"
    draw = partial(
        learning_plots.correlation_figure,
        np.asarray(told["correlation"], np.float64),
        list(told["numbers"]),
        title,
    )
    words = "Correlations of every two columns over all islands' rows: dark means strong, colour the sign."
    return [Chart("correlations", "Correlations", words, draw)]
