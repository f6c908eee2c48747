"""Every message of whole runs, by what is in it: uniform residues, masked shares, Z, tau, trace, outputs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.examples import Example

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols import handshake
from atoll.protocols.pca.sfpca import messages as m
from atoll.protocols.pca.sfpca import protocol
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address
from atoll.study.model import Study

K = 2
RESIDUES = (
    *(mm.EncryptedShare, mm.EncryptedMatrix, mm.ProductPart, mm.SecondHalves),
    *(mm.MaskedShare, mm.MaskedTotal),
)
AHEAD = {"coordinator": {mm.SecondPart}, "provider": {mm.MaskedTotal}}
"""What there is besides where second halves travel ahead."""
KEYS = (mm.KeyParts, mm.AllKeyParts)
SEEDS = (mm.SeedPart, mm.SessionSeed)
PUBLIC = (handshake.Columns, handshake.AgreedColumns, m.RowCount, m.RowCounts)
OPENED = (mm.OpenedShare, mm.OpenedMatrix, mm.PublicNumbers)
EXPECTED = {
    "coordinator": {
        *(handshake.Columns, m.RowCount, mm.SeedPart, mm.KeyParts),
        *(mm.EncryptedShare, mm.ProductPart, mm.MaskedShare, mm.OpenedShare),
    },
    "provider": {
        *(handshake.AgreedColumns, m.RowCounts, mm.SessionSeed, mm.AllKeyParts),
        *(mm.EncryptedMatrix, mm.SecondHalves, mm.OpenedMatrix, mm.PublicNumbers, mm.ReleasedShare),
        mm.Compared,
    },
}


class View(NamedTuple):
    """Everything that was received in one run, and what the roles made of it."""

    rows: np.ndarray
    recipe: str
    arrived: dict[Address, list[Any]]
    learned: dict[Address, Any]

    def of(self, kind: type[Message], role: str | None = None) -> list[Any]:
        return [
            message
            for receiver, messages in self.arrived.items()
            for message in messages
            if isinstance(message, kind) and role in (None, receiver.role)
        ]


class Tap(Observer):
    def __init__(self, study: Study) -> None:
        self.decoder = Decoder[Message](protocol.PROTOCOL.all_messages(study))
        self.arrived: dict[Address, list[Any]] = defaultdict(list)

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.arrived[receiver].append(self.decoder.decode(bytes(data)))


def example(recipe: str) -> tuple[Example, np.ndarray]:
    rng = np.random.default_rng(8)
    columns = 8 if recipe == "direct" else 46
    rows = rng.normal(size=(150, columns)) * np.sqrt(0.5 ** np.arange(columns)) + 0.1
    rows = np.clip(rows, -4, 4)
    islands = as_islands(
        [rows[:50], rows[50:100], rows[100:]] if recipe == "direct" else [rows[:60], rows[60:]]
    )
    study = Study(
        name="view",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator"),
        parameters={"n_components": K, "recipe": recipe, "bounds": 4.0, "accept_determined": True},
        release={"components": ("provider",)},
    )
    return Example(study, islands), rows


@pytest.fixture(scope="module", params=["direct", "strict"])
def view(request: pytest.FixtureRequest) -> View:
    built, rows = example(request.param)
    tap = Tap(built.study)
    outcome = LocalEngine().run(protocol.PROTOCOL, built.study, built.own, observer=tap)
    return View(rows, request.param, dict(tap.arrived), outcome.learned)


def uniform(values: np.ndarray, bins: int) -> float:
    """p-value of small integers being uniform."""
    counts = np.bincount(values, minlength=bins)
    expected = len(values) / bins
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), bins - 1))


def looks_random(body: bytes) -> bool:
    """Residues of 52 bits, two in thirteen bytes: their digits, high and low, and how they follow."""
    data = np.frombuffer(body[: len(body) // 13 * 13], np.uint8).reshape(-1, 13)
    high = data[:, 12]  # the highest digits of every second residue
    steps = np.diff(data[:, 5].astype(int)) % 256
    tests = (uniform(data.ravel(), 256), uniform(high, 256), uniform(data[:, 0], 256), uniform(steps, 256))
    return min(tests) > 1e-9


SINGLE = 8 * 7
"""Bytes of one number: an odd residue ends in four bits that are always zero."""


def different(bodies: list[bytes]) -> list[bytes]:
    """What was sent to several receivers, once, and no more of it than a test needs."""
    return [body[: 13 << 14] for body in dict.fromkeys(bodies) if len(body) > SINGLE]


def together(bodies: list[bytes]) -> bytes:
    """Short messages are looked at as one."""
    body = b"".join(body[: len(body) // 13 * 13] for body in bodies)
    assert len(body) > 1 << 12
    return body


def test_nobody_receives_any_other_kind_of_message(view: View) -> None:
    for receiver, messages in view.arrived.items():
        expected = EXPECTED[receiver.role] | ({mm.MaskedTotal} if receiver.party == "island-0" else set())
        if view.recipe == "strict":
            expected |= AHEAD[receiver.role]
        assert {type(message) for message in messages} == expected, receiver


@pytest.mark.parametrize("kind", [*RESIDUES, mm.SecondPart])
def test_ciphertexts_and_masked_shares_look_uniform(view: View, kind: type[Message]) -> None:
    if kind is mm.SecondPart and view.recipe == "direct":
        assert not view.of(kind)
        return
    bodies = different([bytes(message.body) for message in view.of(kind)])
    assert looks_random(together(bodies))
    for body in bodies:
        assert len(body) < 1 << 16 or looks_random(body)


def test_keys_look_uniform_and_seeds_are_seeds(view: View) -> None:
    for kind in KEYS:
        for message in view.of(kind):
            given = message.parts if kind is mm.KeyParts else [message.body]
            assert all(looks_random(bytes(part)) for part in given)
    parts = [message.seed for message in view.of(mm.SeedPart)]
    assert {len(seed) for seed in parts} == {32}
    assert len(set(parts)) == len(parts)
    assert all(set(message.seeds) == set(parts) for message in view.of(mm.SessionSeed))


def test_the_look_sees_what_is_not_masked() -> None:
    """Ciphertexts travel transformed, which scrambles any matrix but zero: so zero is what is looked at."""
    ring, layout = go.rings()["deep5"], go.Layout(64, 64, 64, 64, 4, 64)
    zero = go.from_ints(np.zeros((64, 64), np.int64), 1)
    assert not looks_random(go.assemble(ring, zero, 20, layout, [bytes(layout.left_polys * ring.poly_size)]))
    assert looks_random(go.Secret(ring, b"k" * 32).encrypt(zero, 1, 20, layout, b"c" * 32, b"e" * 32))
    # Masked shares travel as they are: numbers of 49 bits in place of 52 are seen.
    narrow = np.random.default_rng(1).integers(0, 1 << 49, 2000)
    packed = b"".join((int(a) | int(b) << 52).to_bytes(13, "little") for a, b in narrow.reshape(-1, 2))
    assert not looks_random(packed)


def words(message: Any) -> Any:
    return go.to_ints(np.array(message.words))


def symmetric(column: Any) -> np.ndarray:
    """The matrix of which the upper triangle was opened."""
    size = int(np.sqrt(2 * len(column)))
    out = np.zeros((size, size))
    out[np.triu_indices(size)] = column[:, 0].astype(float)
    return np.triu(out) + np.triu(out, 1).T


def test_opened_are_the_trace_z_and_tau_and_nothing_else(view: View) -> None:
    rho = 8 if view.recipe == "direct" else K + 24
    for receiver, messages in view.arrived.items():
        if receiver.role != "provider":
            continue
        opened = [words(message) for message in messages if isinstance(message, mm.OpenedMatrix)]
        shapes = [x.shape for x in opened]
        assert shapes == [(1, 1), (rho * (rho + 1) // 2, 1)] + [(1, 1)] * (view.recipe == "strict")
        known = view.learned[receiver].inherent
        trace, Z = opened[0].astype(float), symmetric(opened[1])
        # The number itself is n^2 times the total variance (divisor n), in some power of two ...
        power = np.log2(trace[0, 0] / (len(view.rows) ** 2 * np.var(view.rows, axis=0).sum()))
        assert power == pytest.approx(round(power), abs=1e-9)
        # ... Z has the spectrum of the covariance, in a basis that is not its own ...
        theta, values = np.linalg.eigvalsh(Z)[::-1], np.linalg.eigvalsh(np.cov(view.rows.T))[::-1]
        np.testing.assert_allclose(theta[:K] / theta[0], values[:K] / values[0], rtol=1e-6)
        C = np.cov(view.rows.T)[:rho, :rho]
        assert np.abs(np.corrcoef(Z.ravel(), C.ravel())[0, 1]) < 0.9
        # ... and tau is the certificate's.
        if view.recipe == "strict":
            assert float(opened[2][0, 0]) * 2.0**-30 == known["certificate"]["tau"]


def test_public_numbers_follow_from_what_was_opened(view: View) -> None:
    for receiver, messages in view.arrived.items():
        if receiver.role != "provider":
            continue
        Z = next(
            symmetric(words(x)) for x in messages if isinstance(x, mm.OpenedMatrix) and x.words.shape[0] > 1
        )
        numbers = [np.array(message.values) for message in messages if isinstance(message, mm.PublicNumbers)]
        theta, U = numbers[0][0], numbers[0][1:]
        unit = np.trace(Z) / theta.sum()
        np.testing.assert_allclose((U * theta) @ U.T * unit, Z, atol=1e-9 * np.abs(Z).max())
        assert len(numbers) == 1 + (view.recipe == "strict")


def test_shares_of_openings_and_outputs_are_masked(view: View) -> None:
    """Each alone is far wider than what they add up to, and its digits are uniform."""
    for kind in (mm.OpenedShare, mm.ReleasedShare):
        shares = [message for message in view.of(kind) if message.words.shape[0] > 1]
        assert shares
        once = {np.array(share.words).tobytes(): share for share in shares}.values()
        digits = np.concatenate([np.array(share.words)[:, :, 0].ravel() for share in once])
        for place in (0, 8, 24):
            assert uniform((digits >> np.uint64(place)).astype(np.uint8) % 16, 16) > 1e-9
        for share in shares:
            # Entries are below 2^7 in units of 2^fraction (60 for outputs, 120 for Z).
            bits = np.array([abs(int(v)).bit_length() for v in words(share).ravel()])
            assert np.median(bits) > (120 if kind is mm.OpenedShare else 60) + 40


def test_outputs_are_what_the_shares_add_up_to(view: View) -> None:
    providers = [address for address in view.arrived if address.role == "provider"]
    exact = np.linalg.eigh(np.cov(view.rows.T))[1][:, ::-1][:, :K].T
    for address in providers:
        found = view.learned[address].outputs["components"]
        assert np.abs(np.sum(found * exact, axis=1)).min() > 0.9999
        received = [x for x in view.arrived[address] if isinstance(x, mm.ReleasedShare)]
        # Components and offset from everybody else, and nothing more.
        assert len(received) == 2 * (len(providers) - 1)
        assert {x.words.shape[:2] for x in received} == {(K, view.rows.shape[1]), (K, 1)}
