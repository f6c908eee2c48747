"""CRC-32C, bit by bit in a table of 256: to mend the checksum of a message that a test changed."""

from __future__ import annotations

import struct

_CHECKSUM_AT = 32
_BODY_AT = 36


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value


_TABLE = [_entry(value) for value in range(256)]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def mend(message: bytearray) -> None:
    """Make the checksum of a changed message right again."""
    checksum = crc32c(bytes(message[:_CHECKSUM_AT]) + bytes(message[_BODY_AT:]))
    struct.pack_into("<I", message, _CHECKSUM_AT, checksum)
