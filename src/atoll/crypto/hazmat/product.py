"""Encrypted matrix times everybody's own matrix, and the clearing refresh, on the Go library.

Hazardous material: every rule about what may be sent twice, opened or combined stands with the caller
(:mod:`atoll.secret_matrices`). A common seed is used for one matrix and one key only; a party calls
:meth:`Secret.refresh` for one ciphertext once.

Matrices are exact integers (:mod:`integers`), rings those of one table (:mod:`rings`). What is random is a
function of a 32-byte seed that the caller drew and recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from atoll.crypto.hazmat import golib
from atoll.crypto.hazmat.integers import (
    Integers,
    empty,
    matrix_in,
)
from atoll.crypto.hazmat.rings import (
    Clearing,
    Layout,
    Ring,
    limits,
    streamed_right,
)

golib.declare("""
int32_t atoll_product_secret(uint32_t, uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_key_share(uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    char*, uint64_t);
int32_t atoll_product_public_key(uint32_t, uint8_t**, uint64_t*, uint64_t, uint8_t*, uint64_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_key_bytes(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_encrypt(uint64_t, uint64_t*, uint64_t*, uint32_t, uint32_t, uint64_t*, uint8_t*,
    uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_assemble(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint8_t**, uint64_t*,
    uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_ciphertext(uint32_t, uint64_t*, uint8_t*, uint64_t, uint8_t*, uint64_t, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_begin_ciphertext(uint32_t, uint64_t*, uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_complete_ciphertext(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_second(uint64_t, uint64_t*, uint64_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_refresh_ahead(uint64_t, uint8_t*, uint64_t, uint64_t, uint64_t*, uint64_t*, uint64_t,
    uint64_t*, uint64_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint64_t*, uint64_t*, uint8_t*,
    uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_product_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_product_streamed_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_transposed_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_multiply(uint64_t, uint64_t*, uint64_t*, uint64_t, uint64_t*, uint64_t*, uint32_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_sum(uint32_t, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_product_sum_add(uint64_t, uint32_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_sum_second(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_sum_clear(uint64_t, uint64_t*, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_product_sum_total(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_product_clear_total(uint32_t, uint64_t*, uint8_t*, uint64_t, uint64_t*, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_fingerprint(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_fingerprint_of(uint64_t, uint32_t, uint8_t*, uint64_t, uint64_t, uint64_t*, uint64_t,
    char*, uint64_t);
int32_t atoll_product_refresh(uint64_t, uint8_t*, uint64_t, uint64_t*, uint64_t*, uint8_t*, uint64_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, uint64_t*, uint64_t*, char*, uint64_t);
""")


class Secret(golib.GoObject):
    """One party's part of the secret key of one ring, expanded from its seed."""

    def __init__(self, ring: Ring, seed: bytes) -> None:
        self.ring = ring
        self._handle = golib.Handle("atoll_product_secret", ring.index, *golib.bytes_in(seed))

    def key_share(self, common: bytes, seed: bytes) -> bytes:
        """This party's part of the collective public key."""
        out = golib.bytes_out(self.ring.poly_size)
        golib.call(
            "atoll_product_key_share", self.number, *golib.bytes_in(common), *golib.bytes_in(seed), *out[1:]
        )
        return out[0].tobytes()

    def encrypt(
        self, x: Integers, limit: int, shift: int, layout: Layout, common: bytes, seed: bytes
    ) -> memoryview:
        """This party's part of the encryption of a shared matrix times 2^shift."""
        out = golib.bytes_out(layout.left_polys * self.ring.poly_size)
        golib.call(
            "atoll_product_encrypt",
            self.number,
            *matrix_in(x),
            limit,
            shift,
            _sizes(layout),
            *golib.bytes_in(common),
            *golib.bytes_in(seed),
            *out[1:],
        )
        return golib.frozen(out)

    def refresh(
        self,
        second: golib.Buffer,
        layout: Layout,
        clearing: Clearing,
        seed: bytes,
        domain: bytes,
        ahead: Ahead | None = None,
    ) -> tuple[memoryview, Integers]:
        """The masked decryption share to send, and this party's share of the truncated result.

        With the first half of the party's own product, where its second half went ahead."""
        message = golib.bytes_out(self.ring.residues_size(layout.rows * layout.cols))
        share = empty(layout.rows, layout.cols, clearing.share_words)
        own = () if ahead is None else ahead.arguments
        golib.call(
            "atoll_product_refresh" if ahead is None else "atoll_product_refresh_ahead",
            self.number,
            *golib.bytes_in(second),
            *own,
            _sizes(layout),
            _sizes(clearing),
            *golib.bytes_in(seed),
            *golib.bytes_in(domain),
            *message[1:],
            *matrix_in(share),
        )
        return golib.frozen(message), share


class Ahead(NamedTuple):
    """A party's product of which :func:`second_half` made the second half, of this seed and domain."""

    key: PublicKey
    terms: Sequence[tuple[Ciphertext, Right]]
    seed: bytes
    domain: bytes
    public: Sequence[tuple[Ciphertext, Right]] = ()
    """Terms that all parties know: every one adds their second halves to the sum, one of them has their first
    halves in ``terms``."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the Go library takes them."""
        return (
            self.key.number,
            *_numbers(self.terms),
            *_numbers(self.public),
            *golib.bytes_in(self.seed),
            *golib.bytes_in(self.domain),
        )

    def __repr__(self) -> str:
        return "Ahead()"


class PublicKey(golib.GoObject):
    """The collective public key, from the parts of all parties or from their sum."""

    def __init__(self, ring: Ring, shares: Sequence[golib.Buffer], common: bytes) -> None:
        self.ring = ring
        buffers = golib.BufferList(shares)
        self._handle = golib.Handle(
            "atoll_product_public_key", ring.index, *buffers.arguments, *golib.bytes_in(common)
        )

    def to_bytes(self) -> bytes:
        """The sum of the parts."""
        out = golib.bytes_out(self.ring.poly_size)
        golib.call("atoll_product_key_bytes", self.number, *out[1:])
        return out[0].tobytes()


class Ciphertext(golib.GoObject):
    """An encrypted matrix, ready to be multiplied.

    Without first halves it is begun only: :func:`second_half` needs no more, everything else
    :meth:`complete`.
    """

    def __init__(self, ring: Ring, layout: Layout, first: golib.Buffer | None, common: bytes) -> None:
        self.ring = ring
        self.layout = layout
        self.begun = first is None
        if first is None:
            self._handle = golib.Handle(
                "atoll_product_begin_ciphertext", ring.index, _sizes(layout), *golib.bytes_in(common)
            )
            return
        self._handle = golib.Handle(
            "atoll_product_ciphertext",
            ring.index,
            _sizes(layout),
            *golib.bytes_in(first),
            *golib.bytes_in(common),
        )

    def complete(self, first: golib.Buffer) -> None:
        """Read the first halves, as they were assembled; once."""
        golib.call("atoll_product_complete_ciphertext", self.number, *golib.bytes_in(first))
        self.begun = False


class Right(golib.GoObject):
    """A matrix in the clear, for the right side of products; entries stay below 2^limit.

    It is encoded once for every product with it or, where it is large (``streamed``), block by block in
    each of them: then ``x`` is kept and must not be changed. Transforming again what lies in a cache
    takes less time than touching fresh memory once.
    """

    def __init__(
        self, ring: Ring, x: Integers, limit: int, layout: Layout, streamed: bool | None = None
    ) -> None:
        self.ring = ring
        self.layout = layout
        self.streamed = streamed_right(ring, layout) if streamed is None else streamed
        opener, across = "atoll_product_right", x.transpose(1, 0, 2)
        if self.streamed and across.flags.c_contiguous and not x.flags.c_contiguous:
            opener, x = "atoll_product_transposed_right", across
        elif self.streamed:
            opener = "atoll_product_streamed_right"
        x = np.ascontiguousarray(x)
        self._source = x if self.streamed else None
        self._handle = golib.Handle(opener, ring.index, *matrix_in(x), limit, _sizes(layout))


def assemble(
    ring: Ring, public: Integers | None, shift: int, layout: Layout, parts: Sequence[golib.Buffer]
) -> memoryview:
    """The coordinator's part: add up everybody's encryption and its own, public share."""
    out = golib.bytes_out(layout.left_polys * ring.poly_size)
    matrix = (golib.ffi.NULL, golib.ffi.NULL) if public is None else matrix_in(public)
    golib.call(
        "atoll_product_assemble",
        ring.index,
        *matrix,
        shift,
        _sizes(layout),
        *golib.BufferList(parts).arguments,
        *out[1:],
    )
    return golib.frozen(out)


def multiply(
    key: PublicKey,
    terms: Sequence[tuple[Ciphertext, Right]],
    *,
    plain: Integers | None = None,
    limit: int = 0,
    seed: bytes,
    domain: bytes,
) -> memoryview:
    """The sum of the products, plus ``plain`` (below 2^limit), re-randomised."""
    layout = terms[0][1].layout
    matrix = (golib.ffi.NULL, golib.ffi.NULL) if plain is None else matrix_in(plain)
    size = key.ring.residues_size(layout.rows * layout.cols) + layout.out_polys * key.ring.poly_size
    out = golib.bytes_out(size)
    golib.call(
        "atoll_product_multiply",
        key.number,
        *_numbers(terms),
        *matrix,
        limit,
        *golib.bytes_in(seed),
        *golib.bytes_in(domain),
        *out[1:],
    )
    return golib.frozen(out)


def second_half(
    key: PublicKey, terms: Sequence[tuple[Ciphertext, Right]], *, seed: bytes, domain: bytes
) -> memoryview:
    """The second half of the sum of the products, re-randomised; it needs no first halves of left sides."""
    out = golib.bytes_out(terms[0][1].layout.out_polys * key.ring.poly_size)
    golib.call(
        "atoll_product_second",
        key.number,
        *_numbers(terms),
        *golib.bytes_in(seed),
        *golib.bytes_in(domain),
        *out[1:],
    )
    return golib.frozen(out)


def _numbers(terms: Sequence[tuple[Ciphertext, Right]]) -> tuple[Any, Any, int]:
    lefts = golib.ffi.new("uint64_t[]", [left.number for left, _ in terms])
    return lefts, golib.ffi.new("uint64_t[]", [right.number for _, right in terms]), len(terms)


class ProductSum(golib.GoObject):
    """The coordinator's running sum of products, then of masked decryption shares."""

    def __init__(self, ring: Ring, layout: Layout) -> None:
        self.ring = ring
        self.layout = layout
        self._handle = golib.Handle("atoll_product_sum", ring.index, _sizes(layout))

    def add(self, product: golib.Buffer) -> None:
        """Take in one product."""
        golib.call("atoll_product_sum_add", self.number, 0, *golib.bytes_in(product))

    def add_second(self, message: golib.Buffer) -> None:
        """Take in second halves alone: their first halves come within masked decryption shares."""
        golib.call("atoll_product_sum_add", self.number, 2, *golib.bytes_in(message))

    def second(self) -> memoryview:
        """The second halves of the sum: what parties need for their decryption shares."""
        out = golib.bytes_out(self.layout.out_polys * self.ring.poly_size)
        golib.call("atoll_product_sum_second", self.number, *out[1:])
        return golib.frozen(out)

    def add_share(self, message: golib.Buffer) -> None:
        """Take in one party's masked decryption share."""
        golib.call("atoll_product_sum_add", self.number, 1, *golib.bytes_in(message))

    def clear(self, clearing: Clearing) -> Integers:
        """The masked values, truncated: the coordinator's share of the result."""
        out = empty(self.layout.rows, self.layout.cols, clearing.share_words)
        golib.call("atoll_product_sum_clear", self.number, _sizes(clearing), *matrix_in(out))
        return out

    def total(self) -> memoryview:
        """The masked values before they are truncated, for :func:`clear_total`."""
        out = golib.bytes_out(self.ring.residues_size(self.layout.rows * self.layout.cols))
        golib.call("atoll_product_sum_total", self.number, *out[1:])
        return golib.frozen(out)


def clear_total(ring: Ring, layout: Layout, total: golib.Buffer, clearing: Clearing) -> Integers:
    """The public share of a result, from the masked values as :meth:`ProductSum.total` gave them."""
    out = empty(layout.rows, layout.cols, clearing.share_words)
    golib.call(
        "atoll_product_clear_total",
        ring.index,
        _sizes(layout),
        *golib.bytes_in(total),
        _sizes(clearing),
        *matrix_in(out),
    )
    return out


class Fingerprint(golib.GoObject):
    """A secret linear map of messages to residues: that of a sum is the sum of those of its parts."""

    def __init__(self, seed: bytes) -> None:
        self._handle = golib.Handle("atoll_product_fingerprint", *golib.bytes_in(seed))

    def of(self, ring: Ring, message: golib.Buffer, count: int) -> list[int]:
        """Two residues modulo each modulus, of a message of ``count`` packed residues per limb and block."""
        out = np.empty(limits().points * ring.limbs, dtype=np.uint64)
        golib.call(
            "atoll_product_fingerprint_of",
            self.number,
            ring.index,
            *golib.bytes_in(message),
            count,
            *golib.words_out(out),
        )
        return [int(value) for value in out]


def _sizes(numbers: Layout | Clearing) -> Any:
    return golib.ffi.new("uint64_t[]", list(astuple(numbers)))
