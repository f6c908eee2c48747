"""Which columns a fit uses: ``columns`` and ``label`` of an estimator, as a study's parameters hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atoll.data.island import Island
from atoll.errors import ParameterError, SchemaError
from atoll.estimators.constraints import Constraint

COLUMNS = Constraint(
    lambda value: value is None or _is_names(value),
    "{name}={value!r} must be a list of names, none twice",
    lambda _: "columns=['age', 'dose']",
)
LABEL = Constraint(
    lambda value: value is None or isinstance(value, str),
    "{name}={value!r} must be the name of a column",
    lambda _: "label='outcome'",
)


def _is_names(value: Any) -> bool:
    """A sequence of distinct names; scikit-learn's and pandas' arrays of names are sequences too."""
    if isinstance(value, str | Mapping) or not hasattr(value, "__len__"):
        return False
    names = list(value)
    return bool(names) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)


def column_parameters(
    estimator: Any, islands: Mapping[str, Island], *, labels: bool = False
) -> dict[str, Any]:
    """``columns``, and ``label`` where the protocol knows labels (``labels``).

    A label is no feature, whether or not the protocol knows what a label is: then the columns are all
    others.
    """
    columns = None if estimator.columns is None else tuple(str(name) for name in estimator.columns)
    label = estimator.label
    if label is None:
        return {} if columns is None else {"columns": columns}
    if columns is not None and label in columns:
        raise ParameterError(f"the label {label!r} cannot be among the columns", hint="leave it out")
    vertical = estimator.partition == "vertical"
    _check_label(label, islands, everywhere=not vertical)
    named = all(table.named for table in islands.values())
    if vertical and columns is None and not named:
        raise ParameterError("a label needs columns with names", hint="hand in frames, or name the columns")
    if columns is None and not (labels and named):
        tables = islands.values() if vertical else [next(iter(islands.values()))]
        columns = tuple(name for table in tables for name in table.columns if name != label)
    return ({} if columns is None else {"columns": columns}) | ({"label": label} if labels else {})


def _check_label(label: str, islands: Mapping[str, Island], *, everywhere: bool) -> None:
    without = [name for name, table in islands.items() if label not in table.columns]
    if without and (everywhere or len(without) == len(islands)):
        raise SchemaError(
            f"there is no label column {label!r} in {', '.join(without)}",
            hint="label names a column that every island has" if everywhere else "one island needs it",
        )


def labels_of(estimator: Any, islands: Mapping[str, Island]) -> dict[str, Sequence[Any]] | None:
    """The labels of every island's rows, where the estimator names a label."""
    if estimator.label is None:
        return None
    _check_label(estimator.label, islands, everywhere=True)
    return {name: _plain(*table.labels(estimator.label)) for name, table in islands.items()}


def _plain(values: Any, classes: Sequence[str]) -> list[Any]:
    return [classes[code] for code in values] if classes else list(values.tolist())
