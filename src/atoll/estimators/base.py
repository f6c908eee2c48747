"""What all estimators share: options that must mean something, studies built from islands, runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from atoll.data.island import Island
from atoll.errors import ParameterError
from atoll.runtime.execute import Run, run_study
from atoll.study.model import Party, Study


def refuse_meaningless(estimator: Any, used: Iterable[str], where: str) -> None:
    """An option that was changed but means nothing to the chosen protocol is an error."""
    for name, parameter in inspect.signature(type(estimator).__init__).parameters.items():
        if name == "self" or name in set(used):
            continue
        value = getattr(estimator, name)
        # Identity first: a default may be something that does not compare, such as an array.
        if value is not parameter.default and value != parameter.default:
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
    return run_study(study, islands, engine=engine)
