"""What a report shows of a principal component analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.report import own_rows, pca_plots, plots
from atoll.report.analyses.pca_tables import (
    Matrix,
    Spectrum,
    Variables,
    broken_stick,
    spectrum_of,
    suggestion_words,
    variables_of,
)
from atoll.report.charts import Bars, Chart, Choice, Line, Outline, Points

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.runtime.result import Result

MOST_COMPONENTS = 5
"""Scores are shown along as many components."""
MOST_HOVERED = 20_000
"""More points than these have no words beside the pointer."""
WRITTEN = 15
"""More columns than these have no names beside their arrows, but where the pointer is."""


def charts_of(result: Result, own: Island | None, noise: str = "") -> list[Chart]:
    """All charts for which something was released; ``noise``: what is said of it under each title."""
    name, spectrum, variables = plots.shortened(result.study.name), spectrum_of(result), variables_of(result)
    title = f"{name}: {{}}" + (f"\n{noise}" if noise else "")
    charts = [] if spectrum is None else [_scree(spectrum, title)]
    shares = None if spectrum is None else spectrum.shares
    scores, whose = _scores(result, own)
    if scores:
        charts.append(_projection(result, scores, whose, title, shares))
    if "ellipses" in result:
        charts += _ellipses(result["ellipses"], scores, whose, title, shares)
    if variables is not None:
        several = variables.weights.shape[1] > 1
        if scores and several:
            charts.append(_biplot(scores, variables, title, shares))
        if variables.correlations is not None and several:
            charts.append(_circle(variables, title, shares))
        charts.append(_loadings(variables, title, shares))
        charts.append(_contributions(variables, title))
    return charts


def _scores(result: Result, own: Island | None) -> tuple[Mapping[str, Matrix], str]:
    """Whose records can be shown: those that the study releases, else the owner's own."""
    if "scores" in result:
        return {island: np.asarray(rows) for island, rows in result["scores"].items()}, "released"
    mine = None if own is None else own_rows.projections(result, own)
    return ({}, "") if own is None or mine is None else ({own.name: mine}, "own")


def _axes(k: int, shares: Matrix | None) -> dict[str, str]:
    return {f"PC{i + 1}": plots.axis_title(f"PC{i + 1}", shares, i) or f"PC{i + 1}" for i in range(k)}


def _pairs(fields: list[str]) -> list[Choice]:
    second = fields[1] if len(fields) > 1 else fields[0]
    return [Choice("Across", "x", fields, fields[0]), Choice("Upwards", "y", fields, second)]


def _scree(spectrum: Spectrum, title: str) -> Chart:
    k = len(spectrum.shares)
    by_chance = None if spectrum.columns is None else broken_stick(spectrum.columns, k)
    lines = [Line("all up to it", {"share": np.cumsum(spectrum.shares)})]
    if by_chance is not None:
        lines.append(Line("broken stick", {"share": by_chance}, dashed=True))
    live = Bars(
        [f"PC{i + 1}" for i in range(k)],
        {"share": spectrum.shares},
        {"share": "Share of the variance"},
        (),
        lines,
        "Principal component",
        "each component",
        percent=True,
    )
    words = "Bars: the share of the whole variance that a component has. Line: all components up to it. "
    return Chart(
        "scree",
        "How much each component explains",
        words + suggestion_words(spectrum),
        lambda: plots.scree_figure(
            spectrum.variance, spectrum.total, title.format("explained variance"), by_chance
        ),
        live,
    )


def _projection(
    result: Result, scores: Mapping[str, Matrix], whose: str, title: str, shares: Matrix | None
) -> Chart:
    n = sum(map(len, scores.values()))
    words = {
        "released": "Every point is a record, by its projection, as the study releases it to you.",
        "own": "Every point is a record of your own table, projected here; no other site's are shown.",
    }[whose]
    many = " Colours in the still picture: how many records are at a place." if n > pca_plots.MANY else ""
    labels: Any = result.outputs.get("labels") if whose == "released" else None

    def draw() -> plots.Picture:
        if n > pca_plots.MANY and all(rows.shape[1] > 1 for rows in scores.values()):
            return pca_plots.density_figure(scores, title.format(f"{n:,} records"), shares)
        return plots.projection_figure(
            scores,
            title.format("projections"),
            labels=labels,
            label_name=str(result.study.parameters.get("label") or "label"),
            shares=shares,
        )

    return Chart(
        "projections", "Records along the components", f"{words}{many}", draw, _points(scores, labels, shares)
    )


