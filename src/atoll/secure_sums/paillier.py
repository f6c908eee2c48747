"""Secure sum by Paillier encryption, many values packed in one ciphertext.

The roles and the trust are those of :mod:`atoll.secure_sums.encrypted`. ``encoding="exponent"`` is the
papers' own way to encrypt real numbers, kept for comparison: significands are encrypted one by one and
exponents travel in the clear, so everyone who sees a ciphertext learns each value's magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from atoll import fixedpoint, randomness
from atoll.crypto.paillier import (
    Layout,
    PublicKey,
    SecretKey,
    ciphertexts,
    generate,
    parameters_for,
    significands,
)
from atoll.fixedpoint import Limbs
from atoll.secure_sums.base import Cost, Inexact, SecureSum, SumOptions, of_length
from atoll.secure_sums.encrypted import EncryptedSum, one_key_cost


class PaillierOptions(SumOptions, frozen=True):
    """``key_bits``: 2048 or 3072; ``encoding``: packed fixed point, or the papers' clear exponents."""

    key_bits: Literal[2048, 3072] = 2048
    encoding: Literal["packed", "exponent"] = "packed"


class Paillier(EncryptedSum):
    """A session under the receiver's Paillier key; with encoding='exponent', :class:`PaillierExponent`."""

    options_type = PaillierOptions
    multiplies = True

    @classmethod
    def chosen(cls, options: Any, most: int) -> type[SecureSum]:
        return PaillierExponent if options.encoding == "exponent" else cls

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        slots, ciphertext = _layout(options.key_bits, contributors).slots, options.key_bits // 4
        return one_key_cost(contributors, ciphertext, [-(-n // slots) * ciphertext for n in lengths])

    def make_key(self) -> bytes:
        return generate(parameters_for(self.options.key_bits), randomness.fresh_seed()).to_bytes()

    def use_secret(self, secret: bytes) -> bytes:
        self._secret = SecretKey.from_bytes(secret)
        return self._secret.public.to_bytes()

    def use_public(self, public: bytes) -> None:
        self._public = PublicKey.from_bytes(public)

    def encrypt(self, values: Limbs, seed: bytes) -> bytes:
        layout = _layout(self.options.key_bits, len(self.contributors))
        return ciphertexts.encrypt(self._public, values, layout, seed)

    def add_batches(self, batches: list[bytes]) -> bytes:
        return ciphertexts.add(self._public, batches)

    def adding(self) -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
        so_far: list[bytes] = []

        def more(ciphertext: bytes) -> None:
            so_far[:] = [self.add_batches([*so_far, ciphertext])]

        return more, lambda: so_far[0]

    def decrypt(self, ciphertext: bytes, n: int) -> Limbs:
        return of_length(ciphertexts.decrypt(self._secret, ciphertext), n)


class PaillierExponent(Paillier):
    """The papers' encoding: significands one by one, exponents in the clear."""

    hides = "significands are encrypted, but exponents are not: whoever adds learns each value's magnitude"
    multiplies = False
    inexact = Inexact(
        "encoding='exponent' shows the magnitude of every owner's numbers and rounds the noise",
        "a private study needs encoding='packed'",
        "encoding",
    )

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        leak = " The magnitude of every number is shown to the island that adds and to the receiver."
        return super().trust(contributors, options) + leak

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        ciphertext = options.key_bits // 4
        return one_key_cost(contributors, ciphertext, [n * ciphertext for n in lengths])

    def encrypt(self, values: Limbs, seed: bytes) -> bytes:
        return significands.encrypt(self._public, fixedpoint.decode(values), seed)

    def add_batches(self, batches: list[bytes]) -> bytes:
        return significands.add(self._public, batches)

    def decrypt(self, ciphertext: bytes, n: int) -> Limbs:
        return of_length(fixedpoint.encode(significands.decrypt(self._secret, ciphertext)), n)


def _layout(key_bits: int, contributors: int) -> Layout:
    """Slots of the grid's width: contributors' headroom is already inside it."""
    value_bits = fixedpoint.WIDTH_BITS - (contributors - 1).bit_length()
    return Layout.plan(key_bits, summands=contributors, value_bits=value_bits)
