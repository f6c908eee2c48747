"""The lists of tests/mutants stay true: every edit can still be made, and says who should notice it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.mutants import Mutant, listed, problem_of

MUTANTS = listed()

AREAS = {
    "cli",
    "codec",
    "crypto",
    "disclosure",
    "go",
    "ledger",
    "noise",
    "protocols",
    "runtime",
    "secure_sums",
    "sfpca",
    "study",
}


def test_every_listed_edit_can_be_made() -> None:
    """A refactoring that moves a line moves its mutant along."""
    problems = {f"{mutant.area}/{mutant.name}": problem_of(mutant) for mutant in MUTANTS}
    assert {name: problem for name, problem in problems.items() if problem} == {}


def test_names_are_given_once_and_every_area_has_its_list() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []
    assert {mutant.area for mutant in MUTANTS} >= AREAS
    assert sum(mutant.dangerous for mutant in MUTANTS) >= 120
    assert all(mutant.why.endswith(".") for mutant in MUTANTS)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"file": "src/nowhere.py"}, "no file"),
        ({"line": "c = 3"}, "stands 0 times"),
        ({"line": "a"}, "stands 2 times"),
        ({"change": "a = 1"}, "changes nothing"),
        ({"tests": ()}, "names no test"),
        ({"tests": ("tests/test_other.py",)}, "no test file"),
        ({"tests": ("tests/test_a.py::test_two",)}, "has no test test_two"),
        ({"dangerous": False}, "without a reason"),
    ],
)
def test_a_list_that_is_no_longer_true_is_noticed(
    tmp_path: Path, changes: dict[str, object], problem: str | None
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "module.py").write_text("a = 1\nab = 2\n")
    (tmp_path / "tests" / "test_a.py").write_text("def test_one() -> None: ...\n")
    facts = {"name": "m", "file": "module.py", "line": "a = 1", "change": "a = 2", "why": "Because."}
    facts |= {"tests": ("tests/test_a.py::test_one[case]",)}
    found = problem_of(Mutant(**(facts | changes)), tmp_path)  # type: ignore[arg-type]
    assert found is None if problem is None else problem in str(found)