def _ellipses(
    found: Mapping[str, Any], scores: Mapping[str, Matrix], whose: str, title: str, shares: Matrix | None
) -> list[Chart]:
    """Islands side by side; along a single component there is nothing to draw, and the table says it."""
    k = min(len(one["mean"]) for one in found.values())
    if k < 2:
        return []
    colours = plots.island_colours(list(found))
    outlines = [
        Outline(island, colours[island], one["mean"], one["deviation"], one["correlation"])
        for island, one in found.items()
    ]
    points = {"released": " Points are the records that the study releases.", "own": " Points are your own."}
    words = (
        "Each line is the ellipse of an island, and the cross its centre: if its records lay as a normal "
        "distribution does, 95 percent of them would be inside. Every island computed, rounded and released "
        "its own; no record of another island is in this picture." + points.get(whose, "")
    )
    titles = _axes(k, shares)
    shown = {island: rows[:, :k] for island, rows in scores.items() if len(rows) <= MOST_HOVERED}
    live = (
        _points(shown, None, shares) if shown else Points({}, titles, None, (), (), _pairs(list(titles)), ())
    )
    return [
        Chart(
            "ellipses",
            "Islands along the components",
            words,
            lambda: pca_plots.ellipses_figure(outlines, shown, title.format("ellipses of islands"), shares),
            live._replace(outlines=outlines, hover=["island", *titles], colours=_of(colours, shown)),
        )
    ]


def _of(colours: Mapping[str, str], islands: Iterable[str]) -> list[str]:
    """Of an island that has points; an owner's own table may be called otherwise than its island."""
    return [colours.get(island, plots.QUIET) for island in islands]


def _points(scores: Mapping[str, Matrix], labels: Any, shares: Matrix | None) -> Points:
    k = min(MOST_COMPONENTS, min(rows.shape[1] for rows in scores.values()))
    stacked = np.concatenate([rows[:, :k] for rows in scores.values()]).astype(np.float32)
    columns: dict[str, Any] = {f"PC{i + 1}": np.ascontiguousarray(stacked[:, i]) for i in range(k)}
    titles = _axes(k, shares)
    if k == 1:
        titles["row"] = "row"
        columns["row"] = np.arange(len(stacked), dtype=np.float32)
    hover: list[str] = []
    if len(stacked) <= MOST_HOVERED:
        hover = ["island", *list(titles)[:k]]
        if labels:
            columns["label"] = np.array([str(v) for island in scores for v in labels[island]], dtype=object)
            hover.insert(1, "label")
    groups = np.repeat(np.arange(len(scores)), [len(rows) for rows in scores.values()])
    colours = plots.island_colours(list(scores))
    return Points(columns, titles, groups, list(scores), list(colours.values()), _pairs(list(titles)), hover)


def _biplot(scores: Mapping[str, Matrix], variables: Variables, title: str, shares: Matrix | None) -> Chart:
    return Chart(
        "biplot",
        "Records and columns together",
        "Points are records; an arrow is a column, and points into the direction in which its values rise. "
        "Arrows are the entries of the components times a number that the picture states: their lengths can "
        "be compared with each other, not with the records.",
        lambda: pca_plots.biplot_figure(
            scores, variables.weights, variables.names, title.format("biplot"), shares
        ),
    )


def _circle(variables: Variables, title: str, shares: Matrix | None) -> Chart:
    correlations = variables.correlations
    assert correlations is not None
    k = min(MOST_COMPONENTS, correlations.shape[1])
    columns: dict[str, Any] = {f"PC{i + 1}": correlations[:, i] for i in range(k)}
    columns["column"] = np.array(variables.names, dtype=object)
    columns["cos² of both"] = (correlations[:, :2] ** 2).sum(axis=1)
    titles = _axes(k, shares)
    live = Points(
        columns,
        titles,
        None,
        ("columns",),
        (plots.COLOURS[5],),
        _pairs(list(titles)),
        ["column", *titles],
        arrows=len(variables.names) <= 200,
        circle=True,
        written="column" if len(variables.names) <= WRITTEN else "",
    )
    return Chart(
        "circle",
        "Correlation of columns with components",
        "An arrow is a column; its place is its correlation with the two components. The closer it comes "
        "to the circle, the more of the column these two show: cos², its squared length, is the share.",
        lambda: pca_plots.circle_figure(
            correlations, variables.names, title.format("correlation circle"), shares
        ),
        live,
    )


def _loadings(variables: Variables, title: str, shares: Matrix | None) -> Chart:
    return Chart(
        "loadings",
        "The strongest loadings",
        "What the first components are made of: their largest entries. Columns of one colour rise together.",
        lambda: plots.loadings_figure(
            variables.weights.T, variables.names, title.format("strongest loadings"), shares
        ),
    )


def _contributions(variables: Variables, title: str) -> Chart:
    k = min(MOST_COMPONENTS, variables.weights.shape[1])
    order = np.argsort(-variables.contributions[:, 0], kind="stable")
    columns = {f"PC{i + 1}": variables.contributions[order, i] for i in range(k)}
    titles = {name: f"Contribution to {name} in percent" for name in columns}
    equal = np.full(len(order), 100.0 / max(1, len(order)))
    live = Bars(
        [variables.names[i] for i in order],
        columns,
        titles,
        (Choice("Component", "y", list(columns), "PC1"),),
        [Line("if all columns were equal", dict.fromkeys(columns, equal))],
        "Column",
        "contribution",
    )
    return Chart(
        "contributions",
        "Contributions of columns",
        "A column's contribution is its squared entry in the component; all contributions to a component add "
        "up to 100 percent. Columns above the line contribute more than they would if all were equal.",
        lambda: pca_plots.contributions_figure(
            variables.contributions, variables.names, title.format("contributions")
        ),
        live,
    )
