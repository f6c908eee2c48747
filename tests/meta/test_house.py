"""Who may know whom: protocols by name, in few places; and how large anything may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.protocols import PROTOCOLS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "atoll"

ALSO_WORDS = {"align", "describe", "meta", "separate", "sum"}
"""Names of protocols that mean something else as well."""

NAMES = sorted(set(PROTOCOLS) - ALSO_WORDS)


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((SOURCE / folder).rglob("*.py"))]


# ---- protocols by name ----

THE_DEMO = "cli/hospitals.py"
"""Whose study names its protocol, once."""


def test_commands_engines_reviews_and_reports_name_no_protocol() -> None:
    found = {}
    for path in sources("cli", "runtime", "review", "report"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith("report/analyses/"):
            said = re.findall("|".join(NAMES), path.read_text(), re.IGNORECASE)
            found |= {name: len(said)} if said else {}
    assert found == {THE_DEMO: 1}


def test_the_names_looked_for_are_protocols() -> None:
    assert {"pppca", "sfpca", "dpdpca", "privatelocal"} <= set(NAMES)
    assert set(PROTOCOLS) >= ALSO_WORDS


MAY_IMPORT = ("protocols", "estimators", "report/analyses")


def test_protocols_are_imported_by_name_in_few_places() -> None:
    found = set()
    for path in sources("."):
        name = str(path.relative_to(SOURCE))
        if name.startswith(MAY_IMPORT):
            continue
        for module in imported(path):
            if module.startswith("atoll.protocols.") and set(module.split(".")) & {*NAMES, "baselines"}:
                found.add(name)
    assert found == set()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# ---- sizes ----

MOST_LINES = {"module": 500, "function": 60}

PYTHON = ("src", "tests", "benchmarks", "reproduce")
"""Folders whose modules are held to these sizes; Go's are too."""


def written(suffix: str, *folders: str) -> dict[str, str]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob(f"*{suffix}"))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def test_no_module_is_long() -> None:
    lengths = {
        name: len(text.splitlines())
        for name, text in (written(".py", *PYTHON) | written(".go", "go")).items()
    }
    assert len(lengths) > 350
    assert {name: n for name, n in lengths.items() if n > MOST_LINES["module"]} == {}


def test_no_function_is_long() -> None:
    """Counted from its first line to its last, docstring included."""
    lengths = {}
    for path, text in written(".py", *PYTHON).items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lengths[path, node.name, node.lineno] = (node.end_lineno or 0) - node.lineno + 1
    assert len(lengths) > 3000
    assert {name: n for name, n in lengths.items() if n > MOST_LINES["function"]} == {}


def test_no_function_of_go_is_long() -> None:
    """gofmt puts the brace that ends a function, and no other of its braces, at the start of a line."""
    lengths = {}
    for path, text in written(".go", "go").items():
        for found in re.finditer(r"^func [^\n]*(?<!\})\n.*?^\}$", text, re.MULTILINE | re.DOTALL):
            lengths[path, found[0].splitlines()[0]] = len(found[0].splitlines())
    assert len(lengths) > 400
    assert {name: n for name, n in lengths.items() if n > MOST_LINES["function"]} == {}


# ---- nothing is written twice ----

SAME_LINES = 10


def test_no_ten_lines_stand_in_two_places() -> None:
    """Blank lines and indentation apart: what two places need has one home, and both use it."""
    places: dict[tuple[str, ...], list[str]] = {}
    for name, text in written(".py", "src").items():
        lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        for i in range(len(lines) - SAME_LINES + 1):
            run = lines[i : i + SAME_LINES]
            places.setdefault(tuple(line for _, line in run), []).append(f"{name}:{run[0][0]}")
    assert len(places) > 15_000
    assert [where for where in places.values() if len(where) > 1] == []


# ---- every package says what its modules are ----

_MODULE = re.compile(r":mod:`(\w+)`")  # a name with a dot is a module of another package

PACKAGES = [path.parent for path in sources(".") if path.name == "__init__.py"]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(SOURCE.parent)))
def test_a_package_says_what_each_of_its_modules_is(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    named = _MODULE.findall(docstring)
    assert sorted(set(named)) == sorted(modules | packages)
    assert len(docstring.splitlines()[0].split()) > 2


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(SOURCE.parent)))
def test_it_names_them_in_the_order_in_which_they_use_each_other(package: Path) -> None:
    """Whoever reads the list from its top meets nothing that uses what comes later."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    named = list(dict.fromkeys(_MODULE.findall(docstring)))
    prefix = ".".join(package.relative_to(SOURCE.parent).parts) + "."
    for place, name in enumerate(named):
        module, folder = package / f"{name}.py", package / name
        for path in [module] if module.exists() else folder.rglob("*.py"):
            used = {m.removeprefix(prefix).split(".")[0] for m in at_import(path) if m.startswith(prefix)}
            assert used & set(named[place + 1 :]) == set(), path.name


def at_import(path: Path) -> Iterator[str]:
    """What a module needs before it can be imported: not what functions import, nor what types need."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
