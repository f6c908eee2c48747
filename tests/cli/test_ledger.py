"""``atoll ledger``, and what a private study says and does with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.example import STUDY
from tests.support.examples import pppca, private_pppca
from tests.support.running import atoll

from atoll.errors import BudgetExceeded, ParameterError, PrivacyError, StudyError
from atoll.runtime.studies import ledger_of
from atoll.study.model import Local

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


LEDGER = ("--ledger", "ledger.sqlite")


def budgets(epsilon: str = "9", *more: str) -> None:
    """A ledger in which both data sets have a budget."""
    assert atoll("ledger", "init", *LEDGER).code == 0
    for name in ("north-icu", "south-icu"):
        set_budget(name, epsilon, *more)


def set_budget(name: str, epsilon: str, *more: str) -> None:
    more = more or ("--delta", "1e-5")
    done = atoll("ledger", "set-budget", name, "--epsilon", epsilon, *more, *LEDGER)
    assert done.code == 0, done.err


def spent() -> dict[str, float]:
    finished = atoll("ledger", "show", "--json", *LEDGER)
    assert finished.code == 0, finished.err
    return {row["identity"]: row["epsilon"] for row in json.loads(finished.out)}


def test_a_private_study_runs_until_its_budget_is_spent(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    budgets("1.6")
    for more, said in (((), ["privacy: booked in the ledger"]), (("--quiet",), [])):
        finished = atoll("run", "study.toml", *more)
        assert finished.code == 0, finished.err
        assert [line for line in finished.out.splitlines() if "privacy" in line] == said
    assert spent()["north-icu"] == pytest.approx(1.46, abs=0.05)
    refused = atoll("run", "study.toml", "--quiet", "-o", "third")
    assert refused.code == BudgetExceeded.exit_code
    assert "data set" in refused.err
    assert "budget of 1.6" in " ".join(refused.err.split())
    assert not Path("third").exists()
    exported = json.loads(atoll("ledger", "export", *LEDGER).out)
    assert len({d["release_id"] for d in exported["debits"] if d["identity"] == "north-icu"}) == 2


def test_review_says_the_budget_before_and_after_in_words(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    missing = " ".join(atoll("review", "study.toml").out.split())
    assert "there is no ledger ledger.sqlite" in missing
    assert "atoll ledger init --ledger ledger.sqlite" in missing
    assert not Path("ledger.sqlite").exists()  # looking makes no ledger
    budgets()
    said = " ".join(atoll("review", "study.toml").out.split())
    assert "improves a 50:50 guess about one row to at most 73%" in said
    assert "before: epsilon 0; nothing was spent on it" in said
    assert "after: epsilon 1;" in said
    assert "1 of 2 owners colluding" in said
    assert atoll("run", "study.toml", "--quiet").code == 0
    set_budget("south-icu", "1.2")
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
    budgets()
    assert atoll("run", "study.toml", "--quiet").err == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRIVATE, "a private study needs the identity of the data of north, south"),
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
    for command in (
        ("show",),
        ("export",),
        ("moved",),
        ("give-back", "d"),
        ("set-budget", "d", "--epsilon", "1"),
    ):
        refused = atoll("ledger", *command, "--ledger", "none.sqlite")
        assert refused.code == PrivacyError.exit_code
        assert "there is no ledger none.sqlite" in refused.err
    assert not Path("none.sqlite").exists()


def test_a_budget_without_a_delta_says_what_it_lacks(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    budgets("2", "--delta", "0")
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
    lines = atoll("review", "study.toml", "--markdown").out.splitlines()
    row = next(line for line in lines if line.startswith("| north: north-icu"))
    assert row.endswith("**over budget: the island will refuse** |")  # not only among the risks


def test_a_pure_study_after_gaussian_ones_counts_as_a_gaussian_one(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED)
    budgets()
    assert atoll("run", "study.toml", "--quiet").code == 0
    Path("study.toml").write_text(BOOKED.replace("delta = 1e-5\n", ""))
    north = json.loads(atoll("review", "study.toml", "--json").out)["privacy"]["accounts"][0]
    assert (north["budget"], north["delta"], north["covered"]) == (9.0, 1e-5, True)
    assert north["epsilon_before"] == pytest.approx(1.0, rel=1e-6)
    assert 2.5 < north["epsilon_after"] < 6.0  # far more than 1 + 1: pure noise is not what the account is in
    late = atoll("ledger", "set-budget", "north-icu", "--epsilon", "2", *LEDGER)
    assert late.code == ParameterError.exit_code
    assert "counted with a delta" in " ".join(late.err.split())


@pytest.mark.parametrize(
    ("identities", "named"), [("", []), ('identities = { south = "south-icu" }\n', ["south"])]
)
def test_review_names_islands_without_an_identity(folder: Path, identities: str, named: list[str]) -> None:
    Path("study.toml").write_text(PRIVATE + 'ledger = "ledger.sqlite"\n' + identities)
    budgets()
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


# ---- the site's ledger, exact studies, the owner's conditions ----

EXACT = STUDY + 'identities = { north = "north-icu", south = "south-icu" }\n'


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATOLL_HOME", str(folder / "home"))
    return folder / "home"


def test_a_private_study_uses_the_ledger_of_its_site(home: Path) -> None:
    Path("study.toml").write_text(BOOKED.replace('ledger = "ledger.sqlite"\n', ""))
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == PrivacyError.exit_code
    assert f"error: there is no ledger {home}/ledger.db" in " ".join(refused.err.split())
    assert "hint: atoll ledger init makes one" in " ".join(refused.err.split())
    assert not home.exists()
    made = atoll("ledger", "init")
    assert (made.code, made.out) == (0, f"made {home}/ledger.db\n")
    again = atoll("ledger", "init")
    assert again.code == ParameterError.exit_code
    assert "already" in again.err
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == PrivacyError.exit_code
    said = " ".join(refused.err.split())
    assert "north: data set 'north-icu' has no budget" in said or "south: data set 'south-icu' has no" in said
    assert "atoll ledger set-budget" in said
    assert "the island will refuse: data set 'north-icu' has no budget" in " ".join(
        atoll("review", "study.toml").out.split()
    )
    for name in ("north-icu", "south-icu"):
        assert atoll("ledger", "set-budget", name, "--epsilon", "2", "--delta", "1e-5").code == 0
    finished = atoll("run", "study.toml", "--json")
    assert json.loads(finished.out)["booked"] == "booked in the ledger"
    assert [row["method"] for row in json.loads(atoll("ledger", "show", "--json").out)] == ["gdp", "gdp"]


def test_an_exact_study_uses_the_ledger_of_its_site_where_it_names_its_data_sets(home: Path) -> None:
    assert ledger_of(pppca().study, Local(identities={"north": "icu"})) is None  # the site has none
    assert atoll("ledger", "init").code == 0
    assert ledger_of(pppca().study, Local(identities={"north": "icu"})) == home / "ledger.db"
    assert ledger_of(pppca().study, Local()) is None
    assert ledger_of(private_pppca().study, Local()) == home / "ledger.db"
    assert ledger_of(pppca().study, Local(ledger="own.db")) == Path("own.db")


def test_without_a_home_the_ledger_stands_with_the_users_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATOLL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    assert atoll("ledger", "init").out == f"made {folder}/data/atoll/ledger.db\n"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(folder / "me"))
    assert atoll("ledger", "init").out == f"made {folder}/me/.local/share/atoll/ledger.db\n"


def test_an_exact_study_is_booked_as_exact_and_shown(home: Path) -> None:
    Path("study.toml").write_text(EXACT)
    unbooked = atoll("run", "study.toml", "--json")
    assert json.loads(unbooked.out)["booked"] is None  # a site without a ledger
    atoll("ledger", "init")
    atoll("ledger", "set-budget", "north-icu", "--epsilon", "2", "--delta", "1e-5")
    assert "north (data set 'north-icu'): booked as an exact release" in " ".join(
        atoll("review", "study.toml").out.split()
    )
    assert json.loads(atoll("run", "study.toml", "--json").out)["booked"] == "booked as exact"
    north, south = json.loads(atoll("ledger", "show", "--json").out)
    assert (north["exact"], north["releases"], north["epsilon"]) == (1, 0, 0.0)
    assert (south["identity"], south["exact"], south["budget"]) == ("south-icu", 1, None)
    assert "1 exact release was made of it, and what they show no epsilon bounds" in north["in_words"]
    assert "nothing was spent" not in north["in_words"]
    shown = " ".join(atoll("ledger", "show").out.split())
    assert "exact" in shown


def test_an_owner_may_refuse_exact_studies(home: Path) -> None:
    Path("study.toml").write_text(EXACT)
    atoll("ledger", "init")
    atoll("ledger", "set-budget", "South-ICU", "--epsilon", "2", "--no-exact")
    assert "south will refuse: data set 'south-icu': its owner allows no exact release" in " ".join(
        atoll("review", "study.toml").out.split()
    )
    assert "- south will refuse: data set 'south-icu': its owner allows no exact release of it." in (
        atoll("review", "study.toml", "--markdown").out.splitlines()
    )
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == PrivacyError.exit_code
    assert "allows no exact release of it" in " ".join(refused.err.split())
    assert [row["exact"] for row in json.loads(atoll("ledger", "show", "--json").out)] == [0]
    atoll("ledger", "set-budget", "south-icu", "--epsilon", "3")  # the policy stays
    assert atoll("run", "study.toml", "--quiet").code == PrivacyError.exit_code
    atoll("ledger", "set-budget", "south-icu", "--epsilon", "3", "--exact")
    assert atoll("run", "study.toml", "--quiet").code == 0


def test_a_named_ledger_must_be_there_for_an_exact_study_too(folder: Path) -> None:
    Path("study.toml").write_text(EXACT + 'ledger = "ledger.sqlite"\n')
    assert "there is no ledger" in " ".join(atoll("review", "study.toml").out.split())
    assert atoll("run", "study.toml", "--quiet").code == PrivacyError.exit_code
    Path("study.toml").write_text(STUDY + 'ledger = "ledger.sqlite"\n')
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == StudyError.exit_code
    assert "lacks the identity of the data of north, south" in " ".join(refused.err.split())


def test_an_owner_may_ask_for_noise_against_more_colluders(folder: Path) -> None:
    three = BOOKED.replace(
        '[[party]]\nname = "relay"', '[[party]]\nname = "west"\nrole = "owner"\n[[party]]\nname = "relay"'
    ).replace('south = "south.parquet"', 'south = "south.parquet", west = "west.csv"')
    Path("west.csv").write_text(Path("north.csv").read_text())
    three = three.replace('south = "south-icu"', 'south = "south-icu", west = "west-icu"')
    budgets()
    set_budget("west-icu", "9")
    Path("study.toml").write_text(three + "min_colluders = 2\n")
    assert "this site asks for noise against at least 2 colluding owner(s), the study has 1" in " ".join(
        atoll("review", "study.toml").out.split()
    )
    refusal = "this site asks for noise against at least 2 colluding owner(s), the study has 1."
    told = atoll("review", "study.toml", "--markdown").out.splitlines()
    assert f"- The island will refuse: {refusal}" in told
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == PrivacyError.exit_code
    assert "the study's noise is for 1 colluding owner(s), this island asks for at least 2" in " ".join(
        refused.err.split()
    )
    assert json.loads(atoll("ledger", "export", *LEDGER).out)["debits"] == []
    Path("study.toml").write_text(
        three.replace("epsilon = 1.0", "epsilon = 1.0\ncolluders = 2") + "min_colluders = 2\n"
    )
    assert atoll("run", "study.toml", "--quiet").code == 0
    Path("study.toml").write_text(three + "min_colluders = -1\n")
    assert atoll("review", "study.toml").code == StudyError.exit_code


def test_an_identity_that_deceives_is_refused_with_its_place(folder: Path) -> None:
    Path("study.toml").write_text(BOOKED.replace('"south-icu"', '"south\\u200b-icu"'))
    refused = atoll("review", "study.toml")
    assert refused.code == StudyError.exit_code
    said = " ".join(refused.err.split())
    assert "study.toml:27: south: the identity" in said
    assert "ZERO WIDTH SPACE (U+200B), which nobody can see" in said
