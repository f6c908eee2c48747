"""The repository keeps its own promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import atoll

ROOT = Path(__file__).parents[2]
PROTOCOLS = ROOT / "src" / "atoll" / "protocols"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

_TAG = re.compile(r"#\s*Alg (\d+), l\.(\d+)(?:-(\d+))?")
_ROW = re.compile(r"^\| Alg (\d+), l\.(\d+) \|", re.MULTILINE)


def tags(text: str) -> set[tuple[int, int]]:
    """Every algorithm line that a file's comments name; l.4-5 names two."""
    return {
        (int(algorithm), line)
        for algorithm, first, last in _TAG.findall(text)
        for line in range(int(first), int(last or first) + 1)
    }


TAGGED = [path for path in sorted(PROTOCOLS.rglob("*.py")) if tags(path.read_text())]


@pytest.mark.parametrize("path", TAGGED, ids=lambda path: str(path.relative_to(PROTOCOLS)))
def test_every_algorithm_line_is_explained(path: Path) -> None:
    # a protocol's folder has one page for all its forms
    folder = path.parent.parent if path.parent.name == "recipes" else path.parent
    protocol = path.stem if folder.name == "pca" else folder.name
    page = ROOT / "docs" / "protocols" / f"{protocol}.md"
    rows = {(int(algorithm), int(line)) for algorithm, line in _ROW.findall(page.read_text())}
    assert tags(path.read_text()) <= rows


def test_protocols_are_tagged() -> None:
    assert (2, 8) in tags((PROTOCOLS / "pca/pppca/protocol.py").read_text())
    assert {(1, line) for line in range(2, 12)} <= tags((PROTOCOLS / "pca/dpdpca/paper.py").read_text())
    assert {(1, line) for line in range(1, 9)} == tags((PROTOCOLS / "pca/sfpca/protocol.py").read_text())
    assert {(1, line) for line in range(2, 8)} == tags(
        (PROTOCOLS / "pca/sfpca/recipes/strict.py").read_text()
    )


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "explanation" / "dependencies.md").read_text()
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)]
    for requirement in wanted:
        package = re.split(r"[<>=!~\[; ]", requirement)[0]
        assert f"| `{package}` |" in page, package


def test_the_version_is_said_once_and_the_same() -> None:
    assert PROJECT["project"]["version"] == atoll.__version__
    assert f"## {atoll.__version__}" in (ROOT / "CHANGELOG.md").read_text()
