"""Whoever opens a lattice sum sees coefficients before it puts them together: they say what the sum says.

Up to 0.1.0, short vectors travelled as 64-bit limbs with room for carries. The opened limbs' sums show how
many carries there were, and so, coordinate by coordinate, how many islands were negative.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lattice_reference as reference
import numpy as np
import pytest
from msgspec import structs
from scipy import stats
from tests.support.examples import pppca

from atoll import fixedpoint
from atoll.codec import Decoder, Message, decode
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE_SHORT,
    LATTICE_TABLE,
    LatticeParameters,
)
from atoll.data.island import as_islands
from atoll.errors import MessageError
from atoll.protocols import protocol_of
from atoll.protocols.own import owned
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums.base import SecureSum
from atoll.secure_sums.encrypted import CipherSum
from atoll.secure_sums.lattice import AddedInputs, OpeningShare
from atoll.study.address import Address

MODULUS = 2**192


def signed(value: int) -> int:
    value %= MODULUS
    return value - MODULUS if value >= MODULUS // 2 else value


def integers(limbs: fixedpoint.Limbs) -> list[int]:
    return [signed(value) for value in reference.to_integers(limbs)]


def negatives(pieces: list[int], total: list[int]) -> list[float]:
    """The attack: read the three pieces of every value as limbs. Two's complement adds 2^192 for every
    negative summand, so what the limbs make beyond the sum counts them."""
    n = len(total)
    made = [sum(pieces[k * n + v] << (64 * k) for k in range(3)) for v in range(n)]
    return [(whole - value) / MODULUS for whole, value in zip(made, total, strict=True)]


# ---- 0.1.0: recorded bytes ----


class OldRow(LatticeParameters):
    """A row as 0.1.0 had it: three limbs, each with ten bits of room for carries."""

    @property
    def moduli(self) -> tuple[int, ...]:
        return (1 << 74,) * 3


def old(row: LatticeParameters, number: int) -> OldRow:
    return OldRow(**(vars(row) | {"id": number}))


OLD_ROWS = (old(INSECURE_TEST_SINGLE_SHORT, 131), old(INSECURE_TEST_COLLECTIVE_SHORT, 132))
RECORDED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("lattice_limbs.json").read_text())


@pytest.mark.parametrize("form", ["single", "collective"])
def test_recorded_sums_of_0_1_0_show_how_many_summands_were_negative(form: str) -> None:
    case = RECORDED[form]
    total = reference.parse(base64.b64decode(case["total"]), OLD_ROWS)
    if form == "single":
        phases = reference.phases(total, reference.parse(bytes.fromhex(case["secret"]), OLD_ROWS))
    else:
        shares = [reference.parse(base64.b64decode(share), OLD_ROWS) for share in case["shares"]]
        phases = reference.opened_phases(total, shares)
    pieces, _ = reference.pieces(total, phases)
    truth = [sum(int(v) < 0 for v in column) for column in zip(*case["values"], strict=True)]
    assert negatives(pieces, [int(v) for v in case["sum"]]) == truth == [1, 1, 2, 1]


def test_the_old_rows_are_refused_today() -> None:
    for case in RECORDED.values():
        with pytest.raises(MessageError, match=r"parameter set 13[12] is unknown"):
            lattice.inspect(base64.b64decode(case["total"]), for_tests=True)


# ---- a PPPCA run of five islands, both key modes ----


class Opened(NamedTuple):
    """What the receiver of one sum sees, and what the islands put in."""

    total: list[int]
    pieces: list[int]
    moduli: tuple[int, ...]
    truth: list[int]
    """How many islands were negative, by coordinate."""


class Receiver(Observer):
    """The receiver's view: sums, shares, and the key that it drew."""

    def __init__(self, decoder: Decoder[Message]) -> None:
        self.decoder = decoder
        self.sums: dict[str, bytes] = {}
        self.shares: dict[str, list[bytes]] = defaultdict(list)
        self.keys: dict[Address, bytes] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(data)
        if isinstance(message, CipherSum | AddedInputs):
            self.sums[message.block] = message.body
        elif isinstance(message, OpeningShare):
            self.shares[message.block].append(message.share)

    def finished(self, address: Address, record: MemoryRecord) -> None:
        for tag, drawn in record.drawn.items():
            if tag.endswith("/key"):
                self.keys[address] = decode(drawn, tuple[bytes, bytes])[0]


