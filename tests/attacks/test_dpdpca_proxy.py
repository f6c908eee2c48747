"""The proxy's denoising attack on whole runs: it works on the published protocol and fails on ours.

One attacker for all forms. It holds what a coalition of roles holds: every draw in their records, every
message in their inboxes, and what their own keys open of these. From whatever could be a seed it makes noise
in every way that either form of the protocol does, and takes it away from published components.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pytest
from msgspec import structs
from tests.contract.test_roles import Tap, tapped
from tests.examples import Example, cut, dpdpca, table

from atoll.codec import Decoder, Message
from atoll.crypto import envelope
from atoll.data.island import as_islands
from atoll.network import Address
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.paper_forms import centred_scatter
from atoll.protocols import dpdpca_paper as paper
from atoll.protocols import protocol_of
from atoll.protocols.dpdpca import plan_of
from atoll.protocols.dpdpca_terms import DPDPCAParameters
from atoll.protocols.released import Model
from atoll.secure_sums.encrypted import SealedInput

PROXY = Address("proxy", "proxy")
OWNERS = tuple(Address(f"island-{i}", "owner") for i in range(4))
FEATURES = 24


def run(**parameters: object) -> tuple[Example, Tap]:
    """A whole run over four owners that publishes all components."""
    asked = {"n_components": FEATURES, "epsilon": 1.0, "row_norm": 60.0} | parameters
    example = dpdpca("paillier", **asked)
    example = Example(example.study, as_islands(cut(table(120, FEATURES), len(OWNERS))))
    return example, tapped(example)


def received(example: Example, tap: Tap, who: Address) -> list[tuple[Address, Message]]:
    decoder = Decoder[Message](protocol_of("dpdpca").all_messages(example.study))
    return [(sender, decoder.decode(data)) for sender, data in tap.inboxes[who] if data is not None]


def published(example: Example, tap: Tap) -> Model:
    """What the data user sent to an owner, who may publish it."""
    messages = (message for _, message in received(example, tap, OWNERS[0]))
    return next(message for message in messages if isinstance(message, Model))


# ---- the attacker ----


def held(example: Example, tap: Tap, who: Address) -> Iterator[bytes]:
    """Every string of bytes that a role drew, received, or can take out of an envelope."""
    drawn = tap.records[who].drawn
    yield from drawn.values()
    for sender, message in received(example, tap, who):
        for name in message.__struct_fields__:
            value = getattr(message, name)
            yield from (value,) if isinstance(value, bytes) else ()
        if isinstance(message, SealedInput):
            (tag,) = (tag for tag in drawn if tag.endswith("/adder"))
            context = f"{tag.removesuffix('/adder')}/{message.block}/{sender}"
            yield envelope.unseal(drawn[tag], message.body, context)


def noises(example: Example, seed: bytes) -> Iterator[np.ndarray]:
    """All symmetric noise, for rows of length one, that the protocol's code makes from a seed."""
    p = example.study.read_parameters(DPDPCAParameters)
    stage = plan_of(example.study, p, FEATURES).moments
    yield paper.gen_noise(seed, FEATURES, structs.replace(p, calibration="paper"))
    for share in (stage.draw_share(seed), stage.noise.draw_share(seed)):
        yield grid.unpack_triangle(share, FEATURES) / grid.MOMENT_UNITS


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def left_by_attack(example: Example, tap: Tap, coalition: Sequence[Address], exact: np.ndarray) -> float:
    """What stays hidden of ``exact``, the matrix to which noise G was added: 1 all of it, 0 nothing.

    U diagonalises exact + G, so off the diagonal U exact U^T is -U G U^T for whoever knows G.
    """
    U = np.array(published(example, tap).components)
    hidden = off_diagonal(U @ exact @ U.T)
    assert np.linalg.norm(hidden) > 10.0  # there is something to hide
    blobs = chain.from_iterable(held(example, tap, who) for who in coalition)
    seeds = {seed for blob in blobs if len(blob) >= 32 for seed in (blob[:32], blob[-32:])}
    guesses = [off_diagonal(-U @ noise @ U.T) for seed in seeds for noise in noises(example, seed)]
    return float(np.linalg.norm(best_difference(hidden, guesses)) / np.linalg.norm(hidden))


