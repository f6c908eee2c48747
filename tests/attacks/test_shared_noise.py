"""Noise that is drawn twice, or is the same twice, takes itself away: what keeps it from being so."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.examples import dpdpca, private_sfpca

from atoll.errors import RunError
from atoll.privacy import dp_moments as dp
from atoll.privacy.mechanisms import Crowd
from atoll.protocols import protocol_of
from atoll.review.study import review_study
from atoll.runtime.records import MemoryRecord

SEED = bytes(range(32))


def test_two_stages_of_one_seed_have_nothing_in_common() -> None:
    """The same noise on the first and the second mean would cancel in their difference."""
    plan = dp.Plan(64, row_norm=1.0, epsilon=1.0, delta=1e-5, neighbours="replace", crowd=Crowd(4, 1))
    first, second = plan.first_mean, plan.second_mean
    assert first.noise.sigma == second.noise.sigma  # so that only the stage's name tells them apart
    one, other = first.draw_share(SEED)[:64], second.draw_share(SEED)
    assert not (one == other).any()
    width = second.noise.sigma / second.noise.crowd.honest**0.5
    # The difference of two independent draws is sqrt(2) as wide as one; of the same draw, nothing.
    assert np.std(one - other) > 1.0 * width
    renamed = dp.Stage("another", second.noise, second.cost)
    assert not (renamed.draw_share(SEED) == other).any()
    assert np.array_equal(dp.Stage("second mean", second.noise, second.cost).draw_share(SEED), other)


@pytest.mark.parametrize("earlier", [{}, {"privacy/noise": SEED}])
def test_a_record_gives_no_second_draw(earlier: dict[str, bytes]) -> None:
    record, draws = MemoryRecord(earlier), []

    def draw() -> bytes:
        draws.append(1)
        return bytes([len(draws)]) * 32

    first = record("privacy/noise", draw)
    assert first == earlier.get("privacy/noise", b"\x01" * 32)
    with pytest.raises(RunError, match="asked for twice; a second draw could open a secret"):
        record("privacy/noise", draw)
    assert len(draws) == (0 if earlier else 1)
    assert record.drawn == {"privacy/noise": first}


def test_a_record_that_may_not_draw_does_not() -> None:
    record = MemoryRecord({"known": SEED}, may_draw=False)
    assert record("known", bytes) == SEED
    with pytest.raises(RunError, match="the record holds no draw 'new'"):
        record("new", bytes)


def test_the_review_says_where_numbers_of_rows_are_exact() -> None:
    """Presence is not hidden there; whoever signs must read it."""
    study = private_sfpca().study
    said = review_study(study)
    assert said.privacy is not None
    assert "every island's number of rows is released exactly" in said.privacy.words
    assert "protected: the content of any one row, not the number of rows (neighbours: replace)" in (
        said.privacy.words
    )
    paper = dpdpca("paillier", calibration="paper").study
    words = protocol_of("dpdpca").privacy(paper)
    assert words is not None
    assert "the exact number of rows N is released" in words.words
    caveats = {caveat for role in review_study(paper).roles for caveat in role.caveats}
    assert "the exact number of rows N is released" in caveats
    hidden = protocol_of("dpdpca").privacy(dpdpca().study)
    assert hidden is not None
    assert "protected: whether any one row is in the data at all (neighbours: add-remove)" in hidden.words
