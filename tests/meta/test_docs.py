"""What the documentation shows is run: Python blocks, ``atoll`` commands and study files.

Each page is worked through from top to bottom in an empty folder. ``python`` blocks are executed in one
namespace; lines of ``sh`` blocks that begin with ``atoll`` are run (``sh fails``: must end with an error);
a block whose first line is ``# file: NAME`` is saved under that name, where it can be imported; what a saved
``pyproject.toml`` registers is installed. ``python in FILE`` blocks are lines for a file of Atoll's own
(tests/contract/test_extend.py makes the change).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.packages import install_project
from tests.support.running import atoll

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(kind.strip(), text) for kind, text in _FENCE.findall(page.read_text())]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_the_blocks_of_a_page_work(page: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    monkeypatch.setenv("ATOLL_HOME", str(site / "home"))
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    said = ""
    for block in blocks(page):
        if save(block.text):
            continue
        if block.kind == "python":
            exec(compile(block.text, name(page), "exec"), namespace)
        elif block.kind in ("sh", "sh fails"):
            said = run_commands(block)
        elif block.kind.startswith("python in "):
            assert (ROOT / block.kind.removeprefix("python in ")).is_file()
        elif " on " in block.kind or block.kind.endswith((" by hand", " carried")) or " as " in block.kind:
            pass  # tests/runtime/nats/test_three_machines.py follows these
        elif block.kind == "toml":
            pass  # a part of a file, to be looked at
        elif block.kind == "text":
            assert block.text in said, "a page shows output that the command above it does not print"
        else:
            pytest.fail(f"{name(page)}: a block of the kind {block.kind!r} is not tested")


def run_commands(block: Block) -> str:
    said = ""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["atoll"]:
            finished = atoll(*words[1:])
            assert (finished.code != 0) == (block.kind == "sh fails"), finished.err
            said += finished.out + finished.err
    return said


def save(text: str) -> bool:
    """Whether the block is a file."""
    first = text.splitlines()[0]
    if not first.startswith("# file: "):
        return False
    path = Path(first.removeprefix("# file: "))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if path.name == "pyproject.toml":
        install_project(path)
    return True


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name(page)} links to {target}"


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    listed = re.findall(r"│ (\w+) ", atoll("--help").out.split("Commands")[1])
    assert listed
    for command in listed:
        section = page.split(f"## `atoll {command}")[1].split("\n## ")[0]
        options = set(re.findall(r"(--[a-z]+)", atoll(command, "--help").out)) - {"--help"}
        for option in options:
            assert option in section, f"atoll {command} {option} is not in docs/reference/cli.md"
