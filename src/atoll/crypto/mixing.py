"""Recipe: layers of ElGamal in Ristretto255, stripped and re-randomised hop by hop."""

from __future__ import annotations

from atoll.crypto.hazmat.group import CIPHER_BYTES, PIECE_BYTES, KeyPair, check_key, keygen, read, strip, wrap

__all__ = ["CIPHER_BYTES", "PIECE_BYTES", "KeyPair", "check_key", "keygen", "read", "strip", "wrap"]
