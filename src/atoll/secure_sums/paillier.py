"""Secure sum by Paillier encryption, many values packed in one ciphertext.

The roles and the trust are those of :mod:`atoll.secure_sums.encrypted`. ``encoding="exponent"`` is the
papers' own way to encrypt real numbers, kept for comparison: significands are encrypted one by one and
exponents travel in the clear, so everyone who sees a ciphertext learns each value's magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from atoll import fixedpoint, randomness
from atoll.crypto.hazmat import ciphertexts, significands
from atoll.crypto.hazmat.packing import Layout
from atoll.crypto.hazmat.paillier import PublicKey, SecretKey, generate, parameters_for
from atoll.errors import MessageError
from atoll.fixedpoint import Limbs
from atoll.secure_sums.base import Cost, SumOptions
from atoll.secure_sums.encrypted import EncryptedSum, one_key_cost


class PaillierOptions(SumOptions, frozen=True):
    """``key_bits``: 2048 or 3072; ``encoding``: packed fixed point, or the papers' clear exponents."""

    key_bits: Literal[2048, 3072] = 2048
    encoding: Literal["packed", "exponent"] = "packed"


class Paillier(EncryptedSum):
    """A session under the receiver's Paillier key."""

    options_type = PaillierOptions
    trust = (
        "The sum is safe while the receiver, who holds the key, and the first contributor, who adds the "
        "ciphertexts, do not collude: together they open every input."
    )

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        slots = 1 if options.encoding == "exponent" else _layout(options.key_bits, contributors).slots
        ciphertext = options.key_bits // 4
        return one_key_cost(contributors, ciphertext, [-(-n // slots) * ciphertext for n in lengths])

    def make_key(self) -> bytes:
        return generate(parameters_for(self.options.key_bits), randomness.fresh_seed()).to_bytes()

    def use_secret(self, secret: bytes) -> bytes:
        self._secret = SecretKey.from_bytes(secret)
        return self._secret.public.to_bytes()

    def use_public(self, public: bytes) -> None:
        self._public = PublicKey.from_bytes(public)

    def encrypt(self, values: Limbs, seed: bytes) -> bytes:
        if self.options.encoding == "exponent":
            return significands.encrypt(self._public, fixedpoint.decode(values), seed)
        layout = _layout(self.options.key_bits, len(self.contributors))
        return ciphertexts.encrypt(self._public, values, layout, seed)

    def adding(self) -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
        so_far: list[bytes] = []
        add = significands.add if self.options.encoding == "exponent" else ciphertexts.add

        def more(ciphertext: bytes) -> None:
            so_far[:] = [add(self._public, [*so_far, ciphertext])]

        return more, lambda: so_far[0]

    def decrypt(self, ciphertext: bytes, n: int) -> Limbs:
        if self.options.encoding == "exponent":
            values = fixedpoint.encode(significands.decrypt(self._secret, ciphertext))
        else:
            values = ciphertexts.decrypt(self._secret, ciphertext)
        if values.shape[1] != n:
            raise MessageError(f"a ciphertext of {values.shape[1]} values came where {n} were due")
        return np.ascontiguousarray(values)


def _layout(key_bits: int, contributors: int) -> Layout:
    """Slots of the grid's width: contributors' headroom is already inside it."""
    value_bits = fixedpoint.WIDTH_BITS - (contributors - 1).bit_length()
    return Layout.plan(key_bits, summands=contributors, value_bits=value_bits)
