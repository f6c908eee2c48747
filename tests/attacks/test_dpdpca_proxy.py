"""The proxy's denoising attack on whole runs: it works on the published protocol and fails on ours.

One attacker for all forms. It holds what a coalition of roles holds: every draw in their records, every
message in their inboxes, and what their own keys open of these. From whatever could be a seed it makes noise
in every way that either form of the protocol does, and takes it away from the noisy matrix that the data user
opened; or, knowing less, from published components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, cut, dpdpca, table
from tests.support.taps import Tap, tapped

from atoll.codec import Decoder, Message
from atoll.crypto import envelope
from atoll.data.island import as_islands
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.paper_forms import centred_scatter
from atoll.protocols import protocol_of
from atoll.protocols.pca.dpdpca import paper
from atoll.protocols.pca.dpdpca.protocol import plan_of
from atoll.protocols.pca.dpdpca.terms import DPDPCAParameters
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.encrypted import SealedInput
from atoll.study.address import Address

PROXY, USER = Address("proxy", "proxy"), Address("data_user", "data_user")
OWNERS = tuple(Address(f"island-{i}", "owner") for i in range(4))
FEATURES = 24


class Ended(NamedTuple):
    """A whole run over four owners that publishes all components."""

    example: Example
    tap: Tap
    user: Mapping[str, Any]

    @property
    def parameters(self) -> DPDPCAParameters:
        return self.example.study.read_parameters(DPDPCAParameters)

    @property
    def rows(self) -> np.ndarray:
        return np.vstack([island.features(island.columns) for island in self.example.islands.values()])


def run(**parameters: object) -> Ended:
    asked = {"n_components": FEATURES, "epsilon": 1.0, "row_norm": 60.0} | parameters
    example, tap = dpdpca("paillier", **asked), Tap()
    example = Example(example.study, as_islands(cut(table(120, FEATURES), len(OWNERS))))
    outcome = LocalEngine().run(protocol_of("dpdpca"), example.study, example.own, observer=tap)
    knows = outcome.learned[USER]
    return Ended(example, tap, {**knows.outputs, **knows.inherent})


def received(example: Example, tap: Tap, who: Address) -> list[tuple[Address, Message]]:
    decoder = Decoder[Message](protocol_of("dpdpca").all_messages(example.study))
    return [(sender, decoder.decode(data)) for sender, data in tap.received(who)]


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


def noises(ended: Ended, seed: bytes) -> Iterator[np.ndarray]:
    """All symmetric noise, for rows of length one, that the protocol's code makes from a seed."""
    shared = structs.replace(ended.parameters.privacy, noise="distributed")
    stage = plan_of(ended.example.study, structs.replace(ended.parameters, privacy=shared), FEATURES).moments
    yield paper.gen_noise(seed, FEATURES, ended.parameters)
    for share in (stage.draw_share(seed), stage.noise.draw_share(seed)):
        yield grid.unpack_triangle(share, FEATURES) / grid.MOMENT_UNITS


def left_by_attack(
    ended: Ended, coalition: Sequence[Address], noise: np.ndarray, view: Callable[[np.ndarray], np.ndarray]
) -> float:
    """What the coalition leaves of the noise in what it sees: 1 all of it, 0 nothing."""
    blobs = chain.from_iterable(held(ended.example, ended.tap, who) for who in coalition)
    seeds = {seed for blob in blobs if len(blob) >= 32 for seed in (blob[:32], blob[-32:])}
    guesses = [view(guess) for seed in seeds for guess in noises(ended, seed)]
    return float(np.linalg.norm(best_difference(view(noise), guesses)) / np.linalg.norm(view(noise)))


