"""Encrypted vectors of real numbers in slots (CKKS), on the Go library: sets, ciphertexts, what computes.

Hazardous material: neither authenticated nor told who may open what, and what comes of a ciphertext times
a party's own numbers shows these numbers to whoever knows both, until it is re-randomised. What needs a
secret is in :mod:`atoll.crypto.hazmat.slot_secrets`; go/ckks says how it works.

A vector's scale is a function of its level, so no operation asks for scales: sums take their operands to the
lowest level among them. Every operation also comes for lists (``_all``), done in one call on all cores.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat import golib
from atoll.errors import ParameterError

Values = npt.NDArray[np.float64]
_T = TypeVar("_T")

ALLOW_INSECURE: Final = 1
HEADER_BYTES: Final = 8
"""What stands before the residues of every message."""
RESIDUE_BYTES: Final = 8
# Kinds of message, as go/ckks numbers them.
CIPHERTEXT, PUBLIC, RELINEARISATION_1, RELINEARISATION_2, ROTATION, REFRESH = range(1, 7)
OPENING, SWITCHING, SHARE, INPUT, SWITCHED = range(7, 12)

golib.declare("""
int32_t atoll_ckks_table(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_size(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_keys(uint32_t, uint32_t, uint8_t*, uint64_t, uint8_t**, uint64_t*, uint64_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_ckks_read(uint32_t, uint32_t, uint8_t**, uint64_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_write(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_levels(uint64_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_encode(uint32_t, uint32_t, double*, uint64_t, uint64_t, uint32_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_ckks_encrypt(uint64_t, double*, uint64_t, uint64_t, uint32_t, uint8_t*, uint64_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_ckks_rerandomise(uint64_t, uint64_t*, uint64_t, uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_lower(uint64_t, uint64_t*, uint64_t, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_scale(uint64_t, uint64_t*, uint64_t, double, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_rotate(uint64_t, uint64_t*, uint64_t, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_plus(uint64_t, uint64_t*, uint64_t, double*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_subtract(uint64_t, uint64_t*, uint64_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_sums(uint64_t, uint64_t*, uint64_t, uint64_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_inner(uint64_t, uint64_t*, uint64_t*, uint64_t, uint64_t*, uint64_t, uint32_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_ckks_polynomial(uint64_t, uint64_t*, uint64_t, double*, uint64_t, double, double, uint64_t*,
    char*, uint64_t);
""")


@dataclass(frozen=True)
class Set:
    """A row of the parameter table, in the words of whoever writes a program."""

    number: int
    name: str
    slots: int
    top: int
    """The level of a fresh or refreshed ciphertext: how often it can be rescaled."""
    refresh_level: int
    """The lowest level from which a refresh is possible."""
    scale_bits: int
    magnitude_bits: int
    """No slot of what is encrypted, refreshed or opened reaches 2^this in magnitude."""
    mask_bits: int
    """A refresh's masks are uniform on so many bits, 64 more than what they hide."""
    max_parties: int
    security_bits: int
    moduli: tuple[int, ...]
    special: int
    insecure: bool

    @property
    def flags(self) -> int:
        """What the library wants to hear before it uses an insecure set."""
        return ALLOW_INSECURE if self.insecure else 0

    @property
    def rotation_steps(self) -> tuple[int, ...]:
        """The powers of two for which there are rotation keys."""
        return tuple(1 << i for i in range(self.slots.bit_length() - 1))

    def size(self, kind: int, level: int | None = None, step: int = 0) -> int:
        """The bytes of a message."""
        place = golib.ffi.new("uint64_t*")
        at = self.top if level is None else level
        golib.call("atoll_ckks_size", self.number, self.flags, kind, at, step, place)
        return int(place[0])

    def ciphertext_bytes(self, level: int | None = None) -> int:
        """The bytes of a ciphertext at a level, or a fresh one."""
        return self.size(CIPHERTEXT, level)


@functools.cache
def _table() -> tuple[Set, ...]:
    length = golib.ffi.new("uint64_t*")
    golib.call("atoll_ckks_table", golib.ffi.NULL, 0, length)
    room = golib.bytes_out(int(length[0]))
    golib.call("atoll_ckks_table", *room[1:], length)
    return tuple(
        Set(
            number=row["id"],
            name=row["name"],
            slots=1 << (row["log_n"] - 1),
            top=len(row["moduli"]) - 1,
            refresh_level=row["refresh_level"],
            scale_bits=row["scale_bits"],
            magnitude_bits=row["magnitude_bits"],
            mask_bits=row["mask_bits"],
            max_parties=row["max_parties"],
            security_bits=row["security_bits"],
            moduli=tuple(row["moduli"]),
            special=row["special"],
            insecure=row["insecure"],
        )
        for row in json.loads(room[0].tobytes())
    )


def sets() -> tuple[Set, ...]:
    """All sets that protect something."""
    return tuple(row for row in _table() if not row.insecure)


def find(name: str, *, for_tests: bool = False) -> Set:
    """The set of that name; an insecure one only for tests."""
    for row in _table():
        if row.name == name and (for_tests or not row.insecure):
            return row
    known = ", ".join(row.name for row in sets())
    raise ParameterError(f"the set of slots {name!r} is unknown", hint=f"known are {known}")


class SlotObject(golib.GoObject):
    """Something of one set that lives on the Go side."""

    def __init__(self, of: Set, handle: golib.Handle) -> None:
        self.set = of
        self._handle = handle


class Ciphertext(SlotObject):
    """An encrypted vector; nothing changes it."""

    @functools.cached_property
    def level(self) -> int:
        """How often it can still be rescaled."""
        place = golib.ffi.new("uint64_t[1]")
        golib.call("atoll_ckks_levels", handles([self]), 1, place)
        return int(place[0])

    @property
    def scale(self) -> float:
        """What its numbers are multiplied by before rounding: the one scale of its level."""
        value = 2.0**self.set.scale_bits
        for modulus in self.set.moduli[: self.level : -1]:
            value = value * value / modulus
        return value

    def to_bytes(self) -> bytes:
        """The ciphertext as it travels."""
        out = golib.bytes_new(self.set.ciphertext_bytes(self.level))
        golib.call("atoll_ckks_write", self.number, *out[1:])
        return out[0]

    @staticmethod
    def from_bytes(of: Set, data: golib.Buffer) -> Ciphertext:
        """Read one, checking its size, its level and every residue."""
        return read_all(of, [data])[0]

    def half(self) -> memoryview:
        """The second polynomial alone: all that parts of a refresh or an opening are made from."""
        data = memoryview(self.to_bytes())
        start = HEADER_BYTES + (len(data) - HEADER_BYTES) // 2
        return memoryview(b"".join((data[:HEADER_BYTES], data[start:])))

    @staticmethod
    def from_half(of: Set, half: golib.Buffer) -> Ciphertext:
        """What parts are made for, as :meth:`half` wrote it: as a ciphertext it is one of nothing."""
        nothing = bytes(max(len(half) - HEADER_BYTES, 0))
        return Ciphertext.from_bytes(of, b"".join((half[:HEADER_BYTES], nothing, half[HEADER_BYTES:])))

    def mark(self) -> bytes:
        """Tells apart what parts are made for; the same however many moduli are cut off."""
        row = 2 * self.set.slots * RESIDUE_BYTES
        return hashlib.sha256(self.half()[HEADER_BYTES : HEADER_BYTES + row]).digest()


class Encoded(SlotObject):
    """Numbers in the clear, ready for products with ciphertexts at one level."""

    def __init__(self, of: Set, handle: golib.Handle, level: int) -> None:
        super().__init__(of, handle)
        self.level = level


Factor = Ciphertext | Encoded
Pair = tuple[Ciphertext, Factor]


def read_all(of: Set, messages: Sequence[golib.Buffer]) -> list[Ciphertext]:
    """Read ciphertexts."""
    buffers = golib.BufferList(messages)
    return made(of, len(messages), "atoll_ckks_read", of.number, of.flags, *buffers.arguments)


def encoded_all(of: Set, rows: Sequence[Values], level: int) -> list[Encoded]:
    """Prepare vectors for products with ciphertexts at this level."""
    numbers = golib.handles_from(
        len(rows), "atoll_ckks_encode", of.number, of.flags, *matrix_in(of, rows), level
    )
    return [Encoded(of, handle, level) for handle in numbers]


class Keys(SlotObject):
    """What computes: the public key, the relinearisation key and rotation keys, from the totals of all parts.

    Any may be missing; what needs it then says so. ``common`` is the seed that the parts were made for.
    """

    def __init__(self, of: Set, common: bytes, totals: Sequence[golib.Buffer] = ()) -> None:
        buffers = golib.BufferList(totals)
        opened = golib.Handle(
            "atoll_ckks_keys", of.number, of.flags, *golib.bytes_in(common), *buffers.arguments
        )
        super().__init__(of, opened)

    # ---- into ciphertexts ----

    def encrypt_all(self, rows: Sequence[Values], seed: bytes, level: int | None = None) -> list[Ciphertext]:
        """Encrypt vectors, each under randomness of its own."""
        at, matrix = self.set.top if level is None else level, matrix_in(self.set, rows)
        return self._made(len(rows), "atoll_ckks_encrypt", *matrix, at, *golib.bytes_in(seed))

    def encrypt(self, values: Values, seed: bytes, level: int | None = None) -> Ciphertext:
        """Encrypt a vector."""
        return self.encrypt_all([values], seed, level)[0]

    def rerandomised_all(self, xs: Sequence[Ciphertext], seed: bytes) -> list[Ciphertext]:
        """Add a fresh encryption of zero to each: no numbers that went into one show in it any more."""
        return self._made(len(xs), "atoll_ckks_rerandomise", handles(xs), len(xs), *golib.bytes_in(seed))

    def rerandomised(self, x: Ciphertext, seed: bytes) -> Ciphertext:
        """Add a fresh encryption of zero."""
        return self.rerandomised_all([x], seed)[0]

    def encoded(self, values: Values, level: int) -> Encoded:
        """Prepare a vector for products with ciphertexts at this level."""
        return encoded_all(self.set, [values], level)[0]

    # ---- sums ----

    def add_all(self, lists: Sequence[Sequence[Ciphertext]]) -> list[Ciphertext]:
        """The sum of each list."""
        flat, lengths = _flat(lists)
        return self._made(len(lists), "atoll_ckks_sums", handles(flat), len(flat), lengths, len(lists))

    def add(self, *xs: Ciphertext) -> Ciphertext:
        """The sum of ciphertexts."""
        return self.add_all([xs])[0]

    def subtract_all(self, xs: Sequence[Ciphertext], ys: Sequence[Ciphertext]) -> list[Ciphertext]:
        """x - y, one by one."""
        _same(xs, ys)
        return self._made(len(xs), "atoll_ckks_subtract", handles(xs), handles(ys), len(xs))

    def subtract(self, x: Ciphertext, y: Ciphertext) -> Ciphertext:
        """x - y."""
        return self.subtract_all([x], [y])[0]

    def plus_all(self, xs: Sequence[Ciphertext], rows: Sequence[Values]) -> list[Ciphertext]:
        """Each ciphertext plus numbers in the clear."""
        _same(xs, rows)
        values, _, width = matrix_in(self.set, rows)
        return self._made(len(xs), "atoll_ckks_plus", handles(xs), len(xs), values, width)

    def plus(self, x: Ciphertext, values: Values) -> Ciphertext:
        """A ciphertext plus numbers in the clear."""
        return self.plus_all([x], [values])[0]

    # ---- products ----

    def scaled_all(self, xs: Sequence[Ciphertext], number: float) -> list[Ciphertext]:
        """Times one number: a whole one below 2^20 costs no level, any other costs one."""
        return self._made(len(xs), "atoll_ckks_scale", handles(xs), len(xs), float(number))

    def scaled(self, x: Ciphertext, number: float) -> Ciphertext:
        """Times one number: a whole one below 2^20 costs no level, any other costs one."""
        return self.scaled_all([x], number)[0]

    def inner_all(self, lists: Sequence[Sequence[Pair]], *, lazy: bool = True) -> list[Ciphertext]:
        """For each list the sum of its slotwise products; one level.

        Relinearised and rescaled once, after adding up; with ``lazy=False``, product by product.
        """
        flat, lengths = _flat(lists)
        left, right = handles([x for x, _ in flat]), handles([y for _, y in flat])
        return self._made(
            len(lists), "atoll_ckks_inner", left, right, len(flat), lengths, len(lists), int(lazy)
        )

    def inner(self, pairs: Sequence[tuple[Ciphertext, Factor | Values]], *, lazy: bool = True) -> Ciphertext:
        """The sum of slotwise products of ciphertexts with ciphertexts or clear numbers; one level."""
        level = min(x.level for pair in pairs for x in pair if isinstance(x, Ciphertext))
        ready = [(x, self.encoded(y, level) if isinstance(y, np.ndarray) else y) for x, y in pairs]
        return self.inner_all([ready], lazy=lazy)[0]

    def times_all(self, xs: Sequence[Ciphertext], ys: Sequence[Factor]) -> list[Ciphertext]:
        """The slotwise products, one by one; one level."""
        _same(xs, ys)
        return self.inner_all([[pair] for pair in zip(xs, ys, strict=True)])

    def times(self, x: Ciphertext, y: Factor) -> Ciphertext:
        """The slotwise product; one level."""
        return self.times_all([x], [y])[0]

    def weighted(self, x: Ciphertext, values: Values) -> Ciphertext:
        """Every slot times a number of its own; one level."""
        return self.inner([(x, values)])

    # ---- the rest ----

    def lowered_all(self, xs: Sequence[Ciphertext], level: int) -> list[Ciphertext]:
        """The same vectors at a lower level."""
        return self._made(len(xs), "atoll_ckks_lower", handles(xs), len(xs), level)

    def lowered(self, x: Ciphertext, level: int) -> Ciphertext:
        """The same vector at a lower level."""
        return self.lowered_all([x], level)[0]

    def rotate_all(self, xs: Sequence[Ciphertext], steps: Sequence[int]) -> list[Ciphertext]:
        """Each turned to the left by its own number of slots (to the right, if negative)."""
        _same(xs, steps)
        turns = golib.ffi.new("uint64_t[]", [step % self.set.slots for step in steps])
        return self._made(len(xs), "atoll_ckks_rotate", handles(xs), len(xs), turns)

    def rotate(self, x: Ciphertext, steps: int) -> Ciphertext:
        """All slots turned to the left (to the right, if negative), by powers of two."""
        return self.rotate_all([x], [steps])[0]

    def polynomial_all(
        self, xs: Sequence[Ciphertext], coefficients: Sequence[float], interval: tuple[float, float]
    ) -> list[Ciphertext]:
        """A Chebyshev series in every slot; slots outside of the interval come out wrong."""
        terms = golib.ffi.new("double[]", [float(value) for value in coefficients])
        low, high = (float(end) for end in interval)
        return self._made(
            len(xs), "atoll_ckks_polynomial", handles(xs), len(xs), terms, len(coefficients), low, high
        )

    def polynomial(
        self, x: Ciphertext, coefficients: Sequence[float], interval: tuple[float, float]
    ) -> Ciphertext:
        """A Chebyshev series in every slot: 1 + ceil(log2(degree + 1)) levels."""
        return self.polynomial_all([x], coefficients, interval)[0]

    def _made(self, count: int, name: str, *arguments: Any) -> list[Ciphertext]:
        return made(self.set, count, name, self.number, *arguments)


def made(of: Set, count: int, name: str, *arguments: Any) -> list[Ciphertext]:
    """The ciphertexts that a call makes."""
    return [Ciphertext(of, handle) for handle in golib.handles_from(count, name, *arguments)]


def handles(objects: Sequence[SlotObject]) -> Any:
    """The handles of objects, as the library takes them."""
    return golib.ffi.new("uint64_t[]", [one.number for one in objects])


def matrix_in(of: Set, rows: Sequence[Values]) -> tuple[Any, int, int]:
    """Vectors as the library takes them: one after the other, all as wide as the widest."""
    width = max((len(row) for row in rows), default=0)
    if not 0 < width <= of.slots:
        raise ParameterError(f"{width} numbers do not fit {of.slots} slots")
    matrix = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return golib.ffi.from_buffer("double[]", matrix), len(rows), width


def _flat(lists: Sequence[Sequence[_T]]) -> tuple[list[_T], Any]:
    return [x for part in lists for x in part], golib.ffi.new("uint64_t[]", [len(part) for part in lists])


def _same(xs: Sequence[object], ys: Sequence[object]) -> None:
    if len(xs) != len(ys):
        raise ParameterError(f"{len(xs)} ciphertexts do not go with {len(ys)} others")
