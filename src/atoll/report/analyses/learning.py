"""Regressions, classifiers and clusters: the table of coefficients or centres, and how well it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.report.analyses.base import Analysis, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import Review
    from atoll.runtime.result import Result

_FEW_ROWS = 10
"""Rows for each coefficient below which a model says much about single rows."""

_FEW_IN_CLUSTER = 5
"""Rows of a cluster below which its centre is nearly a row."""

SCORES = (
    "Every step opens a number or more about EVERY record: its summed score (each column times its weight, "
    "added up), or its summed distances. From all steps together, mixtures of the islands' columns can be "
    "worked out for every record, and columns of only two values (yes or no) exactly. These are data about "
    "single records."
)
"""What a study accepts that says accept_scores."""


class _Learned(Analysis):
    """What all models share."""

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        from atoll.report.analyses.learning_charts import charts_of

        return charts_of(self.name, result, own)

    def facts(self, result: Result) -> dict[str, Any]:
        facts = {name: int(result[name]) for name in ("n_samples", "n_dropped") if name in result}
        if "fit" in result:
            plain = {k: v for k, v in result["fit"].items() if isinstance(v, int | float | str | bool)}
            facts |= plain
        return facts

    def warnings(self, finished: Any) -> list[str]:
        result = finished.result
        if "model" not in result or "n_samples" not in result:
            return []
        n, k = int(result["n_samples"]), len(result["model"]["names"])
        if n >= _FEW_ROWS * k:
            return []
        return [
            f"{n:,} rows for {k} coefficients: with fewer than {_FEW_ROWS} rows for each, a model is unsure"
        ]

    def about_records(self, review: Review) -> str:
        if review.parameters.get("accept_scores"):
            return SCORES
        if review.partition == "vertical":
            return "No message is about a single record: only coefficients of the joint model are opened."
        return "No message is about a single record: only sums over all rows of all islands are opened."


class Regression(_Learned):
    """Coefficients with their errors, tests and intervals."""

    words = "a regression"

    def tables(self, result: Result) -> list[Table]:
        if "model" not in result:
            return []
        if "fit" not in result or "covariance" not in result["fit"]:
            model = result["model"]
            plain = list(zip(model["names"], map(float, model["coefficients"]), strict=True))
            columns = (Column("term"), Column("estimate", "{:.6g}"))
            return [Table("coefficients", "Coefficients", columns, plain)]
        from atoll.protocols.learning.summary import Summary

        summary = Summary.of(result)
        letter = summary.facts["statistic"]
        heads = (
            Column("term"),
            Column("estimate", "{:.5g}"),
            Column("std error", "{:.4g}"),
            Column(letter, "{:.3f}"),
            Column("p", "{:.3g}"),
            Column("95% low", "{:.5g}"),
            Column("high", "{:.5g}"),
        )
        shown = ("estimate", "std_error", "statistic", "p_value", "low", "high")
        rows: list[tuple[Any, ...]] = [
            (name, *(float(summary.table[column][i]) for column in shown))
            for i, name in enumerate(summary.names)
        ]
        return [Table("coefficients", "Coefficients", heads, rows)]

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        if "model" not in result:
            return {}
        import pandas as pd

        if "fit" in result and "covariance" in result["fit"]:
            from atoll.protocols.learning.summary import Summary

            frame = Summary.of(result).frame()
            return {"coefficients": frame.rename_axis("term").reset_index()}
        model = result["model"]
        return {"coefficients": pd.DataFrame({"term": model["names"], "estimate": model["coefficients"]})}

    def summary(self, result: Result) -> str:
        if "n_samples" not in result or "model" not in result:
            return super().summary(result)
        return f"{len(result['model']['names'])} coefficients from {int(result['n_samples']):,} rows."


class Classification(_Learned):
    """Weights of every class."""

    words = "a classifier"

    def tables(self, result: Result) -> list[Table]:
        if "model" not in result:
            return []
        model = result["model"]
        weights = np.asarray(model["coefficients"])
        heads = tuple(model["classes"]) if len(weights) > 1 else (f"towards {model['classes'][-1]}",)
        columns = (Column("term"), *(Column(str(head), "{:.5g}") for head in heads))
        rows = [(name, *map(float, weights[:, i])) for i, name in enumerate(model["names"])]
        return [Table("weights", "Weights", columns, rows)]

    def summary(self, result: Result) -> str:
        if "n_samples" not in result or "model" not in result:
            return super().summary(result)
        classes, terms = len(result["model"]["classes"]), len(result["model"]["names"])
        n = int(result["n_samples"])
        return f"A classifier of {classes} classes with {terms} weights each, from {n:,} rows."

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        if "model" not in result:
            return {}
        import pandas as pd

        model = result["model"]
        weights = np.asarray(model["coefficients"])
        heads = list(model["classes"]) if len(weights) > 1 else [model["classes"][-1]]
        frame = pd.DataFrame(weights.T, columns=[str(head) for head in heads])
        frame.insert(0, "term", model["names"])
        return {"weights": frame}


class Clusters(_Learned):
    """Centres, and how many rows each cluster has."""

    words = "a search for clusters (k-means)"

    def about_records(self, review: Review) -> str:
        if review.parameters.get("accept_scores"):
            return SCORES
        return (
            "Only sums over all rows of all islands are opened, one for each cluster. A cluster of a single "
            "row is that row: its centre then tells every provider and the server what the row holds."
        )

    def warnings(self, finished: Any) -> list[str]:
        result = finished.result
        if "fit" not in result:
            return []
        small = [int(count) for count in result["fit"]["counts"] if 0 < count < _FEW_IN_CLUSTER]
        if not small:
            return []
        said = f"{len(small)} cluster(s) have fewer than {_FEW_IN_CLUSTER} rows: their centres are nearly "
        return [f"{said}single rows; pass them on with care, or use fewer clusters"]

    def tables(self, result: Result) -> list[Table]:
        if "fit" not in result:
            return []
        counts = np.asarray(result["fit"]["counts"])
        rows = [(f"cluster {i}", int(count)) for i, count in enumerate(counts, 1)]
        return [Table("clusters", "Clusters", (Column("cluster"), Column("rows", "{:,}")), rows)]

    def long_tables(self, result: Result) -> list[Table]:
        if "model" not in result:
            return []
        model = result["model"]
        columns = (Column("cluster"), *(Column(str(name), "{:.6g}") for name in model["names"]))
        rows = [(f"cluster {i}", *map(float, row)) for i, row in enumerate(model["centres"], 1)]
        return [Table("centres", "Centres", columns, rows)]

    def summary(self, result: Result) -> str:
        if "n_samples" not in result or "model" not in result:
            return super().summary(result)
        return f"{len(result['model']['centres'])} clusters of {int(result['n_samples']):,} rows."

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        if "model" not in result:
            return {}
        import pandas as pd

        model = result["model"]
        frame = pd.DataFrame(np.asarray(model["centres"]), columns=list(model["names"]))
        frame.insert(0, "cluster", range(1, len(frame) + 1))
        return {"centres": frame}