@pytest.fixture
def contributed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[int]]]:
    """Every island's own integers, by block."""
    put_in: dict[str, list[list[int]]] = defaultdict(list)
    honest = SecureSum.contribute

    async def noted(self: SecureSum, round_name: str, values: fixedpoint.Limbs) -> None:
        put_in[f"{round_name}#0"].append(integers(values))
        await honest(self, round_name, values)

    monkeypatch.setattr(SecureSum, "contribute", noted)
    return put_in


def run(key: str) -> Receiver:
    example = pppca("lattice", {"key": key}, 5)
    rng = np.random.default_rng(3)
    islands = as_islands({name: rng.normal(size=(6, 7)) for name in example.islands})
    study = structs.replace(example.study, parameters={"n_components": 2})
    protocol = protocol_of("pppca")
    view = Receiver(Decoder[Message](protocol.all_messages(study)))
    LocalEngine().run(protocol, study, owned(islands), observer=view)
    return view


def counts(columns: list[list[int]]) -> list[int]:
    return [sum(v < 0 for v in column) for column in zip(*columns, strict=True)]


def opened(view: Receiver, contributed: dict[str, list[list[int]]]) -> list[Opened]:
    found = []
    for block, body in view.sums.items():
        message = reference.parse(body)
        if view.shares:
            phases = reference.opened_phases(message, [reference.parse(s) for s in view.shares[block]])
        else:
            (secret,) = view.keys.values()
            phases = reference.phases(message, reference.parse(secret))
        pieces, _ = reference.pieces(message, phases)
        total = [signed(value) for value in reference.together(message.row, pieces)]
        columns = list(zip(*contributed[block], strict=True))
        assert total == [sum(column) for column in columns]
        found.append(Opened(total, pieces, message.row.moduli, counts(contributed[block])))
    assert len(found) == 2
    return found


@pytest.mark.parametrize("key", ["collective", "server"])
def test_the_server_of_a_pppca_run_sees_nothing_but_the_sums(
    key: str, contributed: dict[str, list[list[int]]]
) -> None:
    for sums in opened(run(key), contributed):
        assert len(sums.moduli) == 3, "a vector this short travels as residues"
        assert sums.pieces == [value % modulus for modulus in sums.moduli for value in sums.total]
        guessed = zip(negatives(sums.pieces, sums.total), sums.truth, strict=True)
        several = [(round(guess), count) for guess, count in guessed if count > 1]
        assert len(several) >= 3
        assert all(guess != count for guess, count in several)


