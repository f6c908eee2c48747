"""Recipe: sums under lattice encryption, with one key or a key that many share.

What callers need of :mod:`atoll.crypto.hazmat.lattice`: plan a ring for
vectors of a length, make keys or shares of one, encrypt, add, and open with the key or with every share.
"""

from __future__ import annotations

from atoll.crypto.hazmat.lattice import (
    HEADER_BYTES,
    PUBLIC_KEY,
    RESIDUE_BYTES,
    Adder,
    PublicKey,
    SecretKey,
    aggregate,
    carry_bytes,
    ciphertext_bytes,
    coefficients,
    digest_of,
    inspect,
    key_bytes,
    key_reference,
    key_residues,
    key_share,
    keygen,
    plan,
    share_bytes,
)
from atoll.crypto.hazmat.parameters import LATTICE_TABLE

MAX_MEMBERS = min(row.max_members for row in LATTICE_TABLE if row.collective and not row.insecure)
"""Of a key that many share."""
MAX_SUMMANDS = min(row.max_summands for row in LATTICE_TABLE if not row.insecure)

__all__ = [
    "HEADER_BYTES",
    "MAX_MEMBERS",
    "MAX_SUMMANDS",
    "PUBLIC_KEY",
    "RESIDUE_BYTES",
    "Adder",
    "PublicKey",
    "SecretKey",
    "aggregate",
    "carry_bytes",
    "ciphertext_bytes",
    "coefficients",
    "digest_of",
    "inspect",
    "key_bytes",
    "key_reference",
    "key_residues",
    "key_share",
    "keygen",
    "plan",
    "share_bytes",
]
