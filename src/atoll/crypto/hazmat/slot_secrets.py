"""Encrypted vectors in slots: what needs a party's secret, and what is made of all parties' parts.

Hazardous material: every rule about what may be done twice stands with the caller. A party makes one
refresh part, one opening part, one switching part or one share part of a ciphertext and never two; a common
seed serves one set of keys, or one refresh. What is random is a function of 32-byte seeds that the caller
drew and recorded: the same seeds make the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat import golib
from atoll.crypto.hazmat.slots import (
    INPUT,
    OPENING,
    PUBLIC,
    REFRESH,
    RELINEARISATION_1,
    RELINEARISATION_2,
    ROTATION,
    SHARE,
    SWITCHING,
    Ciphertext,
    Set,
    SlotObject,
    Values,
    handles,
    made,
)
from atoll.errors import ParameterError
from atoll.randomness import SEED_BYTES

Shares = npt.NDArray[np.uint64]
"""One row a slot: an integer in two's complement, least significant word first."""

SHARE_WORDS: Final = 2

golib.declare("""
int32_t atoll_ckks_secret(uint32_t, uint32_t, uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_key_part(uint64_t, uint32_t, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_total(uint32_t, uint32_t, uint8_t**, uint64_t*, uint64_t, uint8_t*, uint64_t,
    char*, uint64_t);
int32_t atoll_ckks_refresh_parts(uint64_t, uint64_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t**, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_refreshed(uint64_t*, uint64_t, uint8_t**, uint64_t*, uint8_t*, uint64_t, uint32_t,
    uint64_t*, char*, uint64_t);
int32_t atoll_ckks_opening_parts(uint64_t, uint64_t*, uint64_t*, uint64_t, uint32_t, uint8_t*, uint64_t,
    uint8_t**, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_opened(uint64_t*, uint64_t, uint8_t**, uint64_t*, double*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_switching_parts(uint64_t, uint64_t*, uint64_t*, uint64_t, uint32_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t**, uint64_t*, char*, uint64_t);
int32_t atoll_ckks_switched(uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_read_switched(uint64_t, uint8_t*, uint64_t, double*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_share_part(uint64_t, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    char*, uint64_t);
int32_t atoll_ckks_public_share(uint64_t, uint8_t*, uint64_t, uint32_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_input_part(uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_ckks_from_inputs(uint32_t, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint64_t*,
    char*, uint64_t);
""")


