"""The engines by name: those of this package, and those that others register.

A package registers an engine under the entry point group ``atoll.engines``: a name, and a class derived
from :class:`~atoll.runtime.engine.Engine` that can be made without arguments.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from atoll.errors import ParameterError, one_of
from atoll.runtime.engine import Engine
from atoll.runtime.local.engine import LocalEngine

GROUP = "atoll.engines"

ENGINES: dict[str, type[Engine]] = {"local": LocalEngine}


def engine_names() -> tuple[str, ...]:
    """Every name that :func:`engine_of` knows."""
    return tuple(dict.fromkeys([*ENGINES, *(point.name for point in entry_points(group=GROUP))]))


def engine_of(name: str) -> Engine:
    """A new engine of this name; a name of this package is never another's."""
    if name in ENGINES:
        return ENGINES[name]()
    for point in entry_points(group=GROUP, name=name):
        found = point.load()
        if not (isinstance(found, type) and issubclass(found, Engine)):
            raise ParameterError(
                f"the engine {name!r} is registered as {point.value}, which is not an engine",
                hint="a class derived from atoll.runtime.engine.Engine",
            )
        return found()
    raise ParameterError(f"there is no engine called {name!r}", hint=one_of(name, engine_names()))
