"""Messages to bytes and back: msgpack through msgspec, with arrays, size limits and strict types.

A message is a frozen, tagged struct; unknown fields, unknown tags and wrong types are refused. An
array travels as one extension block (dtype code, shape, raw little-endian data) and is decoded as a
read-only view of the message's bytes: nothing is copied, nothing is ever unpickled.

A large buffer in a message's last field need not be copied to be sent: :func:`encoded` gives the bytes before
it and the buffer itself. Together they are what :func:`encode` gives.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_origin

import msgspec
import numpy as np
import numpy.typing as npt

from atoll.errors import MessageError

MAX_MESSAGE_BYTES = 1 << 31
MAX_DIMENSIONS = 4

_ARRAY_EXT = 1
_DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(code) for code in ("<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|b1")
)
_CODE_OF = {dtype: code for code, dtype in enumerate(_DTYPES)}

Array = npt.NDArray[Any]


class Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True, eq=False):
    """Base of everything that travels between roles."""

    def __repr__(self) -> str:
        # Messages hold shares, ciphertexts and projections: show the kind, never the content.
        return f"<{type(self).__name__}>"


class _Nothing(Message, frozen=True):
    """Stands where a protocol has no messages at all."""


M = TypeVar("M")


def _encode_custom(value: object) -> msgspec.msgpack.Ext:
    if isinstance(value, np.ndarray):
        return msgspec.msgpack.Ext(_ARRAY_EXT, _array_to_bytes(value))
    if isinstance(value, np.generic):
        return msgspec.msgpack.Ext(_ARRAY_EXT, _array_to_bytes(np.asarray(value)))
    raise TypeError(f"a {type(value).__name__} cannot travel in a message")


def _array_to_bytes(array: Array) -> bytearray:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    code = _CODE_OF.get(little.dtype)
    if code is None:
        raise TypeError(f"an array of {array.dtype} cannot travel in a message")
    if array.ndim > MAX_DIMENSIONS:
        raise TypeError(f"an array of {array.ndim} dimensions cannot travel in a message")
    block = bytearray(struct.pack(f"<BB{array.ndim}Q", code, array.ndim, *array.shape))
    block += np.ascontiguousarray(little).data.cast("B") if array.size else b""
    return block


def _decode_ext(code: int, data: memoryview) -> Array:
    if code != _ARRAY_EXT:
        raise ValueError(f"unknown extension {code}")
    return _array_from_bytes(data)


def _array_from_bytes(data: memoryview) -> Array:
    if len(data) < 2 or data[0] >= len(_DTYPES) or data[1] > MAX_DIMENSIONS:
        raise ValueError("malformed array header")
    dtype, ndim = _DTYPES[data[0]], data[1]
    start = 2 + 8 * ndim
    if len(data) < start:
        raise ValueError("malformed array header")
    shape = struct.unpack_from(f"<{ndim}Q", data, 2)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError("an array's size does not match its shape")
    array = np.frombuffer(data[start:], dtype=dtype).reshape(shape)
    if dtype.kind == "b" and data[start:].tobytes().strip(b"\x00\x01"):
        raise ValueError("a boolean array holds other bytes than 0 and 1")
    array.flags.writeable = False
    return array


def _decode_custom(kind: type, value: object) -> object:
    if (get_origin(kind) or kind) is np.ndarray and isinstance(value, np.ndarray):
        return value
    raise ValueError("expected an array")


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_custom)


def encode(value: object, *, limit: int = MAX_MESSAGE_BYTES) -> bytes:
    """The bytes of a message or of plain data with arrays in it."""
    data = _encoder.encode(value)
    if len(data) > limit:
        raise MessageError(
            f"a message of {len(data):,} bytes is over the limit of {limit:,}",
            hint="fewer columns, or a secure sum that streams, make it smaller",
        )
    return data


def _frozen(value: object) -> bool:
    """Whether nobody can write to what a view shows: it may then travel as it is."""
    if not isinstance(value, memoryview) or not value.readonly or not value.c_contiguous:
        return False
    owner = value.obj
    return isinstance(owner, bytes) or (
        isinstance(owner, np.ndarray) and owner.flags.owndata and not owner.flags.writeable
    )


class Encoded(NamedTuple):
    """A message as it travels: its first bytes, and the buffer that follows them (it may be empty)."""

    head: bytes
    body: memoryview

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.head) + len(self.body)

    @property
    def digest(self) -> bytes:
        """SHA-256 of all bytes."""
        state = hashlib.sha256(self.head)
        state.update(self.body)
        return state.digest()

    def whole(self) -> bytes:
        """All bytes in one piece; copies."""
        return b"".join(self) if self.body else self.head


_NO_BODY = memoryview(b"")
_LEAST_BODY = 1 << 16
"""Bytes from which a buffer is not copied."""
_EMPTY = b"\xc4\x00"


def _buffer_head(size: int) -> bytes:
    """What stands before a buffer of so many bytes, at least 2^16, in msgpack."""
    return struct.pack(">BI", 0xC6, size)


def encoded(message: Message, *, limit: int = MAX_MESSAGE_BYTES) -> Encoded:
    """A message as it travels, without a copy of a large frozen buffer that it ends with."""
    last = message.__struct_fields__[-1] if message.__struct_fields__ else ""
    body: Any = getattr(message, last) if last else None
    if not _frozen(body) or not _LEAST_BODY <= body.nbytes <= limit:
        return Encoded(encode(message, limit=limit), _NO_BODY)
    head = msgspec.structs.replace(message, **{last: msgspec.Raw(_buffer_head(body.nbytes))})
    return Encoded(encode(head, limit=limit - body.nbytes), body.cast("B"))


class Decoder(Generic[M]):
    """Bytes back to one of the given message types, or :class:`MessageError`."""

    def __init__(self, kinds: Sequence[type[M]] | Any, *, limit: int = MAX_MESSAGE_BYTES) -> None:
        kind: Any = kinds
        if isinstance(kinds, Sequence):
            kind = Union[tuple(kinds) or (_Nothing,)]  # noqa: UP007
        self._limit = limit
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(
            kind, dec_hook=_decode_custom, ext_hook=_decode_ext
        )

    def of(self, data: Encoded) -> M:
        """The message of these bytes; a large buffer in it is not copied."""
        if not data.body:
            return self.decode(data.head)
        head = _buffer_head(len(data.body))
        if data.size > self._limit or not data.head.endswith(head):
            raise MessageError("malformed message: a buffer is not as long as is said before it")
        message: Any = self.decode(data.head[: -len(head)] + _EMPTY)
        last = message.__struct_fields__[-1]
        if not isinstance(getattr(message, last), memoryview):
            raise MessageError("malformed message: a buffer where none was expected")
        made: M = msgspec.structs.replace(message, **{last: data.body})
        return made

    def decode(self, data: bytes | memoryview) -> M:
        if len(data) > self._limit:
            raise MessageError(f"a message of {len(data):,} bytes is over the limit of {self._limit:,}")
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
            # The cause names a field and a type, never a value.
            raise MessageError(f"malformed message: {_without_values(error)}") from None


def _without_values(error: Exception) -> str:
    return re.sub(r"'[^']*'", "'...'", str(error).split("\n", 1)[0][:200])


def decode(data: bytes | memoryview, kind: Any = Any, *, limit: int = MAX_MESSAGE_BYTES) -> Any:
    """One-off decoding of ``kind``."""
    return Decoder[Any](kind, limit=limit).decode(data)
