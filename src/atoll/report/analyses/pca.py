"""Principal component analysis: variances, projections, and what they say about single records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from atoll.privacy.noise_statement import NoiseStatement
from atoll.protocols import protocol_of
from atoll.protocols.pca.sfpca.parameters import small_islands
from atoll.report.analyses import pca_tables
from atoll.report.analyses.base import Analysis, Column, Table
from atoll.report.units import listing

if TYPE_CHECKING:
    import pandas as pd

    from atoll.data.island import Island
    from atoll.report.charts import Chart
    from atoll.review.study import OutputReview, Review
    from atoll.runtime.execute import Run
    from atoll.runtime.result import Result

SCORES = "scores"
"""The output that holds every record's projection."""


class PCA(Analysis):
    """Components by their variance; records by their projections."""

    words = "a principal component analysis (PCA)"

    # ---- a result ----

    def tables(self, result: Result) -> list[Table]:
        if "explained_variance" not in result:
            return []
        said = noise_of(result)
        variance = variance_table(result["explained_variance"], result["total_variance"])
        return [variance] if said is None else [variance, noise_table(said)]

    def notes(self, result: Result) -> list[str]:
        said = noise_of(result)
        return [] if said is None else said.words()

    def frames(self, result: Result) -> dict[str, pd.DataFrame]:
        return {"projections": result.consumer_frame()} if SCORES in result else {}

    def figures(self, result: Result) -> dict[str, bytes]:
        from atoll.report import plots  # matplotlib takes long to import, and tables do without it

        figures, shares = {}, None
        name, said = result.study.name, noise_of(result)
        noise = "" if said is None else f"\n{said.verdict()}"
        if "explained_variance" in result and "total_variance" in result:
            variance, total = result["explained_variance"], result["total_variance"]
            shares = variance / (total or 1.0)
            figures["scree"] = plots.scree(variance, total, f"{name}: explained variance{noise}")
        if SCORES in result:
            figures["projections"] = plots.projection(
                result[SCORES],
                f"{name}: every record's projection{noise}",
                labels=result.outputs.get("labels"),
                label_name=str(result.study.parameters.get("label") or "label"),
                shares=shares,
            )
        return figures

    def charts(self, result: Result, own: Island | None = None) -> list[Chart]:
        from atoll.report.analyses.pca_charts import charts_of

        said = noise_of(result)
        return charts_of(result, own, "" if said is None else said.verdict())

    def long_tables(self, result: Result) -> list[Table]:
        variables = pca_tables.variables_of(result)
        found = [] if variables is None else pca_tables.long_tables(variables)
        return found + ([pca_tables.islands_table(result["ellipses"])] if "ellipses" in result else [])

    def missing(self, result: Result) -> list[str]:
        variables = pca_tables.variables_of(result)
        known = variables is None or variables.correlations is not None
        return [] if known else [pca_tables.NO_CORRELATIONS]

    def facts(self, result: Result) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if "n_samples" in result:
            facts["n_samples"] = int(result["n_samples"])
        if "explained_variance" in result:
            total = float(result["total_variance"]) or 1.0
            facts["explained_variance_ratio"] = (result["explained_variance"] / total).tolist()
        said = noise_of(result)
        if said is not None:
            facts["noise"] = {
                "leading": list(said.leading),
                "angle_at_most": said.angles.tolist(),
                "angle_typical": said.typical.tolist(),
                "mostly_noise": said.mostly_noise,
            }
        return facts

    def summary(self, result: Result) -> str:
        if "explained_variance" not in result:
            return super().summary(result)
        facts = self.facts(result)
        ratios = facts["explained_variance_ratio"]
        rows = f" of {facts['n_samples']:,} records" if "n_samples" in facts else ""
        which = "1 component explains" if len(ratios) == 1 else f"{len(ratios)} components explain"
        said = noise_of(result)
        noise = "" if said is None else f"; {said.verdict()}"
        return f"{which} {sum(ratios):.1%} of the variance{rows}{noise}."

    def warnings(self, finished: Run) -> list[str]:
        said = noise_of(finished.result)
        noise = ["the components are mostly noise"] if said is not None and said.mostly_noise else []
        return [*noise, *_few_rows(finished), *_small_islands(finished)]

    # ---- a review ----

    def about_records(self, review: Review) -> str:
        """Projections are data about single records, and must not go unsaid."""
        released = _released_scores(review)
        if not released:
            return super().about_records(review)
        if review.partition == "horizontal" and _only_owners(review, released[0].released_to):
            return (
                "Projections of records, a few numbers for each, go to the island that holds the record only."
            )
        return (
            "Projections of records are sent: a few numbers for every record (and its label, where the study "
            f"names one) go to {listing(released[0].released_to)}. These are data about single records and "
            "must be treated as such."
        )

    def risks(self, review: Review) -> list[str]:
        if not _released_scores(review):
            return []
        return ["Projections describe single records; who knows more about a person may recognise theirs."]


def noise_of(result: Result) -> NoiseStatement | None:
    """What is said of the noise, where the run was private and its variances were released."""
    return NoiseStatement(**result["noise"]) if "noise" in result else None


def noise_table(said: NoiseStatement) -> Table:
    """How far leading components, taken together, lie from the same without noise."""
    rows = [
        ("PC1" if j == 1 else f"PC1 to PC{j}", float(most), float(typical))
        for j, most, typical in zip(said.leading, said.angles, said.typical, strict=True)
    ]
    columns = (Column("components"), Column("angle at most", "{:g}°"), Column("typically", "{:.2g}°"))
    return Table("noise", "Noise: angle to the same rows without it", columns, rows)


def variance_table(explained: Iterable[float], total: float) -> Table:
    """Component by component: variance, share, share of all so far."""
    rows, together = [], 0.0
    for i, value in enumerate(explained, 1):
        share = float(value) / (total or 1.0)
        together += share
        rows.append((f"PC{i}", float(value), share, together))
    columns = (
        Column("component"),
        Column("variance", "{:.6g}"),
        Column("share", "{:.1%}"),
        Column("together", "{:.1%}"),
    )
    return Table("variance", "Variance", columns, rows)


def _few_rows(finished: Run) -> Iterable[str]:
    """Whoever learns a covariance of few rows learns much about each."""
    for address, learned in finished.learned.items():
        known = {**learned.outputs, **learned.inherent}
        n, d = known.get("n_samples", 0), len(known.get("covariance", ()))
        if d and n <= d:
            yield (
                f"the joint table has {n} rows for {d} columns: its mean and covariance, which {address} "
                "learns, then say much about single rows"
            )


def _small_islands(finished: Run) -> Iterable[str]:
    """SF-PCA opens a spectrum to all its roles; noise, where there is any, hides single rows in it."""
    study = finished.result.study
    if protocol_of(study.protocol).privacy(study) is not None:
        return
    for learned in finished.learned.values():
        known = {**learned.outputs, **learned.inherent}
        if "spectrum" in known:
            words = small_islands(known["rows"], len(known["explained_variance"]))
            if words:
                yield words
            return


def _released_scores(review: Review) -> list[OutputReview]:
    return [output for output in review.outputs if output.output == SCORES and output.released_to]


def _only_owners(review: Review, released_to: Iterable[str]) -> bool:
    owners = {f"{party}/{role.role}" for role in review.roles if role.brings_data for party in role.parties}
    return set(released_to) <= owners
