"""What all estimators share: parties made of islands, runs, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from atoll.data.island import Island
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, MissingIslands, ParameterError, SchemaError, several
from atoll.estimators.progress import progress_line
from atoll.protocols.own import Own
from atoll.runtime.engine import Engine
from atoll.runtime.execute import Run, run_study
from atoll.study.model import Party, Study, TablePlan


def beside_islands(data: Any) -> tuple[Any, dict[str, Own]]:
    """Islands' data, and apart from it what their owners handed in as :class:`Own`, by island."""
    if isinstance(data, Mapping):
        brought = {str(name): value for name, value in data.items() if isinstance(value, Own)}
        return {n: v.table if isinstance(v, Own) else v for n, v in data.items()}, brought
    if isinstance(data, list | tuple):
        brought = {f"island-{i}": value for i, value in enumerate(data) if isinstance(value, Own)}
        return [v.table if isinstance(v, Own) else v for v in data], brought
    return data, {}


@contextmanager
def all_named(tables: Mapping[str, Island], study: Study) -> Iterator[None]:
    """A run ends at the first table with a missing value or text: look at all tables, and name every one."""
    try:
        yield
    except SchemaError:
        raise
    except DataError as error:
        if study.table != TablePlan():  # missing values are the study's business then
            raise
        problems = [problem for table in tables.values() if (problem := _wrong(table, study)) is not None]
        if len(problems) < 2:
            raise
        raise several(problems) from error


def _wrong(table: Island, study: Study) -> DataError | None:
    columns, label = study.parameters.get("columns"), study.parameters.get("label")
    chosen = [c for c in table.columns if c != label and (columns is None or c in columns)]
    try:
        raise_for_missing(table.chosen(chosen))
    except DataError as error:
        return error
    return None


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A party name that no island has."""
    return wanted if wanted not in set(taken) else free_name(f"{wanted}-role", taken)


def parties(islands: Mapping[str, Island], island_role: str, *others: str) -> tuple[Party, ...]:
    """Every island as one party, and one party for each other role."""
    holders = [Party(name, (island_role,)) for name in islands]
    return (*holders, *(Party(free_name(role, islands), (role,)) for role in others))


def run(study: Study, own: Mapping[str, Own], engine: Any) -> Run:
    """Run a study on the estimator's engine."""
    if engine is not None and not isinstance(engine, Engine):
        raise ParameterError(f"engine={engine!r} is not an engine", hint="atoll.LocalEngine(), or None")
    with progress_line(study.name) as progress:
        return run_study(study, own, engine=engine, progress=progress)


def named_elsewhere(islands: Any, engine: Any) -> dict[str, Island] | None:
    """Islands that are only named, because the engine leaves their tables where they are; else None."""
    if not getattr(engine, "elsewhere", False):
        return None
    if not isinstance(islands, list | tuple) or not all(isinstance(name, str) for name in islands):
        raise ParameterError(
            "this engine leaves tables where they are", hint="name the islands: fit(['a', 'b'])"
        )
    if len(set(islands)) < len(islands):
        raise ParameterError("an island is named twice")
    return {name: Island(np.empty((0, 0)), name=name) for name in islands}


def warn_of_missing(given: Iterable[str], present: Iterable[str]) -> None:
    """Islands that left must not go unnoticed."""
    gone = [name for name in given if name not in set(present)]
    if gone:
        warnings.warn(f"{', '.join(gone)} left; the result is of the others", MissingIslands, stacklevel=4)
