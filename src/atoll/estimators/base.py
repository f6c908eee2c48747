"""What all estimators share: options that must mean something, studies built from islands, runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from atoll.data.island import Island
from atoll.errors import MissingIslands, ParameterError
from atoll.runtime.execute import Run, run_study
from atoll.study.model import Party, Study


def refuse_meaningless(estimator: Any, used: Iterable[str], where: str) -> None:
    """An option that was changed but means nothing to the chosen protocol is an error."""
    for name, parameter in inspect.signature(type(estimator).__init__).parameters.items():
        if name == "self" or name in set(used):
            continue
        value = getattr(estimator, name)
        # Arrays do not compare to one answer, and are never a default.
        if isinstance(value, np.ndarray) or value != parameter.default:
            raise ParameterError(
                f"{name}={value!r} means nothing to {where}",
                hint=f"leave {name} out, or choose another protocol",
            )


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A party name that no island has."""
    return wanted if wanted not in set(taken) else free_name(f"{wanted}-role", taken)


def parties(islands: Mapping[str, Island], island_role: str, *others: str) -> tuple[Party, ...]:
    """Every island as one party, and one party for each other role."""
    holders = [Party(name, (island_role,)) for name in islands]
    return (*holders, *(Party(free_name(role, islands), (role,)) for role in others))


def run(study: Study, islands: Mapping[str, Island], engine: Any) -> Run:
    """Run a study on the estimator's engine."""
    if engine is not None and not hasattr(engine, "run"):
        raise ParameterError(f"engine={engine!r} is not an engine", hint="atoll.LocalEngine(), or None")
    return run_study(study, islands, engine=engine)


def warn_of_missing(given: Iterable[str], present: Iterable[str]) -> None:
    """Islands that left must not go unnoticed."""
    gone = [name for name in given if name not in set(present)]
    if gone:
        warnings.warn(f"{', '.join(gone)} left; the result is of the others", MissingIslands, stacklevel=4)
