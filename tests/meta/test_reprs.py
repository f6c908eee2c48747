"""What is seen when somebody looks at an object, or when it stands in a log: every ``__repr__`` there is.

Each is called with an object that answers to every name with that name, so that the texts below say which
parts of an object are shown. A class that hides something stands here, and is missed if it stops.
"""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "atoll"
SHOWN = Path(__file__).with_name("reprs.json")


class Named:
    """Shows where it comes from, whatever is done with it."""

    def __init__(self, path: str) -> None:
        self.__dict__["path"] = path

    def __getattr__(self, name: str) -> Named:
        return Named(f"{self.path}.{name}".lstrip("."))

    def __call__(self, *_: Any, **__: Any) -> Named:
        return Named(f"{self.path}()")

    def __getitem__(self, key: Any) -> Named:
        return Named(f"{self.path}[{key}]")

    def __iter__(self) -> Iterator[Named]:
        return iter([Named(f"{self.path}[]")])

    def __len__(self) -> int:
        return 7

    def keys(self) -> list[str]:
        return []

    def __format__(self, form: str) -> str:
        return f"‹{self.path}›"

    def __repr__(self) -> str:
        return f"‹{self.path}›"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


def classes() -> Iterator[tuple[str, str]]:
    """Module and name of every class that says itself how it is shown."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(("atoll", *path.relative_to(SOURCE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(one, ast.FunctionDef) and one.name == "__repr__" for one in node.body
            ):
                yield module.removesuffix(".__init__"), node.name


def shown(module: str, name: str) -> str:
    kind = getattr(importlib.import_module(module), name)
    try:
        said: str = kind.__repr__(Named(""))
    except Exception as error:
        said = f"{type(error).__name__} of a part that is a name"
    return said


def test_every_object_is_shown_as_it_was() -> None:
    known = json.loads(SHOWN.read_text(encoding="utf-8"))
    assert {f"{module}.{name}": shown(module, name) for module, name in classes()} == known
