"""The numbers and names that promises rest on, literally: widths of masks, sizes of keys, limits, domains.

A test that imports the constant which it checks moves along with it. Whoever changes one of these changes
it here too, and what documents say of it; what is new is written down by

    python -m tests.meta.test_constants
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "atoll"
KEPT = Path(__file__).with_name("constants.json")
WHERE = (
    *("codec.py", "crypto", "data", "fixedpoint.py", "network.py", "privacy", "protocols", "randomness.py"),
    *("review", "runtime", "secret_matrices", "secret_numbers", "secure_sums", "study"),
)
BUT = ("privacy/lab", "protocols/pca/sfpca/paper", "secret_matrices/costs")
"""What is measured, simulated or published is described elsewhere."""
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
_PLAIN = (
    ast.Expression,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.Tuple,
    ast.Load,
)


def _value(written: ast.expr | None) -> Any:
    """What an expression of nothing but literals is worth; None of any other, of nothing and of sentences."""
    if written is None or not all(isinstance(node, _PLAIN) for node in ast.walk(written)):
        return None
    try:
        found = eval(compile(ast.Expression(written), "constant", "eval"), {"__builtins__": {}})
    except (TypeError, ZeroDivisionError):
        return None
    plain = isinstance(found, int | float | bytes | str | tuple) and not isinstance(found, bool)
    sentence = isinstance(found, str) and found.count(" ") > 3
    return repr(found) if plain and found and not sentence else None


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _of(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, written in _assigned(tree.body):
        if _NAME.fullmatch(name) and (value := _value(written)) is not None:
            yield name, value
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for name, written in _assigned(kind.body):
            value = _value(written)
            if value is not None and not isinstance(ast.literal_eval(value), str):
                yield f"{kind.name}.{name}", value
            elif isinstance(written, ast.Constant) and isinstance(written.value, bool):
                yield f"{kind.name}.{name}", repr(written.value)
    yield from _defaults(tree.body, "")


def _defaults(body: list[ast.stmt], of: str) -> Iterator[tuple[str, str]]:
    """What a call does where nobody says otherwise: numbers, and yes or no."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _defaults(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            late = zip(given.args[len(given.args) - len(given.defaults) :], given.defaults, strict=True)
            for one, written in (*late, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
                if isinstance(written, ast.Constant) and isinstance(written.value, int | float):
                    yield f"{of}{node.name}({one.arg})", repr(written.value)


def constants() -> dict[str, str]:
    """Module and name -> the value of every constant, and of every field's default that is a number."""
    paths = [path for name in WHERE for path in sorted({SOURCE / name, *(SOURCE / name).rglob("*.py")})]
    files = {path: str(path.relative_to(SOURCE)) for path in paths if path.suffix == ".py"}
    return {
        f"{name}: {constant}": value
        for path, name in files.items()
        if not name.startswith(BUT)
        for constant, value in _of(path)
    }


def test_what_promises_rest_on_is_as_it_is_written_here() -> None:
    kept, found = json.loads(KEPT.read_text(encoding="utf-8")), constants()
    assert {name: found.get(name) for name in kept} == kept


def test_the_list_is_of_what_there_is() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert len(kept) > 350
    assert kept["randomness.py: SEED_BYTES"] == "32"
    assert kept["protocols/pca/sfpca/recipes/direct.py: SMUDGE_MARGIN"] == "52"


if __name__ == "__main__":
    KEPT.write_text(json.dumps(constants(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
