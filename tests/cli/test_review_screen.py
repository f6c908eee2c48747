"""The review on the screen says what its Markdown says."""

from __future__ import annotations

import io

from msgspec import structs
from rich.console import Console
from tests.support.examples import private_pppca

from atoll.cli.review import show
from atoll.review.budget import AccountReview
from atoll.review.study import Review, review_study


def on_screen(review: Review) -> str:
    shown = io.StringIO()
    show(review, Console(file=shown, width=200))
    return " ".join(shown.getvalue().split())


def test_a_budget_that_does_not_cover_the_study_is_said_and_no_other() -> None:
    review = review_study(private_pppca().study)
    assert review.privacy is not None
    one = AccountReview(
        island="north",
        identity="icu",
        budget=1.0,
        delta=1e-5,
        epsilon_before=0.5,
        epsilon_after=0.9,
        covered=True,
        before="something was spent",
        after="more was spent",
    )
    for refusal, times in ((None, 0), ("over budget: the island will refuse", 1)):
        accounts = (one, structs.replace(one, island="south", covered=refusal is None, refusal=refusal))
        said = on_screen(structs.replace(review, privacy=structs.replace(review.privacy, accounts=accounts)))
        assert said.count("over budget: the island will refuse") == times
        assert said.count("before: epsilon 0.5; something was spent") == 2
        assert said.count("after: epsilon 0.9; more was spent") == 2
