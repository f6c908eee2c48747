"""What the documentation names is there: source files, modules and pages."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

_PATH = re.compile(r"(?<![\w/.-])(?:src/atoll|docs|tests|go)/[\w/.-]*\w")
_MODULE = re.compile(r"(?<![\w./-])(?:atoll|benchmarks)(?:\.[A-Za-z_]\w*)+")
_IN_ATOLL = re.compile(r"`((?:[a-z_]+/)*[a-z_]+(?:/|\.py))`")
_ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"

ENTRY_POINTS = {
    "atoll.analyses",
    "atoll.costs",
    "atoll.engines",
    "atoll.estimators.pca",
    "atoll.protocols",
    "atoll.readers",
    "atoll.secure_sums",
}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def is_there(dotted: str) -> bool:
    """A module, or what a module has."""
    parts, rest = dotted.split("."), list[str]()
    while parts:
        try:
            found = import_module(".".join(parts))
        except ModuleNotFoundError:
            rest.insert(0, parts.pop())
            continue
        for attribute in rest:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def missing(text: str) -> list[str]:
    paths = [path for path in _PATH.findall(text) if not (ROOT / path).exists()]
    modules = [one for one in _MODULE.findall(text) if one not in ENTRY_POINTS and not is_there(one)]
    return sorted({*paths, *modules})


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_and_modules_of_a_page_exist(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_the_architecture_names_files_that_exist() -> None:
    named = set(_IN_ATOLL.findall(_ARCHITECTURE.read_text())) - {"go/", "__init__.py"}
    assert len(named) > 30
    inside = [ROOT / "src" / "atoll", ROOT / "src" / "atoll" / "secret_matrices"]
    assert sorted(one for one in named if not any((top / one).exists() for top in inside)) == []


def test_the_architecture_names_every_package_and_entry_point() -> None:
    text = _ARCHITECTURE.read_text()
    packages = [path.parent.name for path in (ROOT / "src" / "atoll").glob("*/__init__.py")]
    assert len(packages) > 10
    assert [one for one in packages if f"`{one}/`" not in text] == []
    source = "".join(path.read_text() for path in (ROOT / "src" / "atoll").rglob("*.py"))
    for group in ENTRY_POINTS:
        assert f"`{group}`" in text
        assert f'"{group}"' in source


@pytest.mark.parametrize(
    "text",
    ["src/atoll/sfpca/machine.py", "`docs/howto/nothing.md`", "atoll.protocols.sfpca", "atoll.PCA.fitt"],
)
def test_what_is_not_there_is_found(text: str) -> None:
    assert missing(f"See {text}, which was moved.") == [text.strip("`")]
