"""Who may know whom: protocols by name, in few places; and how large anything may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from atoll.protocols import PROTOCOLS

SOURCE = Path(__file__).parents[2] / "src" / "atoll"

NAMES = ("pppca", "sfpca", "dpdpca", "privatelocal")


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
    assert set(NAMES) < set(PROTOCOLS)


MAY_IMPORT = ("protocols", "estimators", "report/analyses")
MEASURES_A_PROTOCOL = {"bench/calibrate.py"}
"""It times what SF-PCA does with an island's own table."""


def test_protocols_are_imported_by_name_in_few_places() -> None:
    found = set()
    for path in sources("."):
        name = str(path.relative_to(SOURCE))
        if name.startswith(MAY_IMPORT):
            continue
        for module in imported(path):
            if module.startswith("atoll.protocols.") and set(module.split(".")) & {*NAMES, "baselines"}:
                found.add(name)
    assert found == MEASURES_A_PROTOCOL


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