@pytest.mark.parametrize("key", ["collective", "server"])
def test_in_limbs_the_same_server_counts_the_negative_islands(
    key: str, contributed: dict[str, list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1.0's form in the same run: limbs are encrypted one by one, and added with their carries."""
    seen: list[list[int]] = []
    encrypt, decrypt, combine = (
        lattice.PublicKey.encrypt,
        lattice.SecretKey.decrypt,
        lattice.PublicKey.combine,
    )

    def split(self: lattice.PublicKey, limbs: lattice.Limbs, **options: Any) -> bytes:
        low = limbs.reshape(1, -1)
        return encrypt(self, np.concatenate([low, np.zeros((2, low.size), np.uint64)]), **options)

    def joined(parts: lattice.Limbs) -> lattice.Limbs:
        pieces = reference.to_integers(parts)
        seen.append(pieces)
        n = len(pieces) // 3
        values = [sum(pieces[k * n + v] << (64 * k) for k in range(3)) % MODULUS for v in range(n)]
        return np.array([[(v >> (64 * k)) % 2**64 for v in values] for k in range(3)], dtype=np.uint64)

    monkeypatch.setattr(lattice.PublicKey, "encrypt", split)
    monkeypatch.setattr(lattice.SecretKey, "decrypt", lambda self, data: joined(decrypt(self, data)))
    monkeypatch.setattr(
        lattice.PublicKey, "combine", lambda self, data, shares: joined(combine(self, data, shares))
    )
    run(key)
    assert len(seen) == len(contributed) == 2
    for pieces, columns in zip(seen, contributed.values(), strict=True):
        total = [sum(column) for column in zip(*columns, strict=True)]
        assert negatives(pieces, total) == counts(columns)
        assert len([count for count in counts(columns) if count > 1]) >= 3


# ---- every row, every kind of length ----


def look(row: LatticeParameters, vectors: list[list[int]], width: int = 1) -> tuple[list[int], list[float]]:
    """What the key holder, or the receiver with everybody's shares, sees of each coefficient of a sum."""
    limbs = [
        np.array([[(v >> (64 * k)) % 2**64 for v in vector] for k in range(3)], dtype=np.uint64)
        for vector in vectors
    ]
    if not row.collective:
        pair = lattice.keygen(parameters=row, width=width, for_tests=True)
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            total = lattice.add([key.encrypt(v, summands=len(limbs)) for v in limbs], for_tests=True)
        message = reference.parse(total)
        return reference.pieces(message, reference.phases(message, reference.parse(pair.secret)))
    members = [lattice.key_share(bytes(32), parameters=row, width=width, for_tests=True) for _ in range(2)]
    public = lattice.aggregate([member.public for member in members], for_tests=True)
    with lattice.PublicKey(public, for_tests=True) as key:
        total = lattice.add([key.encrypt(v, summands=len(limbs)) for v in limbs], for_tests=True)
        shares = [
            lattice.SecretKey(member.secret, for_tests=True).decryption_share(key, total)
            for member in members
        ]
    message = reference.parse(total)
    return reference.pieces(message, reference.opened_phases(message, [reference.parse(s) for s in shares]))


def cases() -> Iterator[Any]:
    for row in LATTICE_TABLE:
        full = row.degree // row.coefficients
        lengths = [(1, 1), (78, 1)]
        if row.insecure:
            # One polynomial less one, full, one more; several under one c1; several groups.
            lengths += [(full - 1, 1), (full, 1), (full + 1, 1), (2 * full + 1, 2), (5 * full + 3, 2)]
        for n, width in lengths:
            yield pytest.param(row, n, width, id=f"{row.name}-{n}-{width}")


def of_either_sign(n: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 188, n)
    return [int(rng.integers(-(2**62), 2**62)) << int(size) >> 62 for size in sizes]


@pytest.mark.parametrize(("row", "n", "width"), list(cases()))
def test_every_coefficient_is_a_function_of_the_sum(row: LatticeParameters, n: int, width: int) -> None:
    vectors = [of_either_sign(n, seed) for seed in range(3)]
    total = [sum(column) for column in zip(*vectors, strict=True)]
    pieces, noise = look(row, vectors, width)
    assert pieces == [value % modulus for modulus in row.moduli for value in total]
    assert max(map(abs, noise)) < 0.05


SMALL = [row for row in LATTICE_TABLE if row.insecure]


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.name)
def test_inputs_of_equal_sum_are_not_told_apart(row: LatticeParameters) -> None:
    """Many carries and signs, or none: the same coefficients, and noise that is distributed alike."""
    n = 300
    total = [abs(v) for v in of_either_sign(n, 5)]
    wild = [2**180 + v for v in of_either_sign(n, 6)]
    calm = [total, [0] * n, [0] * n]
    mixed = [wild, [-w for w in wild], total]
    seen: dict[str, list[float]] = {"calm": [], "mixed": []}
    for _ in range(4):
        (first, calm_noise), (second, mixed_noise) = look(row, calm), look(row, mixed)
        assert first == second
        seen["calm"] += calm_noise
        seen["mixed"] += mixed_noise
    for k in range(row.coefficients):  # noise is in units of the modulus
        one, other = (np.array(v).reshape(4, row.coefficients, n)[:, k].ravel() for v in seen.values())
        assert stats.ks_2samp(one, other).pvalue > 1e-7
        scale = one.std()
        assert abs(one.mean() - other.mean()) < 6 * scale * np.sqrt(2 / one.size)
        assert 0.75 < other.std() / scale < 1.33
