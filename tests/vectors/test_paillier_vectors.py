"""Paillier against known answers that were computed without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import generate_paillier
import numpy as np
import pytest

from atoll import errors
from atoll.crypto.hazmat import ciphertexts, significands
from atoll.crypto.hazmat.packing import Layout, integers_from_limbs, limbs_from_integers
from atoll.crypto.hazmat.paillier import ALL_PARAMETERS, PublicKey, SecretKey, generate

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "paillier.json").read_text())
KEYS = {
    entry["parameters"]: SecretKey.from_bytes(bytes.fromhex(entry["secret"]), ALL_PARAMETERS)
    for entry in VECTORS["keys"]
}
BY_NAME = {parameters.name: parameters for parameters in ALL_PARAMETERS}


def test_the_generator_still_writes_these_vectors() -> None:
    assert generate_paillier.build() == VECTORS


@pytest.mark.parametrize("entry", VECTORS["keys"], ids=lambda entry: entry["parameters"])
def test_keys(entry: dict[str, str]) -> None:
    key = generate(BY_NAME[entry["parameters"]], bytes.fromhex(entry["seed"]))
    assert key.to_bytes().hex() == entry["secret"]
    assert key.public.to_bytes().hex() == entry["public"]
    assert key.public.key_id.hex() == entry["id"]
    assert PublicKey.from_bytes(bytes.fromhex(entry["public"]), ALL_PARAMETERS) == key.public


@pytest.mark.parametrize("case", VECTORS["sums"], ids=lambda case: f"{case['key']}-{case['value_bits']}")
def test_sums(case: dict[str, Any]) -> None:
    key = KEYS[case["key"]]
    layout = Layout.plan(
        key.public.parameters.modulus_bits, summands=len(case["values"]), value_bits=case["value_bits"]
    )
    batches = [
        ciphertexts.encrypt(
            key.public, limbs_from_integers([int(v) for v in values]), layout, bytes.fromhex(seed)
        )
        for values, seed in zip(case["values"], case["seeds"], strict=True)
    ]
    assert [batch.hex() for batch in batches] == case["batches"]
    total = ciphertexts.add(key.public, batches)
    assert total.hex() == case["sum"]
    assert [str(v) for v in integers_from_limbs(ciphertexts.decrypt(key, total))] == case["opened"]


@pytest.mark.parametrize("case", VECTORS["significands"], ids=lambda case: case["key"])
def test_significands(case: dict[str, Any]) -> None:
    key = KEYS[case["key"]]
    values = np.array([float.fromhex(x) for x in case["values"]])
    batch = significands.encrypt(key.public, values, bytes.fromhex(case["seed"]))
    assert batch.hex() == case["batch"]
    assert significands.exponents_of(key.public, batch).tolist() == case["exponents"]
    assert significands.decrypt(key, batch).tolist() == values.tolist()


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda case: case["name"])
def test_bad_messages_are_refused(case: dict[str, str]) -> None:
    key = KEYS["insecure-test-512"]
    batch = bytes.fromhex(case["batch"])
    with pytest.raises(errors.MessageError) as refused:
        ciphertexts.decrypt(key, batch)
    assert type(refused.value).__name__ == case["expect"]
    with pytest.raises(errors.MessageError):
        ciphertexts.add(key.public, [batch])
