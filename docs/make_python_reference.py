"""Writes docs/reference/python.md from the docstrings of Atoll's public names.

    python docs/make_python_reference.py

A test compares the page with what this makes of the docstrings as they are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import atoll

PAGE = Path(__file__).parent / "reference" / "python.md"

INTRODUCTION = """# Python

Everything that `import atoll` gives. This page is made from the docstrings
(`python docs/make_python_reference.py`).
"""

ORDER = (
    "PCA",
    "GLM",
    "LinearRegression",
    "Ridge",
    "Lasso",
    "LogisticRegression",
    "LinearSVC",
    "KMeans",
    "GradientDescent",
    "PPCASynthesizer",
    "MarginalSynthesizer",
    "Summary",
    "describe",
    "align",
    "secure_sum",
    "Island",
    "LocalEngine",
    "NatsEngine",
    "Faults",
    "Study",
    "load_study",
    "Result",
    "load_result",
    "show_progress",
    "AtollError",
)


def page() -> str:
    """The whole page."""
    assert sorted(ORDER) == sorted(atoll.__all__)
    return "\n".join([INTRODUCTION, *(section(name) for name in ORDER)])


def section(name: str) -> str:
    """One public name, with its public methods."""
    thing = getattr(atoll, name)
    lines = [f"## `atoll.{name}`", "", *signature(name, thing), *text_of(thing), ""]
    if inspect.isclass(thing):
        for method, function in methods(thing):
            lines += [f"### `{method}{brief(function)}`", "", *text_of(function), ""]
    return "\n".join(lines)


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods that Atoll itself defines and explains, in the order of their definition."""
    seen: dict[str, Any] = {}
    for kind in thing.__mro__:
        if not kind.__module__.startswith("atoll."):
            continue
        for name, value in vars(kind).items():
            function = getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(function) and inspect.getdoc(function):
                seen.setdefault(name, function)
    yield from seen.items()


def signature(name: str, thing: Any) -> list[str]:
    """The call with all its options, one on each line where there are many."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []
    try:
        options = [str(p) for p in parameters(thing)]
    except ValueError:
        return []
    whole = f"    {name}({', '.join(options)})"
    if len(whole) > 110:
        whole = f"    {name}(\n" + "".join(f"        {option},\n" for option in options) + "    )"
    return [whole, ""]


def parameters(thing: Any) -> list[str]:
    """As they are written in a call; types are the docstring's matter."""
    options, named = [], False
    for p in inspect.signature(thing).parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not named:
            named = True
            options.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        options.append(f"{star}{p.name}" if p.default is p.empty else f"{p.name}={p.default!r}")
        named = named or p.kind is p.VAR_POSITIONAL
    return options


def brief(function: Any) -> str:
    """A method's options."""
    return f"({', '.join(parameters(function))})"


def text_of(thing: Any) -> list[str]:
    """A docstring as Markdown: options as a list, examples as a block that tests run."""
    lines: list[str] = []
    for title, body in parts(inspect.getdoc(thing) or ""):
        if title == "Examples" or any(line.startswith(">>>") for line in body):
            lines += example(body)
        elif title:
            lines += [f"**{title}**", "", *listed(body), ""]
        else:
            lines += [plain(line) for line in body]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """Sections of a docstring, which have a title underlined with hyphens; examples are one of their own."""
    title, body = "", list[str]()
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        underlined = i + 1 < len(lines) and set(lines[i + 1]) == {"-"} and lines[i].strip()
        starts_example = not title and lines[i].startswith(">>>")
        leaves = title in ("Parameters", "Attributes") and body and not body[-1] and _is_prose(lines, i)
        if underlined or starts_example or leaves:
            yield title, body
            title, body = (lines[i], []) if underlined else ("Examples" if starts_example else "", [])
            i += 2 if underlined else 0
            if underlined:
                continue
        body.append(lines[i])
        i += 1
    yield title, body


def _is_prose(lines: list[str], i: int) -> bool:
    """Whether a line begins a paragraph rather than an option, which an indented line follows."""
    following = lines[i + 1] if i + 1 < len(lines) else ""
    return bool(lines[i]) and not lines[i].startswith(" ") and not following.startswith(" ")


def listed(body: list[str]) -> list[str]:
    """Options: a name with its type, and lines below that explain it."""
    lines = []
    for line in body:
        if line.startswith("    "):
            lines.append(f"  {plain(line.strip())}")
        elif line:
            name, _, kind = line.partition(" : ")
            lines.append(f"- **`{name}`**" + (f" ({plain(kind)})" if kind else ""))
    return lines


def example(body: list[str]) -> list[str]:
    """What was typed, and what it gave as a comment."""
    block = []
    for line in body:
        if line.startswith((">>> ", "... ")):
            if block and _imports(block[-1]) and not _imports(line[4:]):
                block.append("")  # as the formatter has it
            block.append(line[4:])
        elif line:
            block.append(f"# {line}")
    return ["", "```python", *block, "```", ""]


def _imports(line: str) -> bool:
    return line.startswith(("import ", "from "))


def plain(line: str) -> str:
    """Without the marks of reStructuredText."""
    line = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", line)
    return line.replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
