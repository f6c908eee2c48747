"""The papers' own encoding: every number's significand encrypted, its exponent in the clear.

As in S. Hardy et al., Private federated learning on vertically partitioned data via entity resolution and
additively homomorphic encryption, 2017, and the library ``phe``: x = significand 16^exponent, one ciphertext
per number.

For comparison only. **The exponents travel in the clear: every reader of a message learns the magnitude of
every number in it to a factor of 16**, and it costs one ciphertext per number. Atoll's own sums use the fixed
grid and packing of ``packing``, which show nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from atoll.crypto.hazmat.ciphertexts import KIND_SIGNIFICANDS, multiplied, seal, unseal
from atoll.crypto.hazmat.packing import SPARE_BITS, signed
from atoll.crypto.hazmat.paillier import PublicKey, SecretKey, encrypt_raw
from atoll.errors import MessageError, ParameterError, RangeOverflow

BASE_BITS = 4
MANTISSA_BITS = 53
# A mantissa, shifted left by up to three bits to reach an exponent of base 16, and its sign.
FRESH_BITS = MANTISSA_BITS + BASE_BITS
DOMAIN = b"significands"

_FIXED = struct.Struct("<HQ")

Floats = npt.NDArray[np.float64]
Exponents = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Significands:
    """A read message: clear exponents, a bound on the significands' bits, and their ciphertexts."""

    exponents: Exponents
    bits: int
    ciphertexts: list[mpz]


def encode(values: Floats) -> tuple[list[int], Exponents]:
    """Exact significands and exponents of base 16."""
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError("values must be a vector of finite numbers")
    mantissas, binary = np.frexp(values.astype(np.float64))
    lowest = binary.astype(np.int64) - MANTISSA_BITS
    exponents = lowest // BASE_BITS
    significands = np.ldexp(mantissas, MANTISSA_BITS).astype(np.int64) << (lowest - BASE_BITS * exponents)
    return significands.tolist(), exponents.astype(np.int16)


def encrypt(key: PublicKey, values: Floats, seed: bytes) -> bytes:
    """Encrypt significands; exponents stay readable for everybody."""
    significands, exponents = encode(values)
    ciphertexts = encrypt_raw(key, [mpz(s) for s in significands], seed, DOMAIN, exponents.tobytes())
    return _write(key, Significands(exponents, FRESH_BITS, ciphertexts))


def add(key: PublicKey, batches: Iterable[bytes]) -> bytes:
    """The sum: each pair is brought to its lower exponent first."""
    total: Significands | None = None
    for batch in batches:
        read = _read(key, batch)
        total = read if total is None else _sum(key, total, read)
    if total is None:
        raise ParameterError("there is nothing to add")
    return _write(key, total)


def decrypt(key: SecretKey, batch: bytes) -> Floats:
    """The numbers, correctly rounded to doubles."""
    read = _read(key.public, batch)
    n = key.public.n
    plaintexts = [int(signed(plaintext, n)) for plaintext in key.decrypt_raw(read.ciphertexts)]
    return np.array([_to_float(s, e) for s, e in zip(plaintexts, read.exponents.tolist(), strict=True)])


def exponents_of(key: PublicKey, batch: bytes) -> Exponents:
    """What everybody who sees the message learns."""
    return _read(key, batch).exponents


def _sum(key: PublicKey, left: Significands, right: Significands) -> Significands:
    if len(left.exponents) != len(right.exponents):
        raise MessageError("batches of different lengths cannot be added")
    lower = np.minimum(left.exponents, right.exponents)
    shifts = [BASE_BITS * (side.exponents.astype(np.int64) - lower) for side in (left, right)]
    widest = max(left.bits + int(shifts[0].max(initial=0)), right.bits + int(shifts[1].max(initial=0)))
    if widest + 1 > key.parameters.modulus_bits - SPARE_BITS:
        raise RangeOverflow(
            "the exponents lie too far apart for this key", hint="use the packed fixed-point encoding"
        )
    moved_left = _shift(key, left.ciphertexts, shifts[0].tolist())
    moved_right = _shift(key, right.ciphertexts, shifts[1].tolist())
    return Significands(lower, widest + 1, multiplied(key, moved_left, moved_right))


def _shift(key: PublicKey, ciphertexts: Sequence[mpz], bits: Sequence[int]) -> list[mpz]:
    pairs = zip(ciphertexts, bits, strict=True)
    return [gmpy2.powmod(c, mpz(1) << by, key.n_squared) if by else c for c, by in pairs]


def _to_float(significand: int, exponent: int) -> float:
    try:
        if exponent >= 0:
            return float(significand << (BASE_BITS * exponent))
        return significand / (1 << (-BASE_BITS * exponent))
    except OverflowError:
        raise RangeOverflow("an opened number is beyond the range of doubles") from None


def _write(key: PublicKey, batch: Significands) -> bytes:
    description = _FIXED.pack(batch.bits, len(batch.exponents)) + batch.exponents.astype("<i2").tobytes()
    return seal(key, KIND_SIGNIFICANDS, description, batch.ciphertexts)


def _read(key: PublicKey, batch: bytes) -> Significands:
    description, ciphertexts = unseal(key, KIND_SIGNIFICANDS, batch)
    if len(description) != _FIXED.size + 2 * len(ciphertexts):
        raise MessageError("the description of a ciphertext batch is malformed")
    bits, count = _FIXED.unpack_from(description)
    if count != len(ciphertexts) or bits > key.parameters.modulus_bits - SPARE_BITS:
        raise MessageError("the description of a ciphertext batch is malformed")
    exponents = np.frombuffer(description[_FIXED.size :], dtype="<i2").astype(np.int16)
    return Significands(exponents, bits, ciphertexts)
