"""Things by name: those that Atoll brings, and those that installed packages bring (entry points).

Nothing is imported before it is asked for. Packages are searched only for a name that Atoll does not have, so
they can add names and never change what one of Atoll's means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from atoll.errors import MissingComponent

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """``group``: of entry points; ``what``: one such thing, in words; ``built_in``: "module:name" by name.

    Iterating gives the built-in names, and those of packages that were asked for.
    """

    def __init__(self, group: str, what: str, kind: type, built_in: Mapping[str, str]) -> None:
        self.group = group
        self._what, self._kind = what, kind
        self._built_in = dict(built_in)
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            if name in self._built_in:
                module, _, attribute = self._built_in[name].partition(":")
                self._loaded[name] = getattr(import_module(module), attribute)
            else:
                self._loaded[name] = self._from_package(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._built_in, *self._loaded)))

    def __len__(self) -> int:
        return len({*self._built_in, *self._loaded})

    def __contains__(self, name: object) -> bool:
        known = name in self._built_in or name in self._loaded
        return known or any(entry.name == name for entry in self._entries())

    def names(self) -> list[str]:
        """Every name that there is, also those of packages that nobody asked for yet."""
        return list(dict.fromkeys((*self, *(entry.name for entry in self._entries()))))

    def _entries(self) -> list[EntryPoint]:
        from importlib import metadata  # takes long to import, and built-in names do without it

        return list(metadata.entry_points(group=self.group))

    def _from_package(self, name: str) -> T:
        entries = self._entries()
        if not any(entry.name == name for entry in entries):
            raise KeyError(name)
        for entry in entries:
            if entry.name in self._built_in:
                raise MissingComponent(
                    f"{_package(entry)} brings {self._what} called {entry.name!r}, which Atoll has itself",
                    hint="remove the package, or have it choose another name",
                )
        found = [entry for entry in entries if entry.name == name]
        if len({entry.value for entry in found}) > 1:
            raise MissingComponent(
                f"{' and '.join(sorted(map(_package, found)))} both bring {self._what} called {name!r}",
                hint="remove one of them",
            )
        return self._checked(found[0])

    def _checked(self, entry: EntryPoint) -> T:
        try:
            thing: Any = entry.load()
        except Exception as error:
            raise MissingComponent(
                f"{self._what} called {entry.name!r} of {_package(entry)} cannot be loaded: "
                f"{type(error).__name__}: {error}",
                hint="install the package again, or ask its authors",
            ) from error
        fits = issubclass(thing, self._kind) if isinstance(thing, type) else isinstance(thing, self._kind)
        if not fits:
            raise MissingComponent(
                f"{entry.value} of {_package(entry)} is not {self._what}", hint="ask the package's authors"
            )
        found: T = thing
        return found


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name!r}" if entry.dist is not None else "a package"