def best_difference(hidden: np.ndarray, guesses: list[np.ndarray]) -> np.ndarray:
    """``hidden`` minus some of the guesses, chosen with more help than any attacker has: somebody who says
    whether a choice brings it nearer."""
    left, signs = hidden, [1.0] * len(guesses)
    improved = True
    while improved:
        improved = False
        for index, guess in enumerate(guesses):
            changed = left - signs[index] * guess
            if np.linalg.norm(changed) < np.linalg.norm(left):
                left, signs[index], improved = changed, -signs[index], True
    return left


def unit_rows(example: Example) -> np.ndarray:
    rows = pooled(example)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def pooled(example: Example) -> np.ndarray:
    return np.vstack([island.features(island.columns) for island in example.islands.values()])


def exact_moments(example: Example, tap: Tap) -> np.ndarray:
    """Second moments around the published centre, as the default form sums them."""
    plan = plan_of(example.study, example.study.read_parameters(DPDPCAParameters), FEATURES)
    centre = dp.Centre(np.array(published(example, tap).mean), 1.0, plan.row_norm)
    moments = dp.moments_contribution(plan, pooled(example), centre)
    return grid.unpack_triangle(moments, FEATURES) / grid.MOMENT_UNITS


# ---- what it achieves ----


@pytest.mark.parametrize("mask", ["multiple", "free"])
def test_the_proxy_of_the_published_protocol_removes_its_own_noise(mask: str) -> None:
    example, tap = run(calibration="paper", mask=mask)
    left = left_by_attack(example, tap, [PROXY], centred_scatter(unit_rows(example)))
    assert left < 0.01  # the discretisation


@pytest.fixture(scope="module")
def default() -> tuple[Example, Tap]:
    return run()


def test_the_proxy_of_the_default_form_removes_none_of_the_noise(default: tuple[Example, Tap]) -> None:
    assert left_by_attack(*default, [PROXY], exact_moments(*default)) > 0.95


def test_with_one_colluding_owner_it_removes_that_owners_share(default: tuple[Example, Tap]) -> None:
    """One of four: the others' shares are as wide as the stated epsilon needs, sqrt(3/4) of what there is."""
    left = left_by_attack(*default, [PROXY, OWNERS[2]], exact_moments(*default))
    assert left == pytest.approx(np.sqrt(3 / 4), abs=0.07)


def test_only_with_every_owners_record_it_removes_all(default: tuple[Example, Tap]) -> None:
    """So the attacker knows how the default form makes its noise; what it lacks is seeds."""
    assert left_by_attack(*default, [PROXY, *OWNERS], exact_moments(*default)) < 1e-6
    assert left_by_attack(*default, [PROXY, *OWNERS[1:]], exact_moments(*default)) > 0.4  # sqrt(1/4)


def kinds(example: Example) -> set[str]:
    return {type(message).__name__ for _, message in received(example, tapped(example), PROXY)}


def test_all_the_default_forms_proxy_receives_are_names_keys_and_ciphertexts() -> None:
    assert kinds(dpdpca("paillier")) == {"Columns", "SumKey", "SealedInput"}
    assert kinds(dpdpca("masks")) == {"Columns"}


def test_the_mask_as_printed_shows_the_sum_modulo_n() -> None:
    """v' mod N = v mod N where b is a multiple of N; a free mask shows nothing of the kind."""
    user = Address("data_user", "data_user")
    for mask, shown in (("multiple", True), ("free", False)):
        example = dpdpca("paillier", calibration="paper", mask=mask)
        tap = tapped(example)
        messages = (message for _, message in received(example, tap, user))
        sent = next(message for message in messages if isinstance(message, paper.NoisyAggregate))
        secret = paper.SecretKey.from_bytes(tap.records[user].drawn["paper/key"])
        masked = paper._integers(secret, sent.v)[: len(sent.R)]
        rows = unit_rows(example)
        v = paper.discretise(rows).sum(axis=0)
        assert ([value % len(rows) for value in masked] == [int(x) % len(rows) for x in v]) == shown
