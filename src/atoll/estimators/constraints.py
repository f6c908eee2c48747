"""What the options of an estimator may be, declared once and checked in one place.

A constraint goes with the name of an option. scikit-learn calls the same thing ``_parameter_constraints``.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from atoll.errors import ParameterError, one_of


@dataclass(frozen=True)
class Constraint:
    """Which values an option takes, and the words for whoever gave another one."""

    accepts: Callable[[Any], bool]
    refusal: str
    """May name ``{name}`` and ``{value!r}``."""
    hint: Callable[[Any], str | None] = lambda _: None

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that the option does not take."""
        if not self.accepts(value):
            raise ParameterError(self.refusal.format(name=name, value=value), hint=self.hint(value))


Constraints = Mapping[str, Constraint]

ANY = Constraint(lambda _: True, "")
"""Whatever it is: the protocol or the secure sum looks at it."""

FLAG = Constraint(lambda value: isinstance(value, bool | np.bool_), "{name}={value!r} must be True or False")


def among(values: Iterable[str], refusal: str) -> Constraint:
    """One of these words."""
    known = tuple(values)
    return Constraint(lambda value: value in known, refusal, lambda value: one_of(str(value), known))


def given(refusal: str, hint: str) -> Constraint:
    """Not left out."""
    return Constraint(lambda value: value is not None, refusal, lambda _: hint)


def is_whole(value: Any) -> bool:
    """A whole number; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """A number; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def plain_number(value: Any) -> int | float | None:
    """A number as a study can hold it."""
    if value is None:
        return None
    return int(value) if is_whole(value) else float(value)


def refuse_meaningless(estimator: Any, used: Iterable[str], where: str) -> None:
    """An option that was changed but cannot be used with the chosen protocol is an error."""
    for name, parameter in inspect.signature(type(estimator).__init__).parameters.items():
        if name == "self" or name in set(used):
            continue
        value = getattr(estimator, name)
        # Arrays do not compare to one answer, and are never a default.
        if isinstance(value, np.ndarray) or value != parameter.default:
            raise ParameterError(
                f"{name}={value!r} cannot be used with {where}",
                hint=f"leave {name} out, or choose another protocol",
            )
