"""The parameter table of the Go library's products: rings, limits, and the sizes that follow from them.

Hazardous material: numbers only, but every bound and mask rests on them. The Go library states them once
(go/product/table.go) and checks what callers make of them.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, Final

from atoll.crypto.hazmat import golib
from atoll.errors import ParameterError

KEPT_RIGHT_BYTES: Final = 1 << 23
"""Encoded right sides up to this size are kept for later products."""
VECTOR_VARIABLE: Final = "ATOLL_VECTOR"

golib.declare("""
int32_t atoll_vector_path(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_vector_paths(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_table(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_noise_bits(uint32_t, uint32_t, uint32_t, uint64_t*, char*, uint64_t);
""")


@dataclass(frozen=True)
class Ring:
    """A row of the parameter table of go/product."""

    index: int
    name: str
    family: str
    degree: int
    limbs: int
    log_q: float
    max_log_q: float
    security: int
    poly_size: int
    moduli: tuple[int, ...]

    def residues_size(self, count: int) -> int:
        """Bytes of so many values modulo Q."""
        return self.limbs * ((count * limits().modulus_bits + 7) // 8)


@dataclass(frozen=True)
class Layout:
    """How a product is cut into blocks of one polynomial each; see go/product/layout.go."""

    rows: int
    inner: int
    cols: int
    block_rows: int
    block_inner: int
    block_cols: int
    entrywise: bool = False
    """A column times, entry by entry, the columns of a matrix of as many rows; inner sizes are one then."""

    @property
    def left_polys(self) -> int:
        """Polynomials of the encrypted side."""
        return ceil(self.rows / self.block_rows) * ceil(self.inner / self.block_inner)

    @property
    def right_polys(self) -> int:
        """Polynomials of the side in the clear."""
        runs = self.rows / self.block_rows if self.entrywise else self.inner / self.block_inner
        return ceil(runs) * ceil(self.cols / self.block_cols)

    @property
    def right_entries(self) -> int:
        """Entries of the side in the clear."""
        return (self.rows if self.entrywise else self.inner) * self.cols

    @property
    def out_polys(self) -> int:
        """Ciphertexts of the product."""
        return ceil(self.rows / self.block_rows) * ceil(self.cols / self.block_cols)


@dataclass(frozen=True)
class Clearing:
    """The declared bounds of a refresh, and the widths that follow; the Go library checks them."""

    parties: int
    value_bits: int
    right_bits: int
    truncate: int
    mask_bits: int

    @property
    def share_words(self) -> int:
        """Words per integer of the shares that the refresh makes."""
        return (self.mask_bits - self.truncate + self.parties.bit_length() + 1) // 64 + 1


def vector_paths() -> tuple[str, ...]:
    """The ways to compute that this machine has, the fastest first; see go/vector."""
    return tuple(_name("atoll_vector_paths").split(","))


@cache
def vector_path() -> str:
    """The way that is taken: the fastest one, or that which the variable ``ATOLL_VECTOR`` names.

    It is chosen once, when the library is first used; messages are the same bytes on all of them.
    """
    try:
        return _name("atoll_vector_path")
    except ParameterError as problem:
        raise ParameterError(
            problem.message, hint=f"leave {VECTOR_VARIABLE} out, or set it to auto"
        ) from problem


def _name(function: str) -> str:
    length = golib.ffi.new("uint64_t*")
    room, pointer, size = golib.bytes_out(64)
    golib.call(function, pointer, size, length)
    return room[: int(length[0])].tobytes().decode()


@dataclass(frozen=True)
class Limits:
    """The numbers of go/product that hold in every ring, and that bounds and masks rest on."""

    mask_margin: int
    """Bits by which a mask is wider than what it hides."""
    truncate_margin: int
    """Bits that a refresh cuts off beyond the noise."""
    max_parties: int
    max_words: int
    """64-bit words of an integer."""
    points: int
    """Fingerprints of a message modulo each modulus: together they are met by chance once in 2^80 tries."""
    modulus_bits: int


@cache
def _table() -> tuple[Limits, dict[str, Ring]]:
    vector_path()  # its error says what to do
    length = golib.ffi.new("uint64_t*")
    golib.call("atoll_product_table", golib.ffi.NULL, 0, length)
    room = golib.bytes_out(int(length[0]))
    golib.call("atoll_product_table", *room[1:], length)
    table: dict[str, Any] = json.loads(room[0].tobytes())
    rows = {
        row["name"]: Ring(index=index, **(row | {"moduli": tuple(row["moduli"])}))
        for index, row in enumerate(table["rings"])
    }
    return Limits(**table["limits"]), rows


def limits() -> Limits:
    """The limits of the table; see go/product/table.go."""
    return _table()[0]


def rings() -> dict[str, Ring]:
    """The parameter table by name; see go/product/table.go."""
    return _table()[1]


@cache
def family(name: str) -> tuple[Ring, ...]:
    """The rings that share one key, narrowest first."""
    return tuple(ring for ring in rings().values() if ring.family == name)


@cache
def noise_bits(ring: Ring, parties: int, right_bits: int) -> int:
    """A bound on the noise of a product whose right side has a Frobenius norm below 2^right_bits."""
    bits = golib.ffi.new("uint64_t*")
    golib.call("atoll_product_noise_bits", ring.index, parties, right_bits, bits)
    return int(bits[0])


def most_entries(ring: Ring, columns: int) -> int:
    """Entries of so many columns, side by side, that one polynomial holds in an entrywise product.

    See go/product/layout.go: the places are the binary digits of 0, 1, 2, ... read in base three.
    """
    last = (ring.degree // columns - 1) // 2  # the last place: a column reaches to twice as far
    return bisect_right(range(ring.degree), last, key=lambda i: int(f"{i:b}", 3))


def streamed_right(ring: Ring, layout: Layout) -> bool:
    """Whether an encoded right side is too large to be kept."""
    return not layout.entrywise and layout.right_polys * ring.degree * ring.limbs * 8 > KEPT_RIGHT_BYTES
