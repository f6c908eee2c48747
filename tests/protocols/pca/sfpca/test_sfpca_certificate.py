"""The certificate on spectra made to mislead it: a part of benchmarks/sfpca_certificate.py."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.sfpca_certificate import Verdict, cases, failures, line, run

from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.recipes.certificate import (
    DEFECT_TOLERANCE,
    GAP_TOLERANCE,
    TOLERANCE,
    Certificate,
    PublicTerms,
    cut,
    weights,
)

CASES = {case.name: case for case in cases()}
RIGHT = [
    ("flat tail at 0.2, m=60, k=3", "default"),
    ("last pair within 0.001, k=3", "default"),
    ("pair within 0.05 on a flat tail, k=2", "default"),
    ("ratio 0.7, m=60, k=1", "fast"),
]
WRONG = [
    # Pairs that the sketch alone tells apart: their Ritz values differ far more than their eigenvalues.
    ("pair within 1e-07 on a flat tail, k=2", "fast"),
    ("pair within 1e-06 on a flat tail, k=2", "fast"),
    ("pair within 1e-05 on a flat tail, k=2", "fast"),
    ("triple within 1e-07, k=3", "default"),
    ("first pair within 1e-09, k=2", "default"),
    ("slope 0.001, m=60, k=1", "default"),
    ("slope 0, m=60, k=3", "accurate"),
]


@pytest.mark.parametrize(("name", "policy"), RIGHT)
def test_right_results_pass(name: str, policy: str) -> None:
    verdict = run(CASES[name], policy, 1)
    assert verdict.right
    assert verdict.accepted, verdict


@pytest.mark.parametrize(("name", "policy"), WRONG)
def test_wrong_results_do_not(name: str, policy: str) -> None:
    verdict = run(CASES[name], policy, 1)
    assert verdict.computed
    assert not verdict.right, "the case was made to fail"
    assert not verdict.accepted, verdict


def test_runs_that_break_off_are_neither_right_nor_wrong() -> None:
    broken = Verdict("flat", "slope 0", "default", np.inf, np.nan)
    wrong, right = broken._replace(bound=0.5, cosine=0.3), broken._replace(bound=1e-3, cosine=1.0)
    columns = line("flat", [broken, broken, wrong, right]).split()
    assert columns == ["flat", "4", "1", "0", "0.0%", "0", "1", "2"]
    assert failures([broken, wrong, right]) == []
    # But what the certificate vouches for has to be there.
    assert "not computed, accepted" in failures([broken._replace(bound=1e-3)])[0]


THETA = np.array([0.4, 0.2, 0.1, 0.05, 0.02, 0.01])


def public(**changes: int | str) -> PublicTerms:
    return PublicTerms(100, 3, 24, 3, -28.89)._replace(**changes)


def test_the_rest_of_the_spectrum_is_bounded_whatever_became_of_trailing_rows() -> None:
    assert cut(THETA, 3, public()) == THETA[3]
    # Below what the power iteration reaches, a Ritz value bounds nothing ...
    reached = cut(THETA * 1e-6, 3, public())
    assert 0.003 < reached < 0.01
    # ... unless the trace leaves less than that, or no column is left out.
    full = np.array([0.9985, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8])
    assert cut(full, 3, public()) == pytest.approx(1 - full.sum())
    assert cut(THETA, 3, public(columns=6)) == 0.0


def test_a_defect_or_a_moved_gap_alone_exceeds_the_tolerance() -> None:
    k, mu = 2, 0.05
    _, squared, _ = weights(THETA, mu, k, 4)
    defect = DEFECT_TOLERANCE * THETA[0] * THETA[1]
    assert squared[0, 1] * defect >= TOLERANCE
    moved = GAP_TOLERANCE * (THETA[1] - mu) * (THETA[1] - THETA[2])
    assert squared[1, 1] * moved >= TOLERANCE
    # Residuals of Ritz values that are not asked for count where they are neighbours of one that is.
    assert squared[2, 2] * moved >= TOLERANCE
    assert squared[3, 3] > 0
    assert not squared[2:][:, [0, 1]].any()


def test_a_refusal_says_what_to_try() -> None:
    Certificate(TOLERANCE, 0.0).check()
    nothing = "cannot be certified"
    said = {TOLERANCE * 1.01: "certified to 0.014 only", 1.0: nothing, np.inf: nothing, np.nan: nothing}
    for bound, words in said.items():
        with pytest.raises(CertificateRefused, match=words) as refused:
            Certificate(bound, 0.0).check()
        assert "recipe='accurate'" in str(refused.value.hint)
