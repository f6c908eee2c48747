"""Paillier ciphertexts of whole vectors, as messages: encrypt, add, multiply by constants, open.

    byte 0      version
    byte 1      kind: packed fixed point, or significands with clear exponents (``significands``)
    16 bytes    id of the key
    4 bytes     length of the description, little-endian; then the description
    ...         ciphertexts, little-endian numbers below n^2, each as long as n^2
    16 bytes    BLAKE2b of all before: finds accidents, not forgers (envelopes authenticate)

The description of a packed batch is its layout, the number of values and the *load*: a bound on the
absolute coefficients with which fresh values went into every slot. It is public and grows as batches are
added and multiplied; what would exceed the headroom raises RangeOverflow before it can be wrong.

Every function takes and returns bytes. Those that draw randomness expand it from ``seed`` (32 bytes from
``fresh_seed``), so their result is a function of their arguments.
"""

from __future__ import annotations

import hashlib
import operator
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import gmpy2
import numpy as np
from gmpy2 import mpz

from atoll.crypto.hazmat.fixedbase import FixedBase, best_window
from atoll.crypto.hazmat.packing import (
    GRID_LIMBS,
    Layout,
    Limbs,
    check_limbs,
    integers_from_limbs,
    pack,
    signed,
    unpack,
)
from atoll.crypto.hazmat.paillier import (
    KEY_ID_BYTES,
    PublicKey,
    SecretKey,
    encrypt_raw,
    from_little,
    to_little,
)
from atoll.errors import KeyMismatch, MessageError, ParameterError, RangeOverflow
from atoll.threads import in_threads, joined, spans

BATCH_VERSION = 1
KIND_PACKED = 1
KIND_SIGNIFICANDS = 2
DIGEST_BYTES = 16

_HEAD = struct.Struct(f"<BB{KEY_ID_BYTES}sI")
_PACKED = struct.Struct("<HHHQ")

ENCRYPT_DOMAIN = b"encrypt"
RERANDOMISE_DOMAIN = b"rerandomise"


