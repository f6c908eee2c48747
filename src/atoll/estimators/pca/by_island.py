"""Tables of several islands in, their projections out: a mapping for a mapping, a list for a list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island, as_islands
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, NotReleased, SchemaError, several
from atoll.estimators.base import named_elsewhere
from atoll.protocols.own import Own

Matrix = npt.NDArray[np.float64]


def not_one_table() -> DataError:
    """For whoever needs one table: the next step of a pipeline, or ``np.asarray``."""
    return DataError(
        "the projections of several islands are not one table, which the next step needs",
        hint="a model of Atoll's as the next step, and one target for each island: fit(islands, [y1, y2]); "
        "or fit atoll.PCA by itself, then make_pipeline(FrozenEstimator(pca), model).fit(X, y) on rows that "
        "are in one place",
    )


class _NotOneTable:
    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise not_one_table()


class ByIsland(_NotOneTable, dict[str, Any]):
    """Projections by the island's name."""


class IslandByIsland(_NotOneTable, list[Any]):
    """Projections in the islands' order."""


class Projected(NamedTuple):
    """Projections that are there already, on their way through scikit-learn's output containers."""

    scores: Matrix


def are_islands(X: Any) -> bool:
    """Whether this is a mapping or list of tables rather than one table: rows of numbers are no tables."""
    if isinstance(X, Mapping):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(_is_table(value) for value in X)


def _is_table(value: Any) -> bool:
    if isinstance(value, str | Path | Island | Own) or hasattr(value, "columns"):
        return True
    try:
        return np.ndim(value) == 2
    except ValueError:  # rows of different lengths
        return False


def read_once(islands: Any) -> Any:
    """The same mapping or list with every table read; what owners handed in beside theirs stays there."""
    tables = as_islands(_bare(islands))
    if isinstance(islands, Mapping):
        return {n: _with_table(islands[n], t) for n, t in zip(islands, tables.values(), strict=True)}
    return [_with_table(value, table) for value, table in zip(islands, tables.values(), strict=True)]


def tables_of(islands: Any) -> dict[str, Island]:
    """By name; those of a list are numbered."""
    return as_islands(_bare(islands))


def _bare(islands: Any) -> Any:
    if isinstance(islands, Mapping):
        return {name: value.table if isinstance(value, Own) else value for name, value in islands.items()}
    if isinstance(islands, list | tuple):
        return [value.table if isinstance(value, Own) else value for value in islands]
    return islands


def _with_table(value: Any, table: Island) -> Any:
    from dataclasses import replace

    return replace(value, island=table) if isinstance(value, Own) else table


def features_of(tables: Mapping[str, Island], names: Any, width: int) -> dict[str, Matrix]:
    """The rows of every table in the columns of the fit; every table that has not got them is named."""
    problems, found = [], {}
    for name, table in tables.items():
        columns = table.columns if names is None else tuple(names)
        try:
            _check_columns(table, columns, width)
            found[name] = table.features(columns)
            if not np.isfinite(found[name]).all():
                raise_for_missing(table.chosen(columns))
        except DataError as error:
            problems.append(error)
    if problems:
        raise several(problems)
    return found


def _check_columns(table: Island, columns: tuple[str, ...], width: int) -> None:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise SchemaError(
            f"{table.name} lacks {', '.join(map(repr, missing[:5]))}, which the fit had",
            hint="hand in the columns of feature_names_in_",
        )
    if len(columns) != width:
        raise SchemaError(
            f"{table.name} has {len(columns)} columns, the fit had {width}", hint="hand in the same columns"
        )


def _check_targets(islands: Any, y: Any, partition: str) -> None:
    """One target for each island: then the next step is a model that takes islands, as Atoll's own do."""
    if partition == "vertical":
        raise DataError(
            "islands with columns of the same rows all get the same projections, which are no islands' rows",
            hint="scores = fit_transform(islands); a model of any kind takes one of them, and the target",
        )
    parts = list(y.values()) if isinstance(y, Mapping) else y
    if not isinstance(parts, list | tuple) or len(parts) != len(islands) or {*map(np.ndim, parts)} != {1}:
        raise not_one_table()


class Islands:
    """``transform`` and ``fit_transform`` for islands.

    Stands before the class whose ``transform`` takes one table, which scikit-learn wraps for ``set_output``;
    this one it must not wrap, since what comes out is not one table.
    """

    def transform(self, X: Any) -> Any:
        """Project rows on the joint components: one table, or a mapping or list of islands' tables, which
        gives the same with projections in place of tables."""
        if not are_islands(X):
            return super().transform(X)  # type: ignore[misc]
        adapter = self._fitted("transform")  # type: ignore[attr-defined]
        tables = tables_of(X)
        return self._packed(X, tables, adapter.project(self, tables))

    def fit_transform(self, islands: Any, y: Any = None) -> Any:
        """Fit, and project each island's own rows: a mapping for a mapping, a list for a list (the same for
        all islands where they hold columns of the same rows)."""
        if y is not None:  # a pipeline with a model at its end: refused before anything is spent on the fit
            _check_targets(islands, y, self.partition)  # type: ignore[attr-defined]
        adapter = self._adapter("fit_transform")  # type: ignore[attr-defined]  # refuses before a long run
        if named_elsewhere(islands, self.engine) is not None:  # type: ignore[attr-defined]
            raise NotReleased(
                "the rows of named islands are not here to be projected",
                hint="fit, then give each site the components; or a study that releases scores",
            )
        islands = read_once(islands)
        self.fit(islands)  # type: ignore[attr-defined]
        tables = tables_of(islands)
        return self._packed(islands, tables, adapter.transform_islands(self, tables))

    def _packed(self, islands: Any, tables: Mapping[str, Island], scores: list[Matrix]) -> Any:
        """Every island's projections in the container that ``set_output`` asks for, with its rows' labels."""
        packed = [self._contained(s, t) for s, t in zip(scores, tables.values(), strict=True)]
        if isinstance(islands, Mapping):
            return ByIsland(zip(islands, packed, strict=True))
        return IslandByIsland(packed)

    def _contained(self, scores: Matrix, table: Island) -> Any:
        if not hasattr(self, "n_components_"):  # no joint model that names could be of
            return scores
        made: Any = super().transform(Projected(scores))  # type: ignore[misc]
        if table.index is not None and hasattr(made, "set_axis"):
            made.index = table.index
        return made
