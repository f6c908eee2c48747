"""The codec: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import pickle
import struct
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from atoll import codec
from atoll.errors import MessageError


class Table(codec.Message, frozen=True):
    body: np.ndarray[Any, Any]
    names: tuple[str, ...]


class Note(codec.Message, frozen=True):
    n: int


DECODER = codec.Decoder[codec.Message]((Table, Note))
dtypes = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|b1"])


@given(hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
def test_arrays_come_back_as_they_were(array: np.ndarray) -> None:
    back = DECODER.decode(codec.encode(Table(array, ("a",))))
    assert isinstance(back, Table)
    assert back.body.dtype == array.dtype
    np.testing.assert_array_equal(back.body, array)


def test_numbers_of_another_byte_order_are_the_same_numbers() -> None:
    for code in ("f8", "f4", "i8", "i4", "u8", "u4"):
        array = np.arange(6).reshape(2, 3).astype(f">{code}")
        back = DECODER.decode(codec.encode(Table(array, ())))
        assert isinstance(back, Table)
        assert back.body.dtype == np.dtype(f"<{code}")
        assert back.body.tolist() == array.tolist()


def test_decoded_arrays_cannot_be_written() -> None:
    back = DECODER.decode(codec.encode(Table(np.zeros(3), ())))
    with pytest.raises(ValueError, match="read-only"):
        back.body[0] = 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pickle.dumps({"type": "Note", "n": 3}),
        codec.encode({"type": "Nothing", "n": 3}),
        codec.encode({"type": "Note", "n": "3"}),
        codec.encode({"type": "Note"}),
        codec.encode({"type": "Note", "n": 3, "extra": 1}),
        codec.encode({"type": "Table", "body": [1.0], "names": []}),
        codec.encode(Table(np.zeros(3), ("a",)))[:-1],
        codec.encode(Note(1)) + b"\x00",
        codec.encode([[[[]]]] * 3),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(MessageError):
        DECODER.decode(data)


@given(st.binary(max_size=200))
def test_random_bytes_never_crash(data: bytes) -> None:
    with contextlib.suppress(MessageError):
        DECODER.decode(data)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_changes_only_values(position: int, flip: int) -> None:
    data = bytearray(codec.encode(Table(np.arange(12.0).reshape(3, 4), ("age", "dose"))))
    data[position % len(data)] ^= flip
    try:
        back = DECODER.decode(bytes(data))
    except MessageError:
        return
    assert isinstance(back, Table)
    assert back.body.nbytes <= len(data)


def test_an_array_that_lies_about_its_shape_is_refused() -> None:
    honest = codec.encode(Table(np.zeros(4), ()))
    lying = honest.replace((4).to_bytes(8, "little"), (2**40).to_bytes(8, "little"))
    assert lying != honest
    with pytest.raises(MessageError, match="does not match its shape"):
        DECODER.decode(lying)


@pytest.mark.parametrize(
    ("extension", "block", "said"),
    [
        (1, b"", "malformed array header"),
        (1, b"\x00", "malformed array header"),
        (1, b"\x08\x00" + bytes(8), "malformed array header"),  # there are eight kinds of numbers, 0 to 7
        (1, b"\x00\x05" + (1).to_bytes(8, "little") * 5 + bytes(8), "malformed array header"),
        (1, b"\x00\x02" + bytes(15), "malformed array header"),
        (2, b"\x00\x00" + bytes(8), "unknown extension 2"),
    ],
)
def test_a_block_that_is_no_array_is_refused_as_such(extension: int, block: bytes, said: str) -> None:
    body = msgspec.msgpack.Ext(extension, block)
    with pytest.raises(MessageError, match=said):
        DECODER.decode(msgspec.msgpack.encode({"type": "Table", "body": body, "names": []}))


def test_an_array_travels_with_four_dimensions_and_not_with_five() -> None:
    back = DECODER.decode(codec.encode(Table(np.zeros((1, 2, 1, 2)), ())))
    assert isinstance(back, Table)
    assert back.body.shape == (1, 2, 1, 2)
    with pytest.raises(TypeError, match="an array of 5 dimensions cannot travel"):
        codec.encode(Table(np.zeros((1, 1, 1, 1, 1)), ()))


def test_a_message_may_be_as_long_as_the_limit_and_no_longer() -> None:
    note = codec.encode(Note(1))
    assert codec.encode(Note(1), limit=len(note)) == note
    assert codec.Decoder[Any]((Note,), limit=len(note)).decode(note) is not None
    with pytest.raises(MessageError, match="over the limit"):
        codec.encode(Note(1), limit=len(note) - 1)
    with pytest.raises(MessageError, match="over the limit"):
        codec.Decoder[Any]((Note,), limit=len(note) - 1).decode(note)


def test_size_limits_hold_both_ways() -> None:
    data = codec.encode(Table(np.zeros(1000), ()))
    with pytest.raises(MessageError, match="over the limit"):
        codec.encode(Table(np.zeros(1000), ()), limit=1000)
    with pytest.raises(MessageError, match="over the limit"):
        codec.Decoder[Any]((Table,), limit=1000).decode(data)


@pytest.mark.parametrize("value", [np.array(["text"]), np.array([object()]), np.array([1j]), object()])
def test_what_cannot_travel_is_said(value: object) -> None:
    with pytest.raises(TypeError, match="cannot travel"):
        codec.encode(value)


def test_a_message_shows_its_kind_never_its_content() -> None:
    assert repr(Note(12345)) == "<Note>"


def test_no_message_is_above_two_gibibytes_unless_somebody_says_so() -> None:
    assert codec.MAX_MESSAGE_BYTES == 2_147_483_648
    for function in (codec.encode, codec.encoded, codec.Decoder.__init__, codec.decode):
        assert inspect.signature(function).parameters["limit"].default == 2_147_483_648


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_what_is_nested_too_deeply_is_malformed(depth: int) -> None:
    """An error of Python's own would end whoever reads, not the message."""
    with pytest.raises(MessageError, match="malformed message"):
        codec.decode(b"\x91" * depth + b"\x01")


