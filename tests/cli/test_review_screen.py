"""The review on the screen says what its Markdown says."""

from __future__ import annotations

import io

from msgspec import structs
from rich.console import Console
from tests.support.examples import pppca, private_pppca, sfpca

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


def test_the_screen_says_how_contributions_are_hidden_and_what_alone_is_summed() -> None:
    said = on_screen(review_study(sfpca().study))
    assert "collective key" in said
    assert "shares (for the range of the data only): " in said
    bounded = on_screen(review_study(sfpca(bounds=64.0).study))
    assert "collective key" in bounded
    assert "shares:" not in bounded
    assert "only): " not in bounded
    summed = on_screen(review_study(pppca().study))
    assert "collective key" not in summed
    assert "shares: " in summed


def test_the_screen_tells_time_where_it_is_foreseen_and_projections_where_they_come_on_top() -> None:
    foreseen, plain = on_screen(review_study(sfpca().study, 4)), on_screen(review_study(pppca().study, 4))
    assert "Expected time and memory" in foreseen
    assert "each record's projection" not in foreseen
    assert "Expected time and memory" not in plain
    assert "and for each record's projection 24 B" in plain
    assert "the number of columns is not known here" in on_screen(review_study(pppca().study))
