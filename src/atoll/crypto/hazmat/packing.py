"""Many fixed-point numbers in one big integer, with room to add them.

A vector of signed integers, as planar uint64 limbs of shape (k, n), becomes plaintexts

    P = v_0 + v_1 2^s + v_2 2^(2s) + ...          (signed digits, s = slot_bits)

Digits stay signed: sums and products by constants of either sign need no bookkeeping, and unpacking
adds 2^(s-1) to every digit, so that no borrow crosses a slot, reads the digits and takes it off
again. Adding 2^(s-1) modulo 2^s is a flip of the digit's highest bit: everything is done on bit arrays.

What a slot can hold is public arithmetic: values of ``value_bits`` bits (two's complement), and sums
whose coefficients add up to at most 2^(slot_bits - value_bits) in absolute value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from atoll.errors import ParameterError, RangeOverflow

Limbs = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.uint8]

LIMB_BITS = 64
GRID_BITS = 192
GRID_LIMBS = GRID_BITS // LIMB_BITS

# One bit for the sign of P, one because n may be anywhere between 2^(bits-1) and 2^bits.
SPARE_BITS = 2
# Bit arrays take a byte per bit: plaintexts are packed in blocks of about this many bits.
BLOCK_BITS = 1 << 25


@dataclass(frozen=True)
class Layout:
    """How values lie in plaintexts: ``slots`` digits of ``slot_bits``, each for ``value_bits``-bit values."""

    value_bits: int
    slot_bits: int
    slots: int

    def __post_init__(self) -> None:
        if not 2 <= self.value_bits <= self.slot_bits or self.slots < 1:
            raise ParameterError(
                "a packing layout must have 2 <= value_bits <= slot_bits and at least one slot"
            )

    @classmethod
    def plan(
        cls, modulus_bits: int, *, summands: int, value_bits: int = GRID_BITS, slots: int | None = None
    ) -> Layout:
        """The layout that fits most values while ``summands`` of them may be added.

        Where values are also multiplied by constants below 2^t, that counts as 2^t summands.
        ``slots=1`` puts each value into a plaintext of its own.
        """
        if summands < 1 or value_bits < 2:
            raise ParameterError("packing needs at least one summand and values of at least 2 bits")
        slot_bits = value_bits + (summands - 1).bit_length()
        fitting = (modulus_bits - SPARE_BITS) // slot_bits
        if fitting < (slots or 1):
            raise ParameterError(
                f"a plaintext of {modulus_bits} bits has no room for {slots or 1} slots of {slot_bits} bits",
                hint="use a longer key, fewer summands or a smaller value_bits",
            )
        return cls(value_bits, slot_bits, slots or fitting)

    def fits(self, modulus_bits: int) -> bool:
        """Whether plaintexts of this layout fit under a modulus."""
        return self.slots * self.slot_bits <= modulus_bits - SPARE_BITS

    @property
    def capacity(self) -> int:
        """The largest sum of absolute coefficients a slot can hold."""
        return 1 << (self.slot_bits - self.value_bits)

    @property
    def plaintext_bits(self) -> int:
        """Bits of all digits."""
        return self.slots * self.slot_bits

    @property
    def bias(self) -> mpz:
        """2^(slot_bits-1) in every slot: what makes all digits non-negative."""
        every_slot = ((mpz(1) << self.plaintext_bits) - 1) // ((mpz(1) << self.slot_bits) - 1)
        return every_slot << (self.slot_bits - 1)

    def plaintexts(self, count: int) -> int:
        """How many plaintexts ``count`` values take."""
        return -(-count // self.slots)


def pack(values: Limbs, layout: Layout) -> list[mpz]:
    """Signed plaintexts of the columns of ``values``; one beyond ``value_bits`` raises RangeOverflow."""
    check_limbs(values)
    packed: list[mpz] = []
    for start, stop in _blocks(values.shape[1], layout):
        packed += _pack_block(values[:, start:stop], layout)
    return packed


def unpack(plaintexts: Sequence[mpz], layout: Layout, count: int, limbs: int = GRID_LIMBS) -> Limbs:
    """The first ``count`` values, of shape (limbs, count); RangeOverflow if one does not fit."""
    values = np.empty((limbs, count), dtype=np.uint64)
    for start, stop in _blocks(count, layout):
        first = start // layout.slots
        block = plaintexts[first : first + layout.plaintexts(stop - start)]
        values[:, start:stop] = _unpack_block(block, layout, stop - start, limbs)
    return values


def check_limbs(values: Limbs) -> None:
    """Refuse what is not a planar array of uint64 limbs."""
    if values.ndim != 2 or values.dtype != np.uint64 or values.shape[0] < 1:
        raise ParameterError("values must be a planar uint64 array of shape (limbs, n)")


def _blocks(count: int, layout: Layout) -> list[tuple[int, int]]:
    """Ranges of values that fill whole plaintexts."""
    step = max(1, BLOCK_BITS // layout.plaintext_bits) * layout.slots
    return [(start, min(start + step, count)) for start in range(0, count, step)]


def _pack_block(values: Limbs, layout: Layout) -> list[mpz]:
    digits = _resized(_bits_of(values), layout.value_bits, layout.slot_bits)
    digits[:, -1] ^= 1
    rows = layout.plaintexts(len(digits))
    padded = np.zeros((rows * layout.slots, layout.slot_bits), dtype=np.uint8)
    # An empty slot holds zero: as a biased digit, its highest bit.
    padded[len(digits) :, -1] = 1
    padded[: len(digits)] = digits
    content = np.packbits(padded.reshape(rows, -1), axis=1, bitorder="little").tobytes()
    size = -(-layout.plaintext_bits // 8)
    bias = layout.bias
    return [mpz.from_bytes(content[i : i + size], "little") - bias for i in range(0, rows * size, size)]


def _unpack_block(plaintexts: Sequence[mpz], layout: Layout, count: int, limbs: int) -> Limbs:
    size = -(-layout.plaintext_bits // 8)
    bias, end = layout.bias, mpz(1) << layout.plaintext_bits
    biased = [plaintext + bias for plaintext in plaintexts]
    if any(not 0 <= number < end for number in biased):
        raise RangeOverflow(
            "an opened plaintext is wider than its slots",
            hint="the values are larger than was planned for, or a message was altered",
        )
    content = b"".join(number.to_bytes(size, "little") for number in biased)
    rows = np.frombuffer(content, dtype=np.uint8).reshape(len(plaintexts), size)
    bits = np.unpackbits(rows, axis=1, count=layout.plaintext_bits, bitorder="little")
    digits = bits.reshape(-1, layout.slot_bits)
    digits[:, -1] ^= 1
    if digits[count:].any():
        raise RangeOverflow("a slot that must be empty is not", hint="a message was altered")
    width = min(layout.slot_bits, limbs * LIMB_BITS)
    return _limbs_of(_resized(digits[:count], width, limbs * LIMB_BITS))


def _resized(bits: Bits, width: int, length: int) -> Bits:
    """Two's complement rows that must fit ``width`` bits, cut or sign-extended to ``length`` bits."""
    signs = bits[:, -1:]
    if width < bits.shape[1] and (bits[:, width - 1 : -1] != signs).any():
        raise RangeOverflow(
            f"a value does not fit {width} bits",
            hint="raise value_bits, or scale the data to the public bound",
        )
    if length <= bits.shape[1]:
        return bits[:, :length].copy()
    extension = np.broadcast_to(signs, (len(bits), length - bits.shape[1]))
    return np.concatenate([bits, extension], axis=1)


