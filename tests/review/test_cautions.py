"""Numbers that promise little, islands of one row and islands that will refuse are lines with an exclamation
mark, and a run warns of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.cli.example import STUDY
from tests.cli.test_ledger import BOOKED, budgets
from tests.support.examples import dpdpca, pppca, private_pppca
from tests.support.running import atoll

from atoll.privacy.accountant import guess_accuracy
from atoll.privacy.ledger import Ledger
from atoll.report.assessment import as_markdown
from atoll.review.budget import review_privacy
from atoll.review.cautions import cautions
from atoll.review.study import Guess, review_study
from atoll.study.model import Local


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "warned"),
    [
        (1.0, 1e-5, (), []),
        (5.0, 1e-5, (), []),  # 99.3% right: much, but a bound
        (5.4, 1e-5, (), ["epsilon 5.4"]),
        (1000.0, 1e-5, (), ["epsilon 1000"]),
        (1.0, 0.5, (), ["delta 0.5"]),
        (1.0, 1e-3, (), []),
        (1.0, 2e-3, (), ["delta 0.002"]),
        (1.0, 1e-3, (50, 50, 50, 50), ["delta 0.001"]),  # 1/(10 x 200) is 0.0005
        (1.0, 5e-4, (50, 50, 50, 50), []),
        (1000.0, 0.5, (), ["epsilon 1000", "delta 0.5"]),
    ],
)
def test_epsilon_and_delta_that_promise_little_are_pointed_out(
    epsilon: float, delta: float, rows: tuple[int, ...], warned: list[str]
) -> None:
    study = private_pppca(epsilon=epsilon, delta=delta).study
    said = cautions(study, rows)
    assert [line.split(" promises")[0].split(" is larger")[0] for line in said] == warned
    review = review_study(study, 4, guess=Guess(rows))
    assert review.cautions == said
    for line in said:
        assert f"- {line[:1].upper()}{line[1:]}." in as_markdown(review).split("## Residual risks")[1]


def test_the_line_for_epsilon_is_where_a_guess_is_nearly_sure() -> None:
    assert guess_accuracy(5.0) < 0.995 < guess_accuracy(5.4)


def test_an_island_of_one_row_is_pointed_out() -> None:
    study = pppca().study
    (line,) = review_study(study, 4, guess=Guess((20, 1, 19))).cautions
    assert line.startswith("hospital-1 has a single row")
    assert review_study(study, 4, guess=Guess((20, 2, 18))).cautions == ()


def test_a_run_warns_of_an_island_of_one_row_and_a_review_counts_rows(folder: Path) -> None:
    pd.read_csv("north.csv")[:1].to_csv("north.csv", index=False)
    assert "! north has a single row" in " ".join(atoll("review", "study.toml").out.split())
    warned = atoll("run", "study.toml", "--quiet")
    assert warned.code == 0
    assert warned.err.startswith("warning: north has a single row")


def test_what_an_island_will_refuse_is_a_line_with_a_mark(folder: Path) -> None:
    (folder / "study.toml").write_text(BOOKED)
    budgets("0.5")
    review = [line.strip() for line in atoll("review", "study.toml").out.splitlines()]
    marked = [line for line in review if "the island will refuse" in line]
    assert marked
    assert all(line.startswith("! ") for line in marked)
    assert "North: over budget: the island will refuse" in atoll("review", "study.toml", "--markdown").out


def test_an_exact_study_of_many_rows_has_nothing_to_point_out(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    assert atoll("run", "study.toml", "--quiet") == (0, "", "")


def test_where_no_epsilon_holds_none_is_told(tmp_path: Path) -> None:
    """At delta 0, which is the budget's, Gaussian noise has no epsilon: an infinite one is no number."""
    path = tmp_path / "ledger.db"
    with Ledger.create(path) as ledger:
        ledger.set_budget("icu", 50.0)
    reviewed = review_privacy(dpdpca().study, Local(identities={"island-0": "icu"}, ledger=str(path)))
    assert reviewed is not None
    (account,) = reviewed.accounts
    assert (account.budget, account.delta) == (50.0, 0.0)
    assert (account.epsilon_before, account.epsilon_after) == (0.0, None)
    assert not account.covered
    assert account.refusal is not None