class Secret(SlotObject):
    """One party's part of the secret key, expanded from its seed; or a receiver's own key."""

    @staticmethod
    def generate(of: Set, seed: bytes) -> Secret:
        """The secret of a seed."""
        return Secret(of, golib.Handle("atoll_ckks_secret", of.number, of.flags, *golib.bytes_in(seed)))

    # ---- keys ----

    def public_part(self, common: bytes, seed: bytes) -> bytes:
        """This party's part of the public key."""
        return self._key_part(PUBLIC, 0, common, seed)

    def relinearisation_part_1(self, common: bytes, seed: bytes) -> bytes:
        """This party's part of the first round of the relinearisation key."""
        return self._key_part(RELINEARISATION_1, 0, common, seed)

    def relinearisation_part_2(self, common: bytes, seed: bytes, round_1_total: golib.Buffer) -> bytes:
        """This party's part of the second round, with the same seed as in the first."""
        return self._key_part(RELINEARISATION_2, 0, common, seed, round_1_total)

    def rotation_part(self, common: bytes, seed: bytes, step: int) -> bytes:
        """This party's part of the key that rotates to the left by a power of two."""
        return self._key_part(ROTATION, step, common, seed)

    def _key_part(
        self, kind: int, step: int, common: bytes, seed: bytes, round_1: golib.Buffer = b""
    ) -> bytes:
        out = golib.bytes_new(self.set.size(kind, None, step))
        seeds = (*golib.bytes_in(common), *golib.bytes_in(seed))
        golib.call("atoll_ckks_key_part", self.number, kind, step, *seeds, *golib.bytes_in(round_1), *out[1:])
        return out[0]

    # ---- refreshing, opening, switching ----

    def refresh_parts(
        self, xs: Sequence[Ciphertext], commons: Sequence[bytes], seed: bytes
    ) -> list[memoryview]:
        """This party's parts of refreshes, each under a common seed of its own."""
        rooms = _rooms([self.set.size(REFRESH, x.level) for x in xs])
        seeds = (*golib.bytes_in(_joined(commons)), *golib.bytes_in(seed))
        golib.call("atoll_ckks_refresh_parts", self.number, handles(xs), len(xs), *seeds, *_room_list(rooms))
        return [golib.frozen(room) for room in rooms]

    def refresh_part(self, x: Ciphertext, common: bytes, seed: bytes) -> memoryview:
        """This party's part of a refresh."""
        return self.refresh_parts([x], [common], seed)[0]

    def opening_parts(
        self, xs: Sequence[Ciphertext], lengths: Sequence[int], seed: bytes, flooding_bits: int
    ) -> list[memoryview]:
        """This party's parts of openings of so many first slots of each.

        Flooding is uniform on so many bits in every coefficient; f bits from each of n parties cost about
        2^(f - 38) sqrt(slots n / 12) in every slot. Noise hides all other slots, and imaginary parts.
        """
        rooms = _rooms([self.set.size(OPENING, x.level, flooding_bits) for x in xs])
        golib.call(
            "atoll_ckks_opening_parts",
            self.number,
            handles(xs),
            _lengths(xs, lengths),
            len(xs),
            flooding_bits,
            *golib.bytes_in(seed),
            *_room_list(rooms),
        )
        return [golib.frozen(room) for room in rooms]

    def opening_part(
        self, x: Ciphertext, seed: bytes, flooding_bits: int, length: int | None = None
    ) -> memoryview:
        """This party's part of an opening, of all slots unless told otherwise."""
        return self.opening_parts([x], [self.set.slots if length is None else length], seed, flooding_bits)[0]

    def switching_parts(
        self,
        xs: Sequence[Ciphertext],
        lengths: Sequence[int],
        receiver_common: bytes,
        receiver_public: golib.Buffer,
        seed: bytes,
        flooding_bits: int,
    ) -> list[memoryview]:
        """The same for a receiver alone, given by its public part and the seed of that."""
        rooms = _rooms([self.set.size(SWITCHING, x.level, flooding_bits) for x in xs])
        golib.call(
            "atoll_ckks_switching_parts",
            self.number,
            handles(xs),
            _lengths(xs, lengths),
            len(xs),
            flooding_bits,
            *golib.bytes_in(receiver_common),
            *golib.bytes_in(receiver_public),
            *golib.bytes_in(seed),
            *_room_list(rooms),
        )
        return [golib.frozen(room) for room in rooms]

    def switching_part(
        self,
        x: Ciphertext,
        receiver_common: bytes,
        receiver_public: golib.Buffer,
        seed: bytes,
        flooding_bits: int,
        length: int | None = None,
    ) -> memoryview:
        """This party's part of handing a ciphertext to a receiver, all slots unless told otherwise."""
        lengths = [self.set.slots if length is None else length]
        return self.switching_parts([x], lengths, receiver_common, receiver_public, seed, flooding_bits)[0]

    def decrypt(self, message: golib.Buffer, length: int | None = None) -> Values:
        """What :func:`switched` handed to this key."""
        values = np.empty(self.set.slots if length is None else length)
        out = golib.ffi.from_buffer("double[]", values, require_writable=True)
        golib.call("atoll_ckks_read_switched", self.number, *golib.bytes_in(message), out, len(values))
        return values

    # ---- shares ----

    def share_part(self, x: Ciphertext, seed: bytes) -> tuple[memoryview, Shares]:
        """This party's part of turning a ciphertext into shares, and its share, for itself alone.

        All parties' shares and the :func:`public_share` add up to the slots in units of 2^-scale_bits.
        """
        out, shares = golib.bytes_out(self.set.size(SHARE, x.level)), _empty_shares(self.set)
        golib.call(
            "atoll_ckks_share_part",
            self.number,
            x.number,
            *golib.bytes_in(seed),
            *out[1:],
            *_share_bytes(shares),
        )
        return golib.frozen(out), shares

    def input_part(self, shares: Shares, common: bytes, seed: bytes) -> memoryview:
        """This party's part of an encryption of values of which it holds shares."""
        if shares.shape != (self.set.slots, SHARE_WORDS) or shares.dtype != np.uint64:
            raise ParameterError(f"shares are a ({self.set.slots}, {SHARE_WORDS}) array of 64-bit words")
        out = golib.bytes_out(self.set.size(INPUT))
        seeds = (*golib.bytes_in(common), *golib.bytes_in(seed))
        golib.call(
            "atoll_ckks_input_part",
            self.number,
            *_share_bytes(np.ascontiguousarray(shares)),
            *seeds,
            *out[1:],
        )
        return golib.frozen(out)