def _bits_of(values: Limbs) -> Bits:
    rows = np.ascontiguousarray(values.T).astype("<u8", copy=False)
    return np.unpackbits(rows.view(np.uint8).reshape(len(rows), -1), axis=1, bitorder="little")


def _limbs_of(bits: Bits) -> Limbs:
    rows = np.packbits(bits, axis=1, bitorder="little").view("<u8")
    return np.ascontiguousarray(rows.T).astype(np.uint64, copy=False)


def signed(plaintext: mpz, n: mpz) -> mpz:
    """The representative of a plaintext modulo n that is nearest to zero."""
    return plaintext - n if 2 * plaintext > n else plaintext


def limbs_from_integers(integers: Sequence[int], limbs: int = GRID_LIMBS) -> Limbs:
    """Python integers as limbs, for the few that are made by hand."""
    size = limbs * LIMB_BITS // 8
    try:
        content = b"".join(int(number).to_bytes(size, "little", signed=True) for number in integers)
    except OverflowError:
        raise RangeOverflow(f"an integer does not fit {8 * size} bits") from None
    rows = np.frombuffer(content, dtype="<u8").reshape(len(integers), limbs)
    return np.ascontiguousarray(rows.T).astype(np.uint64, copy=False)


def integers_from_limbs(values: Limbs) -> list[int]:
    """Limbs as Python integers."""
    rows = np.ascontiguousarray(values.T).astype("<u8", copy=False)
    return [int.from_bytes(row.tobytes(), "little", signed=True) for row in rows]
