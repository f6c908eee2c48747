"""How a fit prepares tables, and how the fitted model prepares those that it projects: in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from atoll.data.island import Island, Matrix, as_island
from atoll.data.prepared import PreparedTable, terms
from atoll.errors import DataError, SchemaError
from atoll.estimators.constraints import Constraint, Constraints, among
from atoll.estimators.pca.columns import COLUMNS
from atoll.runtime.execute import Run
from atoll.study.model import Study, TablePlan

_LEVELS = Constraint(
    lambda value: value is None or isinstance(value, Mapping),
    "{name}={value!r} must name the levels of columns",
    lambda _: "levels={'sex': ['F', 'M']}",
)

TABLE_OPTIONS: Constraints = {
    "categorical": COLUMNS,
    "levels": _LEVELS,
    "missing": among(("refuse", "drop", "mean", "allele frequency"), "{name}={value!r} is not possible"),
    "flat": among(("ignore", "zeros", "drop"), "{name}={value!r} is not possible"),
}


def with_plan(estimator: Any, study: Study) -> Study:
    """The study with what the estimator says of tables; the columns then stand there."""
    stated = TablePlan(
        categorical=tuple(estimator.categorical or ()),
        levels={str(k): tuple(map(str, v)) for k, v in (estimator.levels or {}).items()},
        missing=estimator.missing,
        flat=estimator.flat,
    )
    if stated == TablePlan():
        return study
    parameters = dict(study.parameters)
    plan = structs.replace(stated, columns=parameters.pop("columns", None))
    release = dict(study.release)
    if plan.exchanges:
        holder = study.parties[0].roles[0]
        release["table"] = release.get("components", (holder,))
    return structs.replace(study, table=plan, parameters=parameters, release=release)


def take_table(estimator: Any, run: Run) -> None:
    """What projecting further rows takes, where tables were prepared."""
    plan = run.result.study.table
    if plan == TablePlan():
        return
    levels = {name: tuple(plan.levels[name]) for name in plan.categorical if name in plan.levels}
    known: dict[str, Any] = {"levels": levels, "fill": {}, "flat": ()}
    if "table" in run.result:
        known |= run.result["table"]
    estimator.table_ = known


def prepared(estimator: Any, island: Island) -> Island:
    """An island whose table is prepared as those of the fit were; rows with missing values stay, as nan."""
    said = estimator.table_
    levels = {name: tuple(known) for name, known in said["levels"].items()}
    names = [str(name) for name in estimator.feature_names_in_]
    categories = {f"{name}[{level}]": name for name, known in levels.items() for level in known}
    columns = tuple(dict.fromkeys(categories.get(name, name) for name in names))
    lacking = [column for column in columns if column not in island.columns]
    if lacking:
        raise SchemaError(
            f"{island.name} lacks {lacking[0]!r}, which the fit had", hint="hand in the columns of the fit"
        )
    island.check_numbers([column for column in columns if column not in levels])
    made = {term.name: term for term in terms(columns, levels)}
    beside = [] if estimator.label is None or estimator.label not in island.columns else [estimator.label]
    table = PreparedTable(
        island, [made[name] for name in names], levels, beside=beside, fill=dict(said["fill"])
    )
    return island.with_table(table)


def prepared_islands(estimator: Any, islands: Mapping[str, Island]) -> Mapping[str, Island]:
    """The same for several; as they are where the fit prepared nothing."""
    if not hasattr(estimator, "table_"):
        return islands
    return {name: prepared(estimator, island) for name, island in islands.items()}


def prepared_rows(estimator: Any, X: Any) -> Matrix:
    """The rows of one table, as numbers."""
    island = prepared(estimator, as_island("the table", X))
    names = [str(name) for name in estimator.feature_names_in_]
    from atoll.data.statistics import raise_for_missing

    if not island.n_rows:
        raise DataError("the table has no rows")
    raise_for_missing(island.chosen(names))
    return island.features(names)