def total(of: Set, parts: Sequence[golib.Buffer]) -> bytes:
    """All parties' parts of one thing, added up."""
    if not parts:
        raise ParameterError("there are no parts to add up")
    buffers = golib.BufferList(parts)
    out = golib.bytes_new(len(parts[0]))
    golib.call("atoll_ckks_total", of.number, of.flags, *buffers.arguments, *out[1:])
    return out[0]


def refreshed_all(
    xs: Sequence[Ciphertext], totals: Sequence[golib.Buffer], commons: Sequence[bytes], parties: int
) -> list[Ciphertext]:
    """The vectors at the highest level, from the totals of all parties' parts."""
    buffers = _one_each(xs, totals)
    pointers, sizes, count = buffers.arguments
    seeds = golib.bytes_in(_joined(commons))
    return made(
        xs[0].set, count, "atoll_ckks_refreshed", handles(xs), count, pointers, sizes, *seeds, parties
    )


def refreshed(x: Ciphertext, parts_total: golib.Buffer, common: bytes, parties: int) -> Ciphertext:
    """The vector at the highest level."""
    return refreshed_all([x], [parts_total], [common], parties)[0]


def opened_all(xs: Sequence[Ciphertext], totals: Sequence[golib.Buffer], length: int) -> list[Values]:
    """The first numbers of every vector, from the totals of all parties' opening parts."""
    buffers = _one_each(xs, totals)
    pointers, sizes, count = buffers.arguments
    values = np.empty((count, length))
    out = golib.ffi.from_buffer("double[]", values, require_writable=True)
    golib.call("atoll_ckks_opened", handles(xs), count, pointers, sizes, out, length)
    return list(values)


def opened(x: Ciphertext, parts_total: golib.Buffer, length: int | None = None) -> Values:
    """The numbers of a vector."""
    return opened_all([x], [parts_total], x.set.slots if length is None else length)[0]


def switched(x: Ciphertext, parts_total: golib.Buffer) -> bytes:
    """The ciphertext under the receiver's key, for :meth:`Secret.decrypt`."""
    out = golib.bytes_new(len(parts_total))
    golib.call("atoll_ckks_switched", x.number, *golib.bytes_in(parts_total), *out[1:])
    return out[0]


def public_share(x: Ciphertext, parts_total: golib.Buffer, parties: int) -> Shares:
    """The share that everybody may know."""
    shares = _empty_shares(x.set)
    golib.call(
        "atoll_ckks_public_share", x.number, *golib.bytes_in(parts_total), parties, *_share_bytes(shares)
    )
    return shares


def from_inputs(of: Set, parts_total: golib.Buffer, common: bytes) -> Ciphertext:
    """The ciphertext of the sum of all parties' shares."""
    seeds = golib.bytes_in(common)
    opened_handle = golib.Handle(
        "atoll_ckks_from_inputs", of.number, of.flags, *golib.bytes_in(parts_total), *seeds
    )
    return Ciphertext(of, opened_handle)


def _one_each(xs: Sequence[Ciphertext], totals: Sequence[golib.Buffer]) -> golib.BufferList:
    if len(xs) != len(totals) or not xs:
        raise ParameterError(f"{len(xs)} ciphertexts do not go with {len(totals)} totals")
    return golib.BufferList(totals)


def _joined(commons: Sequence[bytes]) -> bytes:
    if any(len(common) != SEED_BYTES for common in commons):
        raise ParameterError(f"a seed has {SEED_BYTES} bytes")
    return b"".join(commons)


def _rooms(sizes: Sequence[int]) -> list[golib.Room]:
    return [golib.bytes_out(size) for size in sizes]


def _lengths(xs: Sequence[Ciphertext], lengths: Sequence[int]) -> object:
    if len(lengths) != len(xs):
        raise ParameterError(f"{len(xs)} ciphertexts do not go with {len(lengths)} lengths")
    return golib.ffi.new("uint64_t[]", list(lengths))


def _room_list(rooms: Sequence[golib.Room]) -> tuple[object, object]:
    pointers = golib.ffi.new("uint8_t*[]", [room[1] for room in rooms])
    return pointers, golib.ffi.new("uint64_t[]", [room[2] for room in rooms])


def _empty_shares(of: Set) -> Shares:
    return np.empty((of.slots, SHARE_WORDS), dtype=np.uint64)


def _share_bytes(shares: Shares) -> tuple[object, int]:
    return golib.ffi.from_buffer("uint8_t[]", shares, require_writable=True), shares.nbytes
