"""Recipe: sums and products with clear numbers under Paillier encryption.

Keys by their size in bits, a layout of slots, batches of ciphertexts (:mod:`ciphertexts`), and the papers'
own encoding with clear exponents (:mod:`significands`), products of two parties' numbers (:mod:`gilboa`).
"""

from __future__ import annotations

from atoll.crypto.hazmat import ciphertexts, gilboa, significands
from atoll.crypto.hazmat.packing import Layout, integers_from_limbs, limbs_from_integers
from atoll.crypto.hazmat.paillier import PublicKey, SecretKey, generate, parameters_for

__all__ = [
    "Layout",
    "PublicKey",
    "SecretKey",
    "ciphertexts",
    "generate",
    "gilboa",
    "integers_from_limbs",
    "limbs_from_integers",
    "parameters_for",
    "significands",
]