def best_difference(seen: np.ndarray, guesses: list[np.ndarray]) -> np.ndarray:
    """``seen`` minus some of the guesses, chosen with more help than any attacker has: somebody who says
    whether a choice brings it nearer."""
    left, signs = seen, [1.0] * len(guesses)
    improved = True
    while improved:
        improved = False
        for index, guess in enumerate(guesses):
            changed = left - signs[index] * guess
            if np.linalg.norm(changed) < np.linalg.norm(left):
                left, signs[index], improved = changed, -signs[index], True
    return left


def opened(matrix: np.ndarray) -> np.ndarray:
    """The view of one whom the data user shows the whole noisy matrix."""
    return matrix


def published(ended: Ended) -> Callable[[np.ndarray], np.ndarray]:
    """The view of one who knows components U only: they diagonalise S + G, so off the diagonal U S U^T is
    -U G U^T."""
    U = np.array(ended.user["components"])
    return lambda matrix: (U @ matrix @ U.T)[~np.eye(FEATURES, dtype=bool)]


# ---- what it achieves ----


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("mask", ["multiple", "free"])
def test_the_proxy_of_the_published_protocol_removes_its_own_noise(mask: str) -> None:
    ended = run(calibration="paper", mask=mask)
    noise = ended.user["noisy_scatter"] - centred_scatter(unit_rows(ended.rows))
    for view in (opened, published(ended)):
        assert left_by_attack(ended, [PROXY], noise, view) < 0.01  # the discretisation


class Default(NamedTuple):
    ended: Ended
    noise: np.ndarray

    def left_by(self, *coalition: Address) -> float:
        return left_by_attack(self.ended, coalition, self.noise, opened)


@pytest.fixture(scope="module")
def default() -> Default:
    ended = run()
    plan = plan_of(ended.example.study, ended.parameters, FEATURES)
    centre = dp.Centre(np.array(ended.user["mean"]), 1.0, plan.row_norm)
    exact = grid.unpack_triangle(dp.moments_contribution(plan, ended.rows, centre), FEATURES)
    return Default(ended, ended.user["noisy_moments"] - exact / grid.MOMENT_UNITS)


def test_the_proxy_of_the_default_form_removes_none_of_the_noise(default: Default) -> None:
    assert default.left_by(PROXY) > 0.95


def test_with_one_colluding_owner_it_removes_that_owners_share(default: Default) -> None:
    """One of four: the others' shares are as wide as the stated epsilon needs, sqrt(3/4) of what there is."""
    assert 0.75 < default.left_by(PROXY, OWNERS[2]) < 0.98


def test_only_with_every_owners_record_it_removes_all(default: Default) -> None:
    """So the attacker knows how the default form makes its noise; what it lacks is seeds."""
    assert default.left_by(PROXY, *OWNERS[1:]) > 0.4  # sqrt(1/4)
    assert default.left_by(PROXY, *OWNERS) < 1e-6


def kinds(example: Example) -> set[str]:
    return {type(message).__name__ for _, message in received(example, tapped(example), PROXY)}


def test_all_the_default_forms_proxy_receives_are_names_keys_and_ciphertexts() -> None:
    assert kinds(dpdpca("paillier")) == {"Columns", "SumKey", "SealedInput"}
    assert kinds(dpdpca("masks")) == {"Columns"}


def test_the_mask_as_printed_shows_the_sum_modulo_n() -> None:
    """v' mod N = v mod N where b is a multiple of N; a free mask shows nothing of the kind."""
    for mask, shown in (("multiple", True), ("free", False)):
        example = dpdpca("paillier", calibration="paper", mask=mask)
        tap = tapped(example)
        messages = (message for _, message in received(example, tap, USER))
        sent = next(message for message in messages if isinstance(message, paper.NoisyAggregate))
        secret = paper.SecretKey.from_bytes(tap.records[USER].drawn["paper/key"])
        masked = paper._integers(secret, sent.v)[: len(sent.R)]
        rows = unit_rows(table())
        v = paper.discretise(rows).sum(axis=0)
        assert ([value % len(rows) for value in masked] == [int(x) % len(rows) for x in v]) == shown
