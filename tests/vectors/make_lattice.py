"""Write lattice.json: known answers of the lattice sums. Run it from the repository's root:

    PYTHONPATH=src:tests/vectors python tests/vectors/make_lattice.py

Seeds are fixed and everything follows from them. Before anything is written, the independent reader in
lattice_reference.py must open the ciphertexts to the same values.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import lattice_reference as reference
import numpy as np

from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import LATTICE_TABLE, LatticeParameters

VALUES = [[0, 1, -1, 2**190 - 1], [5, -(2**127), 2**64, -(2**190)], [-7, 12345678901234567890, -(2**64), 1]]


def seed(*parts: object) -> bytes:
    return hashlib.sha256("/".join(map(str, ("atoll vectors", *parts))).encode()).digest()


def limbs(values: list[int]) -> lattice.Limbs:
    return np.array([[(v >> (64 * k)) % 2**64 for v in values] for k in range(3)], dtype=np.uint64)


def digest(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()


def single(row: LatticeParameters) -> dict[str, object]:
    pair = lattice.keygen(parameters=row, seed=seed(row.name, "key"), for_tests=True)
    with lattice.PublicKey(pair.public, for_tests=True) as key:
        parts = [key.encrypt(limbs(v), seed=seed(row.name, i)) for i, v in enumerate(VALUES)]
    total = lattice.add(parts, for_tests=True)
    case: dict[str, object] = {
        "parameters": row.name,
        "key_seed": seed(row.name, "key").hex(),
        "encryption_seeds": [seed(row.name, i).hex() for i in range(len(VALUES))],
        "values": [[str(v) for v in values] for values in VALUES],
        "sum": [str(sum(column)) for column in zip(*VALUES, strict=True)],
        "sha256": {
            "public": digest(pair.public),
            "parts": [digest(p) for p in parts],
            "total": digest(total),
        },
    }
    if row.insecure:
        opened, _ = reference.decrypt(total, pair.secret)
        assert opened == [sum(column) % 2**192 for column in zip(*VALUES, strict=True)]
        case["secret"], case["total"] = pair.secret.hex(), base64.b64encode(total).decode()
    return case


def collective(row: LatticeParameters) -> dict[str, object]:
    common = seed(row.name, "reference")
    pairs = [
        lattice.key_share(common, parameters=row, seed=seed(row.name, "member", i), for_tests=True)
        for i in range(len(VALUES))
    ]
    public = lattice.aggregate([pair.public for pair in pairs], for_tests=True)
    with lattice.PublicKey(public, for_tests=True) as key:
        parts = [key.encrypt(limbs(v), seed=seed(row.name, i)) for i, v in enumerate(VALUES)]
        total = lattice.add(parts, for_tests=True)
        shares = []
        for pair in pairs:
            with lattice.SecretKey(pair.secret, for_tests=True) as secret:
                shares.append(secret.decryption_share(key, total))
    case: dict[str, object] = {
        "parameters": row.name,
        "reference": common.hex(),
        "member_seeds": [seed(row.name, "member", i).hex() for i in range(len(VALUES))],
        "encryption_seeds": [seed(row.name, i).hex() for i in range(len(VALUES))],
        "values": [[str(v) for v in values] for values in VALUES],
        "sum": [str(sum(column)) for column in zip(*VALUES, strict=True)],
        "sha256": {
            "public": digest(public),
            "parts": [digest(p) for p in parts],
            "total": digest(total),
            "shares": [digest(s) for s in shares],
        },
    }
    if row.insecure:
        case["secrets"] = [pair.secret.hex() for pair in pairs]
        case["total"] = base64.b64encode(total).decode()
        case["shares"] = [base64.b64encode(s).decode() for s in shares]
    return case


def tampered() -> list[dict[str, object]]:
    """Changes to the total of the case test-single-10; each must be refused as named."""
    return [
        {"what": "version", "at": 0, "xor": 2, "expect": "MessageError"},
        {"what": "kind", "at": 1, "xor": 1, "expect": "MessageError"},
        {"what": "unknown set", "at": 2, "xor": 64, "expect": "MessageError"},
        {"what": "width", "at": 3, "xor": 3, "expect": "MessageError"},
        {"what": "summands", "at": 4, "xor": 1, "expect": "MessageError"},
        {"what": "summands beyond the limit", "at": 6, "xor": 1, "expect": "RangeOverflow"},
        {"what": "values", "at": 8, "xor": 1, "expect": "MessageError"},
        {"what": "absurd number of values", "at": 15, "xor": 128, "expect": "MessageError"},
        {"what": "key id", "at": 20, "xor": 1, "expect": "MessageError"},
        {"what": "key id, checksum mended", "at": 20, "xor": 1, "mend": True, "expect": "KeyMismatch"},
        {"what": "checksum", "at": 32, "xor": 1, "expect": "MessageError"},
        {"what": "c1", "at": 1000, "xor": 255, "expect": "MessageError"},
        # Only what moves values by a fraction shows: ciphertexts are malleable, seals are not ours to check.
        {"what": "c1, checksum mended", "at": 37, "xor": 128, "mend": True, "expect": "MessageError"},
        {"what": "c0", "at": -1, "xor": 1, "expect": "MessageError"},
    ]


def main() -> None:
    vectors = {
        "single": [single(row) for row in LATTICE_TABLE if not row.collective],
        "collective": [collective(row) for row in LATTICE_TABLE if row.collective],
        "tampered": tampered(),
    }
    path = Path(__file__).with_name("lattice.json")
    path.write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    main()
