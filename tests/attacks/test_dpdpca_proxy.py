"""The proxy's denoising attack on whole runs: it works on the published protocol and fails on ours."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from tests.contract.test_roles import Tap, tapped
from tests.examples import Example, dpdpca

from atoll.codec import Decoder, Message
from atoll.network import Address
from atoll.privacy.paper_forms import centred_scatter
from atoll.protocols import dpdpca_paper as paper
from atoll.protocols import protocol_of
from atoll.protocols.dpdpca_terms import DPDPCAParameters
from atoll.protocols.released import Model

PROXY = Address("proxy", "proxy")
FEATURES = 4


def unit_rows(example: Example) -> np.ndarray:
    rows = np.vstack([island.features(island.columns) for island in example.islands.values()])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def published_components(example: Example, tap: Tap) -> np.ndarray:
    """What the data user sent to an owner, who may publish it."""
    decoder = Decoder[Message](protocol_of("dpdpca").all_messages(example.study))
    inbox = tap.inboxes[Address("island-0", "owner")]
    messages = [decoder.decode(data) for _, data in inbox if data is not None]
    return next(np.array(message.components) for message in messages if isinstance(message, Model))


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def error_of_attack(components: np.ndarray, noise: np.ndarray, scatter: np.ndarray) -> float:
    """U diagonalises S + G', so off the diagonal U S U^T is -U G' U^T, if G' is known."""
    truth = off_diagonal(components @ scatter @ components.T)
    guess = off_diagonal(-components @ noise @ components.T)
    assert np.linalg.norm(truth) > 0.1  # there is something to hide
    return float(np.linalg.norm(guess - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize("mask", ["multiple", "free"])
def test_the_proxy_of_the_published_protocol_removes_its_own_noise(mask: str) -> None:
    example = dpdpca("paillier", calibration="paper", n_components=FEATURES, epsilon=1.0, mask=mask)
    tap = tapped(example)
    p = example.study.read_parameters(DPDPCAParameters)
    noise = paper.gen_noise(tap.records[PROXY].drawn[paper.RECORDED_NOISE], FEATURES, p)
    error = error_of_attack(published_components(example, tap), noise, centred_scatter(unit_rows(example)))
    assert error < 0.01  # what is left is the discretisation


def test_the_proxy_of_the_default_form_knows_no_noise_to_remove() -> None:
    example = dpdpca("paillier", n_components=FEATURES, epsilon=1.0)
    tap = tapped(example)
    components, scatter = published_components(example, tap), centred_scatter(unit_rows(example))
    p = structs.replace(example.study.read_parameters(DPDPCAParameters), calibration="paper")
    drawn = tap.records[PROXY].drawn
    assert len(drawn) == 1  # its key for sealed inputs, and no noise
    for seed in drawn.values():
        assert error_of_attack(components, paper.gen_noise(seed[:32], FEATURES, p), scatter) > 0.3
    assert error_of_attack(components, np.zeros((FEATURES, FEATURES)), scatter) == 1.0


def test_all_the_default_forms_proxy_receives_are_names_keys_and_ciphertexts() -> None:
    example = dpdpca("paillier")
    decoder = Decoder[Message](protocol_of("dpdpca").all_messages(example.study))
    received = {type(decoder.decode(data)).__name__ for _, data in tapped(example).inboxes[PROXY] if data}
    assert received == {"Columns", "SumKey", "SealedInput"}
    without_adder = {
        type(decoder_.decode(data)).__name__
        for run in [dpdpca("masks")]
        for decoder_ in [Decoder[Message](protocol_of("dpdpca").all_messages(run.study))]
        for _, data in tapped(run).inboxes[PROXY]
        if data
    }
    assert without_adder == {"Columns"}


def test_the_mask_as_printed_shows_the_sum_modulo_n() -> None:
    """v' mod N = v mod N where b is a multiple of N; a free mask shows nothing of the kind."""
    for mask, shown in (("multiple", True), ("free", False)):
        example = dpdpca("paillier", calibration="paper", mask=mask)
        tap = tapped(example)
        user = Address("data_user", "data_user")
        decoder = Decoder[Message](protocol_of("dpdpca").all_messages(example.study))
        messages = [decoder.decode(data) for _, data in tap.inboxes[user] if data is not None]
        sent = next(message for message in messages if isinstance(message, paper.NoisyAggregate))
        secret = paper.SecretKey.from_bytes(tap.records[user].drawn["paper/key"])
        masked = paper._integers(secret, sent.v)[:FEATURES]
        rows = unit_rows(example)
        v = paper.discretise(rows).sum(axis=0)
        assert ([value % len(rows) for value in masked] == [int(x) % len(rows) for x in v]) == shown
