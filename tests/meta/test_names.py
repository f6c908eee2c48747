"""What a module may know by name: secure sums are asked what they do, not what they are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from atoll import secure_sums

SOURCE = Path(__file__).parents[2] / "src" / "atoll"

ALLOWED = {
    "study/model.py": {"shares"},  # the secure sum of a study that names none
    "cli/hospitals.py": {"shares"},  # a study file, as text
}
"""Who may name which."""

GENERAL = {"base", "graph"}
"""Modules of secure sums that belong to no method."""


def outside() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        # Estimators have defaults, and say them in their signatures.
        if not name.startswith(("secure_sums/", "estimators/")):
            yield name, ast.parse(path.read_text())


def said(tree: ast.Module) -> Iterator[str]:
    """Texts other than docstrings, which explain and decide nothing."""
    explained = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield node.value


def test_no_secure_sum_is_known_by_name() -> None:
    named: dict[str, set[str]] = {}
    for path, tree in outside():
        for text in said(tree):
            for name in secure_sums.METHODS:
                if text == name or re.search(rf"secure_sum\s*=\s*[\"']{name}[\"']", text):
                    named.setdefault(path, set()).add(name)
    assert named == ALLOWED


def test_nobody_imports_the_module_of_one_secure_sum() -> None:
    found = []
    for path, tree in outside():
        for node in ast.walk(tree):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                if module.startswith("atoll.secure_sums.") and module.split(".")[2] not in GENERAL:
                    found.append((path, module))
    assert found == []
