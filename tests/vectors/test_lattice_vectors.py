"""Known answers of the lattice sums; make_lattice.py wrote them."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import crc32c_reference
import lattice_reference as reference
import numpy as np
import pytest

from atoll import errors
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import lattice_parameters

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("lattice.json").read_text())


def limbs(values: list[str]) -> lattice.Limbs:
    return np.array([[(int(v) >> (64 * k)) % 2**64 for v in values] for k in range(3)], dtype=np.uint64)


def expected(case: dict[str, Any]) -> list[int]:
    return [int(value) % 2**192 for value in case["sum"]]


def digests(messages: list[bytes]) -> list[str]:
    return [hashlib.sha256(message).hexdigest() for message in messages]


@pytest.mark.parametrize("case", VECTORS["single"], ids=lambda case: case["parameters"])
def test_single_key_messages_follow_from_their_seeds(case: dict[str, Any]) -> None:
    row = lattice_parameters(case["parameters"], for_tests=True)
    pair = lattice.keygen(parameters=row, seed=bytes.fromhex(case["key_seed"]), for_tests=True)
    with lattice.PublicKey(pair.public, for_tests=True) as key:
        seeds = [bytes.fromhex(seed) for seed in case["encryption_seeds"]]
        parts = [key.encrypt(limbs(v), seed=s) for v, s in zip(case["values"], seeds, strict=True)]
    total = lattice.add(parts, for_tests=True)
    assert digests([pair.public, *parts, total]) == [
        case["sha256"]["public"],
        *case["sha256"]["parts"],
        case["sha256"]["total"],
    ]
    with lattice.SecretKey(pair.secret, for_tests=True) as secret:
        assert reference.to_integers(secret.decrypt(total)) == expected(case)


@pytest.mark.parametrize("case", VECTORS["collective"], ids=lambda case: case["parameters"])
def test_collective_messages_follow_from_their_seeds(case: dict[str, Any]) -> None:
    row = lattice_parameters(case["parameters"], for_tests=True)
    common = bytes.fromhex(case["reference"])
    pairs = [
        lattice.key_share(common, parameters=row, seed=bytes.fromhex(seed), for_tests=True)
        for seed in case["member_seeds"]
    ]
    public = lattice.aggregate([pair.public for pair in pairs], for_tests=True)
    with lattice.PublicKey(public, for_tests=True) as key:
        seeds = [bytes.fromhex(seed) for seed in case["encryption_seeds"]]
        parts = [key.encrypt(limbs(v), seed=s) for v, s in zip(case["values"], seeds, strict=True)]
        total = lattice.add(parts, for_tests=True)
        shares = [lattice.SecretKey(p.secret, for_tests=True).decryption_share(key, total) for p in pairs]
        opened = key.combine(total, shares)
    wanted = case["sha256"]
    assert digests([public, total]) == [wanted["public"], wanted["total"]]
    assert digests(parts) == wanted["parts"]
    assert digests(shares) == wanted["shares"]
    assert reference.to_integers(opened) == expected(case)


OPEN = {case["parameters"]: case for case in VECTORS["single"] if "total" in case}


@pytest.mark.parametrize("name", OPEN)
def test_fixed_bytes_open_to_fixed_values(name: str) -> None:
    case = OPEN[name]
    with lattice.SecretKey(bytes.fromhex(case["secret"]), for_tests=True) as secret:
        opened = secret.decrypt(base64.b64decode(case["total"]))
    assert reference.to_integers(opened) == expected(case)


@pytest.mark.parametrize("name", OPEN)
def test_the_independent_reader_opens_the_same_bytes(name: str) -> None:
    case = OPEN[name]
    opened, noise = reference.decrypt(base64.b64decode(case["total"]), bytes.fromhex(case["secret"]))
    assert opened == expected(case)
    assert max(map(abs, noise)) < 0.01


def test_fixed_shares_open_a_fixed_ciphertext() -> None:
    case = next(case for case in VECTORS["collective"] if case["parameters"] == "test-collective-10")
    pairs = [
        lattice.key_share(
            bytes.fromhex(case["reference"]),
            parameters=lattice_parameters("test-collective-10", for_tests=True),
            seed=bytes.fromhex(seed),
            for_tests=True,
        )
        for seed in case["member_seeds"]
    ]
    assert [pair.secret.hex() for pair in pairs] == case["secrets"]
    public = lattice.aggregate([pair.public for pair in pairs], for_tests=True)
    shares = [base64.b64decode(share) for share in case["shares"]]
    with lattice.PublicKey(public, for_tests=True) as key:
        opened = key.combine(base64.b64decode(case["total"]), shares)
    assert reference.to_integers(opened) == expected(case)


@pytest.mark.parametrize("case", VECTORS["tampered"], ids=lambda case: case["what"])
def test_a_tampered_ciphertext_is_refused(case: dict[str, Any]) -> None:
    vector = OPEN["test-single-10"]
    message = bytearray(base64.b64decode(vector["total"]))
    message[case["at"]] ^= case["xor"]
    if case.get("mend"):
        crc32c_reference.mend(message)
    with lattice.SecretKey(bytes.fromhex(vector["secret"]), for_tests=True) as secret:
        with pytest.raises(errors.AtollError) as caught:
            secret.decrypt(bytes(message))
        assert type(caught.value).__name__ == case["expect"]
