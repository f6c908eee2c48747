"""Slips of the first hour: what is said is what is wrong, where it is, and what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.example import STUDY
from tests.support.running import atoll

import atoll as package
from atoll.errors import DataError, ParameterError, RangeOverflow

# ---- epsilon ----


@pytest.mark.parametrize("epsilon", [1.1e6, 1e8, 1e300])
@pytest.mark.parametrize("delta", [None, 1e-5])
def test_an_epsilon_beyond_all_reason_is_refused_in_words(epsilon: float, delta: float | None) -> None:
    X = np.random.default_rng(1).normal(size=(20, 3))
    for protocol in ("dpdpca", "pppca", "sfpca"):
        pca = package.PCA(1, protocol=protocol, epsilon=epsilon, delta=delta, row_norm=3.0)
        with pytest.raises(ParameterError, match=r"epsilon 1.*\+.* is beyond 1,000,000"):
            pca.fit([X, X])


@pytest.mark.parametrize("option", ["epsilon", "delta", "row_norm", "colluders"])
@pytest.mark.parametrize("value", ["1", True, [1.0]])
def test_text_is_no_number(option: str, value: object) -> None:
    X = np.random.default_rng(1).normal(size=(20, 3))
    options = {"epsilon": 1.0, "delta": 1e-5, "row_norm": 3.0, option: value}
    with pytest.raises(ParameterError, match=f"{option}=.* must be a (whole )?number"):
        package.PCA(1, protocol="dpdpca", **options).fit([X, X, X])


def test_a_wrong_epsilon_is_named_by_its_own_line(folder: Path) -> None:
    text = STUDY.replace("accept_determined = true\n", "row_norm = 2.0\n\nepsilon = 1e9\n")
    text = text.replace('scores = ["consumer"]\n', "")
    (folder / "study.toml").write_text(text)
    assert text.splitlines()[8] == "epsilon = 1e9"
    refused = atoll("review", "study.toml")
    assert refused.code == 4
    assert refused.err.startswith("error: study.toml:9: epsilon 1e+09 is beyond")


# ---- overflow ----


@pytest.mark.parametrize("who", ["a", "b", "c"])
def test_an_overflow_names_the_island_and_the_column_that_cause_it(who: str) -> None:
    draw = np.random.default_rng(2)
    tables = {name: draw.normal(size=(20, 4)) for name in "abc"}
    tables[who][7, 2] = 1e30
    for protocol, said in (("pppca", "sum of their squares"), ("sfpca", "a value beyond 2")):
        with pytest.raises(RangeOverflow, match=f"^{who}: column 'x2' has .*{said}"):
            package.PCA(2, protocol=protocol, accept_determined=True).fit(tables)
    tables[who][7, 2] = 1e200
    with pytest.raises(DataError, match=f"^{who}: the sum of the squares of column 'x2' exceeds"):
        package.PCA(2, protocol="meta").fit(tables)


def test_an_island_whose_rows_fit_is_not_blamed_for_the_mean() -> None:
    """Squares about a joint mean that another island has moved do not fit, though all rows do."""
    draw = np.random.default_rng(3)
    tables = {f"few-{i}": draw.normal(size=(1000, 2)) + np.array([0.0, 3e11]) for i in range(9)}
    tables["many"] = draw.normal(size=(9000, 2))
    with pytest.raises(
        RangeOverflow, match=r"^column 'x1': the rows of many are so far from the joint mean"
    ) as e:
        package.PCA(1, accept_determined=True).fit(tables)
    assert "islands hold values of very different size" in e.value.message


# ---- study files ----


def test_a_byte_order_mark_is_no_error(folder: Path) -> None:
    (folder / "study.toml").write_bytes(b"\xef\xbb\xbf" + STUDY.encode())
    assert package.load_study("study.toml").name == "north south/.."


@pytest.mark.parametrize(
    ("said", "instead", "message"),
    [
        (
            "n_components = 2\n",
            "n_components = 2\nn_components = 3\n",
            "study.toml:6: 'n_components' is there twice",
        ),
        ("[release]\n", "[parameters]\n[release]\n", "study.toml:20: the table [parameters] is there twice"),
        ("[local]\n", "[local]\nledger = 'a'\nledger = 'b'\n", "study.toml:26: 'ledger' is there twice"),
    ],
)
def test_what_is_there_twice_is_said_to_be(folder: Path, said: str, instead: str, message: str) -> None:
    (folder / "study.toml").write_text(STUDY.replace(said, instead))
    refused = atoll("review", "study.toml")
    assert refused.code == 4
    assert refused.err.startswith(f"error: {message}")
    assert "hint: keep one of the two" in refused.err
    assert "quotes" not in refused.err


# ---- terminals, and what libraries print ----


def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "atoll", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize(("encoding", "form"), [("latin-1", ()), ("ascii", ("--markdown",))])
def test_a_terminal_of_few_letters_does_not_break_a_review(
    folder: Path, encoding: str, form: tuple[str, ...]
) -> None:
    (folder / "study.toml").write_text(STUDY.replace("north south/..", "nörd – søuth"))
    done = call("review", "study.toml", *form, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"full covariance matrix" in b" ".join(done.stdout.split())


def test_a_terminal_of_few_letters_breaks_no_json_and_no_run(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace("north south/..", "nörd – søuth"))
    exact = json.loads(call("review", "study.toml", "--json", PYTHONIOENCODING="latin-1").stdout)
    assert exact["name"] == "nörd – søuth"
    ran = call("run", "study.toml", PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_under_quiet_libraries_are_quiet_too(folder: Path) -> None:
    """matplotlib complains where it cannot keep a cache."""
    done = call("run", "study.toml", "--quiet", MPLCONFIGDIR="/proc/none", HOME="/proc")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_refused_budget_leaves_no_file(folder: Path) -> None:
    assert atoll("ledger", "set-budget", "d", "--epsilon", "1", "--ledger", "new.db").code == 6
    assert atoll("ledger", "init", "--ledger", "new.db").code == 0
    assert atoll("ledger", "set-budget", "d", "--epsilon", "-1", "--ledger", "new.db").code == 2
    assert json.loads(atoll("ledger", "show", "--json", "--ledger", "new.db").out) == []
