"""The published protocol's steps: exact integers, both masks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.examples import dpdpca

from atoll.crypto.hazmat import ciphertexts
from atoll.crypto.hazmat.paillier import generate, parameters_for
from atoll.errors import PrivacyError, RangeOverflow, StudyError
from atoll.privacy.ledger import Ledger
from atoll.privacy.paper_forms import centred_scatter
from atoll.protocols.pca.dpdpca import paper
from atoll.protocols.pca.dpdpca.terms import DPDPCAParameters
from atoll.runtime.execute import run_study

SEED = bytes(range(32))
STATED = {"epsilon": 1.0, "delta": 1e-5, "row_norm": 1.0, "calibration": "paper"}
P = DPDPCAParameters.read(STATED, ())


@pytest.fixture(scope="module")
def secret():
    return generate(parameters_for(2048), SEED)


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(3)
    return [rng.normal(size=(rows, 9)) + 1.0 for rows in (5, 12, 0)]


def test_discretising_is_equation_5():
    values = np.array([-1.0, -0.5, 0.0, 0.3, 1.0])
    assert paper.discretise(values).tolist() == [int(np.floor((2**16 - 1) * (x + 1.0) / 2.0)) for x in values]


@pytest.mark.parametrize("free", [False, True])
def test_the_user_opens_the_scatter_plus_noise(secret, tables, free):
    key = secret.public
    shares = [paper.gen_share(key, X, len(tables), P, bytes([i]) * 32) for i, X in enumerate(tables)]
    total = shares[0]
    for share in shares[1:]:
        total = paper.aggregate(key, total, share)
    assert paper._integers(secret, total.N) == [17]
    mask, noise = paper.gen_mask(SEED, 9), paper.gen_noise(SEED, 9, P)
    S = paper.open_aggregate(secret, paper.perturb(key, total, 17, mask, noise, free, SEED), 17, free)
    levels = [paper.discretise(paper.unit_rows(X, P)) * paper.UNIT for X in tables]
    assert np.abs(S - centred_scatter(np.vstack(levels)) - noise).max() < 1e-8


def test_masks_are_forty_bits_wider_than_the_sum_they_hide():
    mask = paper.gen_mask(SEED, 1000)
    largest_sum = (1 << 24) * ((1 << 16) - 1)
    assert max(mask).bit_length() >= largest_sum.bit_length() + 40 - 1
    assert len(set(mask)) == 1000


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "wishart"])
def test_every_mechanism_gives_symmetric_noise(noise):
    G = paper.gen_noise(SEED, 5, DPDPCAParameters.read({**STATED, "noise": noise}, ()))
    assert G.shape == (5, 5)
    assert (G == G.T).all()


def test_a_batch_is_cut_between_ciphertexts_only(secret):
    layout = paper.packed_layout(secret.public, 3)
    values = list(range(2 * layout.slots))
    batch = ciphertexts.encrypt(secret.public, paper._limbs(values), layout, SEED)
    halves = ciphertexts.split(secret.public, batch, 2)
    assert [x for half in halves for x in paper._integers(secret, half)] == values
    with pytest.raises(ValueError, match="between ciphertexts"):
        ciphertexts.split(secret.public, batch, 4)


def test_an_island_with_a_ledger_refuses_the_published_form():
    example = dpdpca("paillier", calibration="paper")
    with Ledger() as ledger:
        example = example._replace(ledgers={"island-2": ledger})
        with pytest.raises(PrivacyError, match=r"island-2: calibration='paper' keeps no privacy promise"):
            run_study(example.study, example.own)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"secure_sum": "shares"}, "packed Paillier only"),
        ({"delta": None}, "needs a delta"),
        ({"noise": "distributed"}, "not the paper's"),
        ({"row_norm": None}, "public bounds"),
        ({"assume_centered": True}, "assume_centered cannot be used with calibration='paper'"),
    ],
)
def test_what_the_published_form_cannot_do_is_refused(options, said):
    example = dpdpca(**({"secure_sum": "paillier", "calibration": "paper"} | options))
    with pytest.raises((StudyError, ValueError), match=said):
        run_study(example.study, example.own)


def test_owners_leave_each_other_room_for_2_to_the_24_rows(secret):
    owners = 2**22
    paper.gen_share(secret.public, np.ones((4, 2)), owners, P, SEED)
    with pytest.raises(RangeOverflow, match="5 rows are more than the paper's form has room for"):
        paper.gen_share(secret.public, np.ones((5, 2)), owners, P, SEED)
