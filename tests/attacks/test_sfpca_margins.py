"""The numbers that SF-PCA promises, as numbers: a constant that is lowered must not take its test along."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from tests.attacks.test_sfpca_widths import decaying
from tests.support.sfpca_runs import direct, simulate, strict

from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters
from atoll.protocols.pca.sfpca.recipes.certificate import Certificate
from atoll.secret_matrices.machine import Job, Shared, concerned
from atoll.secret_matrices.rotations import WORK_BITS, _dithered, gaussians, rotation
from atoll.secret_matrices.simulated import Simulated

Opening = tuple[tuple[int, int], int, int]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Opening]:
    """Shape, fractional bits and bits of smudging of every opening."""
    seen: list[Opening] = []
    honest = Simulated.opened

    async def noted(self: Simulated, x: Shared, *, smudge_bits: int) -> Any:
        seen.append((x.shape, x.fraction, smudge_bits))
        return await honest(self, x, smudge_bits=smudge_bits)

    monkeypatch.setattr(Simulated, "opened", noted)
    return seen


def test_the_rotated_covariance_is_smudged_52_bits_above_all_roundings(opened: list[Opening]) -> None:
    X, parties, columns = load_wine().data, 3, 13
    simulate(lambda m, i, r: direct(m, i, columns, r), np.array_split(X, parties))
    (trace, whole) = opened
    assert trace[0] == (1, 1)
    # At most 96 of its fractional bits are shown.
    assert trace[2] >= trace[1] - 96 > 1
    # Half a unit for each party and product of the chain and for the symmetric part, and as many columns
    # added up by the rotation.
    roundings = (parties + 1) * (3 + ceil(log2(parties))) * columns
    assert whole == ((columns * (columns + 1) // 2, 1), 120, 52 + ceil(log2(roundings)))
    assert whole[2] == 52 + 9


def test_tau_is_smudged_down_to_2_to_the_minus_15(opened: list[Opening]) -> None:
    """Two parties: 13 of 30 fractional bits each, which together stay below 2^-15."""
    X = decaying()
    (found, _) = simulate(lambda m, i, r: strict(m, i, 2, r), [X[:120], X[120:]])
    shapes = [shape for shape, _, _ in opened]
    assert shapes == [(1, 1), (26 * 27 // 2, 1), (1, 1)]
    assert opened[1][2] >= 52 + ceil(log2(26 * 3 * 4))
    assert opened[2][1:] == (30, 13)
    # What the noise may have hidden is part of the bound, however small tau turned out.
    assert found.certificate.bound >= 2.0**-7.5


def test_the_tolerance_of_the_certificate() -> None:
    Certificate(0.014, 0.0).check()
    with pytest.raises(CertificateRefused, match=r"certified to 0\.015 only, 0\.014 is asked for"):
        Certificate(0.015, 0.0).check()


def test_everybodys_rotation_is_in_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    owners: list[str] = []
    honest = Simulated.private

    def noted(self: Simulated, owner: str | None, *args: Any, **options: Any) -> Shared:
        if owner is not None:
            owners.append(owner)
        return honest(self, owner, *args, **options)

    monkeypatch.setattr(Simulated, "private", noted)
    X = load_wine().data
    simulate(lambda m, i, r: direct(m, i, 2, r), np.array_split(X, 5))
    assert owners == [f"p{i}/provider" for i in range(5)]


def test_rotations_have_more_digits_than_are_ever_opened() -> None:
    """Digits below those of a double are uniform too: 120 are opened, 220 are worked with."""
    assert WORK_BITS == 220
    below = np.array([int(v) % (1 << 64) for v in _dithered(b"r" * 32, 24).ravel()], dtype=object)
    assert len(set(below.tolist())) == 24 * 24
    assert len({int(v) >> 60 for v in below}) == 16
    fine = rotation(b"r" * 32, 8, 120)
    assert len({int(v) % (1 << 60) for v in fine.ravel()}) == 64


def test_rotation_and_sketch_of_one_seed_have_nothing_in_common() -> None:
    coarse = np.array(
        [float(int(v) >> (WORK_BITS - 50)) * 2.0**-50 for v in _dithered(b"r" * 32, 20).ravel()]
    )
    sketch = gaussians(b"r" * 32, 400, "sketch")
    assert np.abs(coarse - sketch).min() > 1e-6
    assert abs(np.corrcoef(coarse, sketch)[0, 1]) < 0.25


def test_a_product_that_concerns_one_provider_is_made_under_everybodys_key() -> None:
    everybody = frozenset({"a", "b", "c"})

    def held_by(*holders: str) -> Shared:
        return Shared((1, 1), 0, 1, None, frozenset(holders))

    def group(*sides: Shared) -> frozenset[str]:
        return concerned(everybody, Job(((sides[0], sides[1]),), 0, 1, "test"))

    assert group(held_by("a"), held_by("a")) == everybody
    assert group(held_by("a"), held_by("b")) == {"a", "b"}
    assert group(held_by("hub"), held_by("a")) == everybody


def test_numbers_of_rows_are_public_so_rows_are_replaced() -> None:
    assert SFPCAParameters.fixed["neighbours"] == "replace"
