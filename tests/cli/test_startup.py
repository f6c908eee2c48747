"""``atoll review`` answers at once: what it does not need is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.example import STUDY

PROBE = """
import sys
from atoll.cli import main
try:
    main(["review", sys.argv[1]])
except SystemExit as ended:
    assert ended.code == 0, ended.code
slow = {"sklearn", "scipy", "pandas", "pyarrow", "matplotlib", "cffi", "threadpoolctl", "pydantic"}
print("imported:", sorted(slow & set(sys.modules)))
from atoll.crypto.hazmat import golib
print("library:", golib._library)
"""


EXACT = STUDY.replace("south.parquet", "south.csv")
PRIVATE = (
    EXACT.replace("accept_determined = true", "epsilon = 1.0\ndelta = 1e-5\nrow_norm = 10.0")
    .replace('scores = ["consumer"]\n', "")
    .replace('label = "kind"', "columns = ['a', 'b', 'c', 'd']")
)


ENCRYPTED = (
    EXACT.replace("pppca", "sfpca")
    .replace('"server"', '"coordinator"')
    .replace('label = "kind"', "columns = ['a', 'b', 'c', 'd']")
    .replace('scores = ["consumer"]\n', "")
)


def test_a_review_of_encrypted_pca_imports_the_library_and_nothing_else_that_is_slow(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(ENCRYPTED)
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("a,b,c,d,kind\n1,2,3,4,x\n")
    command = [sys.executable, "-c", PROBE, str(tmp_path / "study.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Expected time and memory" in done.stdout
    assert "imported: ['cffi']\n" in done.stdout  # the table of rings is the library's


@pytest.mark.parametrize("study", [EXACT, PRIVATE], ids=["exact", "private"])
def test_a_review_imports_no_slow_package(study: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(study)
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("a,b,c,d,kind\n1,2,3,4,x\n")
    command = [sys.executable, "-c", PROBE, str(tmp_path / "study.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Who learns what" in done.stdout
    assert "4 columns" in done.stdout  # counted, in the header of a table
    assert done.stdout.endswith("imported: []\nlibrary: None\n")
