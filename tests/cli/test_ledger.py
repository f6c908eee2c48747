"""``atoll ledger``, and what a private study says and does with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.running import atoll

from atoll.errors import BudgetExceeded, ParameterError, PrivacyError, StudyError

PRIVATE = """\
[study]
name = "private"
protocol = "dpdpca"
[parameters]
n_components = 2
epsilon = 1.0
delta = 1e-5
row_norm = 4.0
columns = ["a", "b", "c", "d"]
[[party]]
name = "north"
role = "owner"
[[party]]
name = "south"
role = "owner"
[[party]]
name = "relay"
role = "proxy"
[[party]]
name = "lab"
role = "data_user"
[release]
components = ["owner", "data_user"]
[local]
data = { north = "north.csv", south = "south.parquet" }
"""
BOOKED = PRIVATE + 'ledger = "ledger.sqlite"\nidentities = { north = "north-icu", south = "south-icu" }\n'


def spent() -> dict[str, float]:
    finished = atoll("ledger", "show", "ledger.sqlite", "--json")
    assert finished.code == 0, finished.err
    return {row["identity"]: row["epsilon"] for row in json.loads(finished.out)}


def test_a_private_study_runs_until_its_budget_is_spent(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    for name in ("north-icu", "south-icu"):
        done = atoll("ledger", "set-budget", "ledger.sqlite", name, "--epsilon", "1.6", "--delta", "1e-5")
        assert done.code == 0, done.err
    for _ in range(2):
        finished = atoll("run", "study.toml", "--quiet")
        assert finished.code == 0, finished.err
    assert spent()["north-icu"] == pytest.approx(1.46, abs=0.05)
    refused = atoll("run", "study.toml", "--quiet", "-o", "third")
    assert refused.code == BudgetExceeded.exit_code
    assert "data set" in refused.err
    assert "budget of 1.6" in " ".join(refused.err.split())
    assert not Path("third").exists()
    exported = json.loads(atoll("ledger", "export", "ledger.sqlite").out)
    assert [debit["identity"] for debit in exported["debits"]].count("north-icu") == 2


def test_review_says_the_budget_before_and_after_in_words(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    said = " ".join(atoll("review", "study.toml").out.split())
    assert "improves a 50:50 guess about one row to at most 73%" in said
    assert "before: epsilon 0; nothing was spent on it" in said
    assert "after: epsilon 1;" in said
    assert "1 of 2 owners colluding" in said
    assert not Path("ledger.sqlite").exists()  # looking makes no ledger
    assert atoll("run", "study.toml", "--quiet").code == 0
    atoll("ledger", "set-budget", "ledger.sqlite", "south-icu", "--epsilon", "1.2", "--delta", "1e-5")
    accounts = json.loads(atoll("review", "study.toml", "--json").out)["privacy"]["accounts"]
    assert [account["covered"] for account in accounts] == [True, False]
    assert accounts[0]["epsilon_before"] == pytest.approx(1.0, rel=1e-6)
    assert 1.3 < accounts[0]["epsilon_after"] < 2.0
    text = atoll("review", "study.toml", "--markdown").out
    assert "## Privacy budget" in text
    assert "over budget: the island will refuse" in text
    assert "Results are exact" not in text


PAPER = PRIVATE.replace("epsilon = 1.0", 'calibration = "paper"\nepsilon = 1.0')
PAPER_FORMS = {
    "dpdpca": PAPER.replace('protocol = "dpdpca"', 'protocol = "dpdpca"\nsecure_sum = "paillier"'),
    "privatelocal": PAPER.replace('"dpdpca"', '"privatelocal"')
    .replace("row_norm = 4.0\n", "")
    .replace('[[party]]\nname = "relay"\nrole = "proxy"\n', ""),
}


@pytest.mark.parametrize("protocol", PAPER_FORMS)
def test_a_published_form_is_never_called_private(folder: Path, protocol: str) -> None:
    Path("study.toml").write_text(PAPER_FORMS[protocol])
    assert "not differentially private as stated" in " ".join(atoll("review", "study.toml").out.split())
    text = atoll("review", "study.toml", "--markdown").out
    assert "Not differentially private as stated" in text.split("## Residual risks")[1]
    assert "Releases are differentially private" not in text
    finished = atoll("run", "study.toml", "--json")
    assert finished.code == 0, finished.err
    assert finished.err.startswith("warning: not differentially private as stated: ")
    json.loads(finished.out)


@pytest.mark.parametrize("protocol", PAPER_FORMS)
def test_review_says_that_a_published_form_is_refused_beside_a_ledger(folder: Path, protocol: str) -> None:
    Path("study.toml").write_text(PAPER_FORMS[protocol] + 'ledger = "ledger.sqlite"\n')
    assert "an island with a ledger refuses a run" in " ".join(atoll("review", "study.toml").out.split())
    assert atoll("run", "study.toml").code == PrivacyError.exit_code


def test_a_study_that_keeps_its_promise_runs_without_a_warning(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    assert atoll("run", "study.toml", "--quiet").err == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRIVATE, "a private study needs a ledger"),
        (PRIVATE + 'ledger = "l"\nidentities = { north = "n" }\n', "the identity of the data of south"),
        (BOOKED.replace('south = "south-icu"', 'west = "w"'), "an identity for 'west'"),
        (BOOKED.replace("row_norm = 4.0\n", ""), "row_norm"),
    ],
)
def test_a_private_study_without_ledger_identity_or_bound_is_refused(
    folder: Path, text: str, said: str
) -> None:
    Path("study.toml").write_text(text)
    refused = atoll("run", "study.toml")
    assert refused.code == StudyError.exit_code
    assert said in " ".join(refused.err.split())


def test_looking_at_a_ledger_that_is_not_there_is_an_error(folder: Path) -> None:
    for command in ("show", "export"):
        assert atoll("ledger", command, "none.sqlite").code == ParameterError.exit_code
    assert not Path("none.sqlite").exists()


def test_a_budget_without_a_delta_says_what_it_lacks(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    atoll("ledger", "set-budget", "ledger.sqlite", "north-icu", "--epsilon", "2")
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == BudgetExceeded.exit_code
    assert "allows pure releases only" in refused.err
    assert "--epsilon 2 --delta 1e-5" in refused.err
    assert "inf" not in refused.err
    printed = atoll("review", "study.toml", "--json").out
    assert "Infinity" not in printed
    north = json.loads(printed)["privacy"]["accounts"][0]
    assert (north["epsilon_after"], north["covered"]) == (None, False)
    for form in ((), ("--markdown",)):
        said = " ".join(atoll("review", "study.toml", *form).out.split())
        assert "the budget allows pure releases only" in said
        assert "over budget: the island will refuse" in said


def test_a_ledger_whose_pure_budget_came_late_is_shown_in_plain_json(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    assert atoll("run", "study.toml", "--quiet").code == 0
    atoll("ledger", "set-budget", "ledger.sqlite", "north-icu", "--epsilon", "2")
    assert "Infinity" not in atoll("ledger", "show", "ledger.sqlite", "--json").out
    assert spent()["north-icu"] is None
    assert "no bound" in atoll("ledger", "show", "ledger.sqlite").out


def test_a_pure_study_after_gaussian_ones_is_told_at_a_delta(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    assert atoll("run", "study.toml", "--quiet").code == 0
    Path("study.toml").write_text(BOOKED.replace("delta = 1e-5\n", ""))
    north = json.loads(atoll("review", "study.toml", "--json").out)["privacy"]["accounts"][0]
    assert (north["budget"], north["delta"], north["covered"]) == (None, 1e-6, True)
    assert 1.0 < north["epsilon_before"] < 1.3
    assert north["epsilon_before"] < north["epsilon_after"] < north["epsilon_before"] + 1.0001
    assert "improves a 50:50 guess" in north["after"]


@pytest.mark.parametrize(
    ("identities", "named"), [("", []), ('identities = { south = "south-icu" }\n', ["south"])]
)
def test_review_names_islands_without_an_identity(folder: Path, identities: str, named: list[str]) -> None:
    Path("study.toml").write_text(PRIVATE + 'ledger = "ledger.sqlite"\n' + identities)
    privacy = json.loads(atoll("review", "study.toml", "--json").out)["privacy"]
    assert [account["island"] for account in privacy["accounts"]] == named
    assert privacy["without_identity"] == [name for name in ("north", "south") if name not in named]
    for form in ((), ("--markdown",)):
        said = " ".join(atoll("review", "study.toml", *form).out.split())
        assert "north: nobody said which data set its rows are" in said
        assert 'add [local] identities = { north = "' in said
        assert "None" not in said
    refused = atoll("run", "study.toml")
    assert refused.code == StudyError.exit_code