def test_a_boolean_is_zero_or_one() -> None:
    honest = codec.encode(Table(np.array([True, False, True]), ()))
    assert honest.count(b"\x01\x00\x01") == 1
    with pytest.raises(MessageError, match="other bytes than 0 and 1"):
        DECODER.decode(honest.replace(b"\x01\x00\x01", b"\x01\x02\x01"))


def test_the_error_about_a_message_quotes_nothing_of_it() -> None:
    with pytest.raises(MessageError) as caught:
        DECODER.decode(codec.encode({"type": "Jane Doe, 1961", "n": 3}))
    assert "Jane" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None  # a traceback would print it


# ---- buffers that are not copied ----


class Bulk(codec.Message, frozen=True):
    step: int
    body: memoryview


def frozen(size: int) -> memoryview:
    room = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    room.flags.writeable = False
    return room.data


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_001])
def test_a_header_and_its_buffer_are_the_bytes_of_the_message(size: int) -> None:
    message = Bulk(7, frozen(size))
    sent = codec.encoded(message)
    assert sent.whole() == codec.encode(message)
    assert sent.size == len(sent.whole())
    assert sent.digest == hashlib.sha256(sent.whole()).digest()
    assert (sent.body.obj is message.body.obj) == (size >= 65_536)
    read = codec.Decoder[codec.Message]([Bulk]).of(sent)
    assert isinstance(read, Bulk)
    assert (read.step, bytes(read.body)) == (7, bytes(message.body))
    assert read.body.readonly


def test_a_buffer_that_its_sender_may_still_write_to_is_copied() -> None:
    whole = np.zeros(1 << 17, np.uint8)
    part = whole[:]  # cannot be written to itself, and shows what can
    part.flags.writeable = False
    for owner, shown in (
        (own := bytearray(1 << 17), memoryview(own).toreadonly()),
        (row := np.zeros(1 << 17, np.uint8), memoryview(row).toreadonly()),
        (whole, part.data),
    ):
        sent = codec.encoded(Bulk(1, shown))
        owner[0] = 1
        assert codec.Decoder[codec.Message]([Bulk]).decode(sent.whole()).body[0] == 0  # type: ignore[attr-defined]


def test_a_buffer_of_another_length_than_its_header_says_is_refused() -> None:
    sent = codec.encoded(Bulk(1, frozen(1 << 17)))
    for wrong in (sent._replace(body=sent.body[1:]), sent._replace(head=sent.head[:-1])):
        with pytest.raises(MessageError, match="malformed message"):
            codec.Decoder[codec.Message]([Bulk]).of(wrong)
    with pytest.raises(MessageError, match="malformed message"):
        codec.Decoder[codec.Message]([Note]).of(sent)


def test_limits_are_of_a_header_and_its_buffer_together() -> None:
    message = Bulk(1, frozen(1 << 17))
    sent = codec.encoded(message)
    assert codec.encoded(message, limit=sent.size).whole() == sent.whole()
    assert codec.Decoder[Any]([Bulk], limit=sent.size).of(sent) is not None
    for limit in (sent.size - 1, len(sent.body) + 1, len(sent.body), len(sent.body) - 1, 1 << 16):
        with pytest.raises(MessageError, match="over the limit"):
            codec.encoded(message, limit=limit)
        with pytest.raises(MessageError):
            codec.Decoder[Any]([Bulk], limit=limit).of(sent)


class Sealed(codec.Message, frozen=True):
    step: int
    body: bytes


def test_a_buffer_stands_in_no_field_of_another_type() -> None:
    """Bytes would be a view that no role expects: equal to nothing, and no key of a dictionary."""
    body = frozen(1 << 17)
    head = codec.encode(Sealed(1, b""))[:-2] + struct.pack(">BI", 0xC6, len(body))
    with pytest.raises(MessageError, match="a buffer where none was expected"):
        codec.Decoder[codec.Message]([Sealed]).of(codec.Encoded(head, body))
