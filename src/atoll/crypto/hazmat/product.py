"""Encrypted matrix times everybody's own matrix, and the clearing refresh, on the Go library.

Hazardous material: every rule about what may be sent twice, opened or combined stands with the caller
(:mod:`atoll.protocols.pca.sfpca`). A common seed is used for one matrix and one key only; a party calls
:meth:`Secret.refresh` for one ciphertext once.

Matrices are exact integers: arrays of shape ``(rows, columns, words)``, two's complement, least
significant word first. What is random is a function of a 32-byte seed that the caller drew and recorded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from math import ceil
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat import golib
from atoll.errors import ParameterError, RangeOverflow

Integers = npt.NDArray[np.uint64]

MASK_MARGIN: Final = 64
TRUNCATE_MARGIN: Final = 60
MAX_PARTIES: Final = 64
MAX_WORDS: Final = 8
POINTS: Final = 2
"""Fingerprints of a message modulo each modulus: together they are met by chance once in 2^80 tries."""
KEPT_RIGHT_BYTES: Final = 1 << 23
VECTOR_VARIABLE: Final = "ATOLL_VECTOR"
_MODULUS_BITS: Final = 52

golib.declare("""
int32_t atoll_vector_path(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_vector_paths(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_table(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_product_noise_bits(uint32_t, uint32_t, uint32_t, uint64_t*, char*, uint64_t);
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
int32_t atoll_product_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*, char*, uint64_t);
int32_t atoll_product_streamed_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_turned_right(uint32_t, uint64_t*, uint64_t*, uint32_t, uint64_t*, uint64_t*,
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
int32_t atoll_product_combine(uint64_t**, uint64_t, uint64_t*, int64_t*, uint32_t, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_smudge(uint64_t*, uint64_t*, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint64_t*, char*, uint64_t);
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
        return self.limbs * ((count * _MODULUS_BITS + 7) // 8)


@dataclass(frozen=True)
class Layout:
    """How a product is cut into blocks of one polynomial each; see go/product/layout.go."""

    rows: int
    inner: int
    cols: int
    block_rows: int
    block_inner: int
    block_cols: int

    @property
    def left_polys(self) -> int:
        """Polynomials of the encrypted side."""
        return ceil(self.rows / self.block_rows) * ceil(self.inner / self.block_inner)

    @property
    def right_polys(self) -> int:
        """Polynomials of the side in the clear."""
        return ceil(self.inner / self.block_inner) * ceil(self.cols / self.block_cols)

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
        return (self.mask_bits - self.truncate + MAX_PARTIES.bit_length() + 1) // 64 + 1


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


@cache
def rings() -> dict[str, Ring]:
    """The parameter table by name; see go/product/table.go."""
    vector_path()  # its error says what to do
    length = golib.ffi.new("uint64_t*")
    golib.call("atoll_product_table", golib.ffi.NULL, 0, length)
    room = golib.bytes_out(int(length[0]))
    golib.call("atoll_product_table", *room[1:], length)
    rows: list[dict[str, Any]] = json.loads(room[0].tobytes())
    return {
        row["name"]: Ring(index=index, **(row | {"moduli": tuple(row["moduli"])}))
        for index, row in enumerate(rows)
    }


def family(name: str) -> tuple[Ring, ...]:
    """The rings that share one key, narrowest first."""
    return tuple(ring for ring in rings().values() if ring.family == name)


@cache
def noise_bits(ring: Ring, parties: int, right_bits: int) -> int:
    """A bound on the noise of a product whose right side has a Frobenius norm below 2^right_bits."""
    bits = golib.ffi.new("uint64_t*")
    golib.call("atoll_product_noise_bits", ring.index, parties, right_bits, bits)
    return int(bits[0])


class _Object:
    """Something that lives on the Go side."""

    _handle: golib.Handle

    @property
    def number(self) -> int:
        """Its handle, for calls into the library."""
        return self._handle.number

    def close(self) -> None:
        """Free it now rather than when it is collected."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


class Secret(_Object):
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
            *_matrix(x),
            limit,
            shift,
            _sizes(layout),
            *golib.bytes_in(common),
            *golib.bytes_in(seed),
            *out[1:],
        )
        return out[0].data

    def refresh(
        self, second: golib.Buffer, layout: Layout, clearing: Clearing, seed: bytes, domain: bytes
    ) -> tuple[memoryview, Integers]:
        """The masked decryption share to send, and this party's share of the truncated result."""
        message = golib.bytes_out(self.ring.residues_size(layout.rows * layout.cols))
        share = _empty(layout.rows, layout.cols, clearing.share_words)
        golib.call(
            "atoll_product_refresh",
            self.number,
            *golib.bytes_in(second),
            _sizes(layout),
            _sizes(clearing),
            *golib.bytes_in(seed),
            *golib.bytes_in(domain),
            *message[1:],
            *_matrix(share),
        )
        return message[0].data, share


class PublicKey(_Object):
    """The collective public key, from the parts of all parties or from their sum."""

    def __init__(self, ring: Ring, shares: Sequence[bytes], common: bytes) -> None:
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


class Ciphertext(_Object):
    """An encrypted matrix, ready to be multiplied."""

    def __init__(self, ring: Ring, layout: Layout, first: golib.Buffer, common: bytes) -> None:
        self.ring = ring
        self.layout = layout
        self._handle = golib.Handle(
            "atoll_product_ciphertext",
            ring.index,
            _sizes(layout),
            *golib.bytes_in(first),
            *golib.bytes_in(common),
        )


class Right(_Object):
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
            opener, x = "atoll_product_turned_right", across
        elif self.streamed:
            opener = "atoll_product_streamed_right"
        x = np.ascontiguousarray(x)
        self._source = x if self.streamed else None
        self._handle = golib.Handle(opener, ring.index, *_matrix(x), limit, _sizes(layout))


def streamed_right(ring: Ring, layout: Layout) -> bool:
    """Whether an encoded right side is too large to be kept."""
    return layout.right_polys * ring.degree * ring.limbs * 8 > KEPT_RIGHT_BYTES


def assemble(
    ring: Ring, public: Integers | None, shift: int, layout: Layout, parts: Sequence[golib.Buffer]
) -> memoryview:
    """The coordinator's part: add up everybody's encryption and its own, public share."""
    out = golib.bytes_out(layout.left_polys * ring.poly_size)
    matrix = (golib.ffi.NULL, golib.ffi.NULL) if public is None else _matrix(public)
    golib.call(
        "atoll_product_assemble",
        ring.index,
        *matrix,
        shift,
        _sizes(layout),
        *golib.BufferList(parts).arguments,
        *out[1:],
    )
    return out[0].data


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
    lefts = golib.ffi.new("uint64_t[]", [left.number for left, _ in terms])
    rights = golib.ffi.new("uint64_t[]", [right.number for _, right in terms])
    matrix = (golib.ffi.NULL, golib.ffi.NULL) if plain is None else _matrix(plain)
    size = key.ring.residues_size(layout.rows * layout.cols) + layout.out_polys * key.ring.poly_size
    out = golib.bytes_out(size)
    golib.call(
        "atoll_product_multiply",
        key.number,
        lefts,
        rights,
        len(terms),
        *matrix,
        limit,
        *golib.bytes_in(seed),
        *golib.bytes_in(domain),
        *out[1:],
    )
    return out[0].data


class ProductSum(_Object):
    """The coordinator's running sum of products, then of masked decryption shares."""

    def __init__(self, ring: Ring, layout: Layout) -> None:
        self.ring = ring
        self.layout = layout
        self._handle = golib.Handle("atoll_product_sum", ring.index, _sizes(layout))

    def add(self, product: golib.Buffer) -> None:
        """Take in one product."""
        golib.call("atoll_product_sum_add", self.number, 0, *golib.bytes_in(product))

    def second(self) -> memoryview:
        """The second halves of the sum: what parties need for their decryption shares."""
        out = golib.bytes_out(self.layout.out_polys * self.ring.poly_size)
        golib.call("atoll_product_sum_second", self.number, *out[1:])
        return out[0].data

    def add_share(self, message: golib.Buffer) -> None:
        """Take in one party's masked decryption share."""
        golib.call("atoll_product_sum_add", self.number, 1, *golib.bytes_in(message))

    def clear(self, clearing: Clearing) -> Integers:
        """The masked values, truncated: the coordinator's share of the result."""
        out = _empty(self.layout.rows, self.layout.cols, clearing.share_words)
        golib.call("atoll_product_sum_clear", self.number, _sizes(clearing), *_matrix(out))
        return out

    def total(self) -> memoryview:
        """The masked values before they are truncated, for :func:`clear_total`."""
        out = golib.bytes_out(self.ring.residues_size(self.layout.rows * self.layout.cols))
        golib.call("atoll_product_sum_total", self.number, *out[1:])
        return out[0].data


def clear_total(ring: Ring, layout: Layout, total: golib.Buffer, clearing: Clearing) -> Integers:
    """The public share of a result, from the masked values as :meth:`ProductSum.total` gave them."""
    out = _empty(layout.rows, layout.cols, clearing.share_words)
    golib.call(
        "atoll_product_clear_total",
        ring.index,
        _sizes(layout),
        *golib.bytes_in(total),
        _sizes(clearing),
        *_matrix(out),
    )
    return out


class Fingerprint(_Object):
    """A secret linear map of messages to residues: that of a sum is the sum of those of its parts."""

    def __init__(self, seed: bytes) -> None:
        self._handle = golib.Handle("atoll_product_fingerprint", *golib.bytes_in(seed))

    def of(self, ring: Ring, message: golib.Buffer, count: int) -> list[int]:
        """Two residues modulo each modulus, of a message of ``count`` packed residues per limb and block."""
        out = np.empty(POINTS * ring.limbs, dtype=np.uint64)
        golib.call(
            "atoll_product_fingerprint_of",
            self.number,
            ring.index,
            *golib.bytes_in(message),
            count,
            *golib.words_out(out),
        )
        return [int(value) for value in out]


def combine(matrices: Sequence[Integers], coefficients: Sequence[int], shift: int, words: int) -> Integers:
    """round(sum of coefficients times matrices / 2^shift), entry by entry."""
    widest = max(matrix.shape[2] for matrix in matrices)
    same = [widened(matrix, widest) for matrix in matrices]
    kept = [golib.words_in(matrix)[0] for matrix in same]
    rows, cols, _ = same[0].shape
    out = _empty(rows, cols, words)
    golib.call(
        "atoll_product_combine",
        golib.ffi.new("uint64_t*[]", kept),
        len(same),
        golib.ffi.new("uint64_t[3]", list(same[0].shape)),
        golib.ffi.new("int64_t[]", list(coefficients)),
        shift,
        *_matrix(out),
    )
    return out


def smudge(x: Integers, width: int, seed: bytes, domain: bytes) -> Integers:
    """Every entry plus an integer uniform in [-2^(width-1), 2^(width-1))."""
    x = np.ascontiguousarray(x)
    out = np.empty_like(x)
    golib.call(
        "atoll_product_smudge",
        *_matrix(x),
        width,
        *golib.bytes_in(seed),
        *golib.bytes_in(domain),
        golib.words_out(out)[0],
    )
    return out


def from_ints(values: npt.ArrayLike, words: int) -> Integers:
    """A matrix of Python integers (or int64) as words; too large ones are a RangeOverflow.

    Of int64 the words may be a view, also of a transpose.
    """
    array = np.asarray(values)
    if array.ndim != 2:
        raise ParameterError(f"a matrix has two dimensions. Got {array.ndim}.")
    if array.dtype == np.int64 and words == 1 and (array.flags.c_contiguous or array.flags.f_contiguous):
        return array.view(np.uint64)[:, :, None]
    if array.dtype != object:
        narrow = np.ascontiguousarray(array, dtype=np.int64)
        return widened(narrow.view(np.uint64).reshape(*narrow.shape, 1), words)
    try:
        data = b"".join(int(value).to_bytes(8 * words, "little", signed=True) for value in array.flat)
    except OverflowError as problem:
        raise RangeOverflow(f"an integer does not fit {words} words") from problem
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(*array.shape, words)


def to_ints(x: Integers) -> npt.NDArray[np.object_]:
    """The words as a matrix of Python integers."""
    rows, cols, words = x.shape
    data = np.ascontiguousarray(x).astype("<u8").tobytes()
    step = 8 * words
    values = [int.from_bytes(data[i : i + step], "little", signed=True) for i in range(0, len(data), step)]
    out = np.empty(rows * cols, dtype=object)
    out[:] = values
    return out.reshape(rows, cols)


def widened(x: Integers, words: int) -> Integers:
    """The same integers in more words."""
    if x.shape[2] == words:
        return np.ascontiguousarray(x)
    if x.shape[2] > words:
        raise ParameterError(f"integers of {x.shape[2]} words do not fit {words}")
    out = _empty(x.shape[0], x.shape[1], words)
    out[:, :, : x.shape[2]] = x
    sign = np.ascontiguousarray(x[:, :, -1]).view(np.int64) >> 63
    out[:, :, x.shape[2] :] = sign.view(np.uint64)[:, :, None]
    return out


def _empty(rows: int, cols: int, words: int) -> Integers:
    return np.empty((rows, cols, words), dtype=np.uint64)


def _matrix(x: Integers) -> tuple[Any, Any]:
    if x.dtype != np.uint64 or x.ndim != 3:
        raise ParameterError(f"a matrix is a (rows, columns, words) array of uint64. Got {x.shape}.")
    # The pointer keeps what it points to alive.
    return golib.words_in(np.ascontiguousarray(x))[0], golib.ffi.new("uint64_t[3]", list(x.shape))


def _sizes(numbers: Layout | Clearing) -> Any:
    return golib.ffi.new("uint64_t[]", list(astuple(numbers)))