@dataclass(frozen=True)
class Description:
    """What is public about a packed batch."""

    layout: Layout
    count: int
    load: int

    def to_bytes(self) -> bytes:
        """Layout and count at fixed width, then the load, whose size has no limit."""
        layout = self.layout
        fixed = _PACKED.pack(layout.value_bits, layout.slot_bits, layout.slots, self.count)
        return fixed + self.load.to_bytes((self.load.bit_length() + 7) // 8, "little")

    @classmethod
    def from_bytes(cls, data: bytes) -> Description:
        """Read; anything that ``to_bytes`` would not have written is refused."""
        try:
            value_bits, slot_bits, slots, count = _PACKED.unpack(data[: _PACKED.size])
            read = cls(
                Layout(value_bits, slot_bits, slots), count, int.from_bytes(data[_PACKED.size :], "little")
            )
        except (struct.error, ParameterError):
            raise MessageError("the description of a ciphertext batch is malformed") from None
        if not 1 <= read.load <= read.layout.capacity or read.to_bytes() != data:
            raise MessageError("the description of a ciphertext batch is malformed")
        return read

    def with_load(self, load: int) -> Description:
        """The same with another load, if the headroom allows it."""
        if load > self.layout.capacity:
            raise RangeOverflow(
                f"the result needs headroom for {load} summands, there is room for {self.layout.capacity}",
                hint="plan the layout with more summands",
            )
        return Description(self.layout, self.count, load)


def encrypt(key: PublicKey, values: Limbs, layout: Layout, seed: bytes) -> bytes:
    """Encrypt the columns of ``values``; one beyond the layout's ``value_bits`` raises RangeOverflow."""
    _check_layout(key, layout)
    check_limbs(values)
    description = Description(layout, values.shape[1], 1)
    ciphertexts = encrypt_raw(key, pack(values, layout), seed, ENCRYPT_DOMAIN, description.to_bytes())
    return seal(key, KIND_PACKED, description.to_bytes(), ciphertexts)


def add(key: PublicKey, batches: Iterable[bytes]) -> bytes:
    """The sum of batches of one layout, taken one at a time."""
    total: list[mpz] | None = None
    description: Description | None = None
    for batch in batches:
        other, ciphertexts = _read(key, batch)
        if total is None or description is None:
            total, description = ciphertexts, other
            continue
        if (other.layout, other.count) != (description.layout, description.count):
            raise MessageError("ciphertext batches of different layouts cannot be added")
        description = description.with_load(description.load + other.load)
        total = multiplied(key, total, ciphertexts)
    if total is None or description is None:
        raise ParameterError("there is nothing to add")
    return seal(key, KIND_PACKED, description.to_bytes(), total)


def multiply(key: PublicKey, batch: bytes, factor: int, *, factor_bits: int | None = None) -> bytes:
    """Every value times one constant.

    ``factor_bits`` bounds a secret constant (|factor| < 2^factor_bits), so that the public load says nothing
    more about it. The product of a secret constant must be re-randomised before it leaves.
    """
    description, ciphertexts = _read(key, batch)
    grown = description.with_load(description.load * _load_of(factor, factor_bits))
    return seal(key, KIND_PACKED, grown.to_bytes(), powers(key, ciphertexts, factor))


def multiply_packed(
    key: PublicKey, singles: bytes, factors: Limbs, layout: Layout, *, factor_bits: int
) -> list[bytes]:
    """Row i: the i-th value of ``singles`` times every factor, packed as ``layout`` says.

    ``singles`` holds one value per ciphertext (a layout with one slot); |factor| < 2^factor_bits. One power
    per packed plaintext, none per entry: E(v)^(b_0 + b_1 2^s + ...) = E(v b_0 + v b_1 2^s + ...).
    Re-randomise what leaves.
    """
    description, ciphertexts = _read(key, singles)
    _check_layout(key, layout)
    if description.layout.slots != 1 or description.layout.value_bits != layout.value_bits:
        raise ParameterError(
            "packed factors multiply batches of one slot per ciphertext and the same value_bits"
        )
    check_limbs(factors)
    if any(abs(factor) >> factor_bits for factor in integers_from_limbs(factors)):
        raise RangeOverflow(f"a factor does not fit {factor_bits} bits")
    head = Description(layout, factors.shape[1], 1).with_load(description.load << factor_bits).to_bytes()
    # The factors are packed into the product's slots, but have a width of their own.
    exponents = pack(factors, Layout(factor_bits + 1, layout.slot_bits, layout.slots))
    return [seal(key, KIND_PACKED, head, _many_powers(key, c, exponents)) for c in ciphertexts]


def rerandomise(key: PublicKey, batch: bytes, seed: bytes) -> bytes:
    """The same plaintexts in ciphertexts that nobody can link to these."""
    description, ciphertexts = _read(key, batch)
    digest = hashlib.blake2b(batch, digest_size=32).digest()
    zeros = encrypt_raw(key, [mpz(0)] * len(ciphertexts), seed, RERANDOMISE_DOMAIN, digest)
    return seal(key, KIND_PACKED, description.to_bytes(), multiplied(key, ciphertexts, zeros))


def decrypt(key: SecretKey, batch: bytes, limbs: int = GRID_LIMBS) -> Limbs:
    """The values, as (limbs, n); RangeOverflow where one does not fit so many limbs."""
    description, ciphertexts = _read(key.public, batch)
    n = key.public.n
    plaintexts = [signed(plaintext, n) for plaintext in key.decrypt_raw(ciphertexts)]
    return unpack(plaintexts, description.layout, description.count, limbs)


def describe(key: PublicKey, batch: bytes) -> Description:
    """What the batch says of itself, after all checks."""
    return _read(key, batch)[0]


def seal(key: PublicKey, kind: int, description: bytes, ciphertexts: Sequence[mpz]) -> bytes:
    """A message of ciphertexts under ``key``."""
    size = key.parameters.ciphertext_bytes
    head = _HEAD.pack(BATCH_VERSION, kind, key.key_id, len(description))
    content = b"".join([head, description, *(to_little(c, size) for c in ciphertexts)])
    return content + _digest(content)


def unseal(key: PublicKey, kind: int, batch: bytes) -> tuple[bytes, list[mpz]]:
    """Description and ciphertexts; KeyMismatch or MessageError where something is wrong."""
    if len(batch) < _HEAD.size + DIGEST_BYTES:
        raise MessageError("a ciphertext batch is truncated")
    version, found_kind, key_id, length = _HEAD.unpack_from(batch)
    if version != BATCH_VERSION or found_kind != kind:
        raise MessageError("not a ciphertext batch of this version and kind")
    if key_id != key.key_id:
        raise KeyMismatch(
            "a ciphertext batch was made under another key", hint="check which key the sender holds"
        )
    body = len(batch) - DIGEST_BYTES
    if _digest(batch[:body]) != batch[body:]:
        raise MessageError("a ciphertext batch is truncated or altered")
    start, size = _HEAD.size + length, key.parameters.ciphertext_bytes
    if start > body or (body - start) % size:
        raise MessageError("a ciphertext batch has the wrong length")
    ciphertexts = [from_little(batch[i : i + size]) for i in range(start, body, size)]
    _check_units(key, ciphertexts)
    return batch[_HEAD.size : start], ciphertexts


def multiplied(key: PublicKey, left: Sequence[mpz], right: Sequence[mpz]) -> list[mpz]:
    """Ciphertexts of the sums, position by position."""

    def products(part: slice) -> list[mpz]:
        longer = list(map(operator.mul, left[part], right[part]))
        reduced: list[mpz] = gmpy2.powmod_base_list(longer, mpz(1), key.n_squared)
        return reduced

    return joined(in_threads(products, spans(len(left), 1024)))


def powers(key: PublicKey, ciphertexts: Sequence[mpz], factor: int) -> list[mpz]:
    """Ciphertexts of the plaintexts times ``factor``."""
    # A short exponent of an inverse is far cheaper than the long one that -factor is modulo n.
    bases = [gmpy2.invert(c, key.n_squared) for c in ciphertexts] if factor < 0 else ciphertexts

    def part_powers(part: slice) -> list[mpz]:
        found: list[mpz] = gmpy2.powmod_base_list(list(bases[part]), mpz(abs(factor)), key.n_squared)
        return found

    return joined(in_threads(part_powers, spans(len(bases), 64)))


def _many_powers(key: PublicKey, ciphertext: mpz, exponents: Sequence[mpz]) -> list[mpz]:
    reduced = [exponent % key.n for exponent in exponents]
    bits = key.parameters.modulus_bits
    window = best_window(len(exponents), bits)
    if window is not None:
        rows = b"".join(to_little(exponent, bits // 8) for exponent in reduced)
        table = FixedBase(ciphertext, key.n, bits, window)
        digits = np.frombuffer(rows, dtype=np.uint8).reshape(len(reduced), bits // 8)
        return table.powers(digits, [mpz(0)] * len(reduced))

    def part_powers(part: slice) -> list[mpz]:
        found: list[mpz] = gmpy2.powmod_exp_list(ciphertext, reduced[part], key.n_squared)
        return found

    return joined(in_threads(part_powers, spans(len(reduced), 64)))


def _load_of(factor: int, factor_bits: int | None) -> int:
    if factor_bits is not None:
        if abs(factor) >> factor_bits:
            raise RangeOverflow(f"a factor does not fit {factor_bits} bits")
        return 1 << factor_bits
    # Two's complement reaches one further below zero than above: a negative factor needs that one more.
    return max(1, factor) if factor >= 0 else 1 - factor


def _read(key: PublicKey, batch: bytes) -> tuple[Description, list[mpz]]:
    description, ciphertexts = unseal(key, KIND_PACKED, batch)
    read = Description.from_bytes(description)
    if not read.layout.fits(key.parameters.modulus_bits):
        raise MessageError("a ciphertext batch claims a layout that the key has no room for")
    if len(ciphertexts) != read.layout.plaintexts(read.count):
        raise MessageError("a ciphertext batch has the wrong number of ciphertexts")
    return read, ciphertexts


def _check_layout(key: PublicKey, layout: Layout) -> None:
    if not layout.fits(key.parameters.modulus_bits):
        raise ParameterError("the layout does not fit the key", hint="plan it for this key's modulus_bits")


def _check_units(key: PublicKey, ciphertexts: Sequence[mpz]) -> None:
    """Refuse numbers outside [1, n^2) and those that share a factor with n."""
    product = mpz(1)
    for ciphertext in ciphertexts:
        if ciphertext >= key.n_squared:
            raise MessageError("a ciphertext is not a number below n^2")
        # One gcd for all: the product is a unit exactly if every factor is.
        product = product * ciphertext % key.n
    if gmpy2.gcd(product, key.n) != 1:
        raise MessageError("a ciphertext is not a unit modulo n^2")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES, person=b"atoll/batch").digest()
