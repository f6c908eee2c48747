"""Numbers of rows that a caller gives to a review: one for each island, or none."""

from __future__ import annotations

import pytest
from tests.support.examples import pppca, sfpca

from atoll.errors import ParameterError
from atoll.review.study import Guess, review_study


@pytest.mark.parametrize("example", [pppca, sfpca])
@pytest.mark.parametrize("difference", [-1, 1])
def test_one_number_of_rows_for_each_island(example, difference: int) -> None:
    made = example()
    islands = len(made.islands)
    with pytest.raises(
        ParameterError, match=f"rows for {islands + difference} islands, where .* {islands}"
    ) as no:
        review_study(made.study, 3, guess=Guess(rows=(10,) * (islands + difference)))
    assert all(name in str(no.value.hint) for name in made.islands)
    assert review_study(made.study, 3, guess=Guess(rows=(10,) * islands)).cost is not None


def test_no_island_has_fewer_rows_than_none() -> None:
    made = sfpca()
    with pytest.raises(ParameterError, match="an island cannot have -2 rows"):
        review_study(made.study, 3, guess=Guess(rows=(10,) * (len(made.islands) - 1) + (-2,)))
