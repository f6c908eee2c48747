"""The engines by name: those of this package, and those that others register.

A package registers an engine under the entry point group ``atoll.engines``: a name, and a class derived
from :class:`~atoll.runtime.engine.Engine` that can be made without arguments.
"""

from __future__ import annotations

from atoll.errors import ParameterError, one_of
from atoll.registry import Registry
from atoll.runtime.engine import Engine

ENGINES: Registry[type[Engine]] = Registry(
    "atoll.engines",
    "an engine",
    Engine,
    {"local": "atoll.runtime.local.engine:LocalEngine", "nats": "atoll.runtime.nats.engine:NatsEngine"},
)


def engine_of(name: str) -> Engine:
    """A new engine of this name."""
    if name not in ENGINES:
        raise ParameterError(f"there is no engine called {name!r}", hint=one_of(name, ENGINES.names()))
    return ENGINES[name]()
