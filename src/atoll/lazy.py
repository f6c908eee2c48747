"""Packages that take long to import, and that only some commands use.

``atoll review`` needs neither pandas nor SciPy, which take several times as long to import as all of Atoll.
A module that uses them writes ::

    if TYPE_CHECKING:
        import pandas as pd
    else:
        pd = lazy("pandas")
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


def lazy(name: str) -> Any:
    """The module called ``name``, imported when one of its names is first used."""
    return _Lazy(name)


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)  # the next use does not come here
        return value
