"""What a role makes of the numbers that were opened for it: results where they can be, refusals where not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.examples import sfpca_paper

from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.messages import Names
from atoll.protocols.pca.sfpca.paper.messages import VarianceUnit
from atoll.protocols.pca.sfpca.paper.releases import Facts, Released, known_of

COLUMNS = ("age", "dose", "weight", "stay", "score")
FACTS = Facts(Names(COLUMNS, True, 1.0), np.zeros(5), None, VarianceUnit(2.0, 3))
"""Three variances stand beside those that are released."""
WRONG = {
    "they rise": (2.0, 4.0, 10.0),
    "one is negative": (4.0, -1.0, 4.0),
    "together they are more than the total": (4.0, 2.0, 5.0),
    "one that is larger was left out": (4.0, 0.5, 10.0),
    "one is no number": (4.0, float("nan"), 10.0),
    "the total is none": (4.0, 2.0, float("nan")),
}


def test_variances_of_a_total_are_in_the_tables_own_units() -> None:
    known = known_of(sfpca_paper().study, Released(variances=np.array([4.0, 2.0, 10.0])), FACTS)
    assert known["explained_variance"] == pytest.approx([8.0, 4.0])
    assert known["total_variance"] == pytest.approx(20.0)
    assert known["noise_variance"] == pytest.approx(4.0 / 3 * 2)


@pytest.mark.parametrize("kind", WRONG)
def test_variances_that_cannot_be_the_largest_of_their_total_are_refused(kind: str) -> None:
    with pytest.raises(CertificateRefused, match="cannot be the largest of this total"):
        known_of(sfpca_paper().study, Released(variances=np.array(WRONG[kind])), FACTS)


@pytest.mark.parametrize("factor", [1.0, 1.2, 0.0, float("nan")])
def test_components_that_are_not_orthonormal_are_refused(factor: float) -> None:
    W = np.eye(5)[[1, 3]] * factor
    released = Released(components=W, offset=np.zeros(2))
    if factor == 1.0:
        assert np.abs(known_of(sfpca_paper().study, released, FACTS)["components"]) == pytest.approx(W)
        return
    with pytest.raises(CertificateRefused, match="orthonormal"):
        known_of(sfpca_paper().study, released, FACTS)
