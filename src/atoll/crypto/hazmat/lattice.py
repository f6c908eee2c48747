"""Exact sums under lattice encryption: vectors of 192-bit integers, added without being opened.

Hazardous material: this layer neither authenticates messages nor knows who may open what. Whoever holds
the secret key opens every single ciphertext, not only sums.

Two forms, with the parameters of :mod:`atoll.crypto.hazmat.parameters`; docs/explanation/lattice-sums.md says
how they work and why they were chosen.
:func:`plan` picks parameters. Then,

- one key holder: :func:`keygen`, :meth:`PublicKey.encrypt`, :func:`add`, :meth:`SecretKey.decrypt`;
- a collective key, where no role can open an input unless all members help: :func:`key_share`,
  :func:`aggregate`, :meth:`PublicKey.encrypt`, :func:`add`, :meth:`SecretKey.decryption_share` of every
  member, :meth:`PublicKey.combine`.

Vectors are planar ``(3, n)`` arrays of 64-bit limbs, least significant first; sums wrap at 2^192. Short
vectors are encrypted as residues (``LatticeParameters.moduli``), and then no value may exceed 2^190.
Everything that travels or is kept is bytes. What is random is a function of a 32-byte seed: record the
seed or the resulting bytes, and the rest follows. A decryption share draws nothing: the same secret and
ciphertext give the same share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat import golib
from atoll.crypto.hazmat.parameters import (
    LATTICE_COLLECTIVE,
    LATTICE_SINGLE,
    LATTICE_TABLE,
    LatticeParameters,
    secure,
)
from atoll.errors import ParameterError
from atoll.randomness import SEED_BYTES, fresh_seed

Limbs = npt.NDArray[np.uint64]

LIMBS: Final = 3
MAX_WIDTH: Final = 16

_ALLOW_INSECURE: Final = 1
RESIDUE_BYTES: Final = 7
HEADER_BYTES: Final = 36
_KEY_ID_BYTES: Final = 16
# Kinds of message, as go/additive numbers them.
_SECRET_KEY, PUBLIC_KEY, _CIPHERTEXT, _SECRET_SHARE, _KEY_SHARE, _DECRYPTION_SHARE = range(1, 7)

golib.declare("""
int32_t atoll_additive_table(uint8_t*, uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_size(uint64_t*, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_inspect(uint8_t*, uint64_t, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_keygen(uint32_t, uint32_t, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_key_share(uint32_t, uint32_t, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_aggregate(uint8_t**, uint64_t*, uint64_t, uint32_t, uint8_t*, uint64_t,
    char*, uint64_t);
int32_t atoll_additive_open_public(uint8_t*, uint64_t, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_open_secret(uint8_t*, uint64_t, uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_encrypt(uint64_t, uint64_t*, uint64_t, uint32_t, uint8_t*, uint64_t,
    uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_decrypt(uint64_t, uint8_t*, uint64_t, uint32_t, uint64_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_decryption_share(uint64_t, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint32_t,
    uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_combine(uint64_t, uint8_t*, uint64_t, uint8_t**, uint64_t*, uint64_t, uint32_t,
    uint64_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_adder(uint32_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_adder_add(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_adder_size(uint64_t, uint64_t*, char*, uint64_t);
int32_t atoll_additive_adder_finish(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_additive_adder_carries(uint64_t, uint8_t*, uint64_t, char*, uint64_t);
""")


@dataclass(frozen=True)
class KeyPair:
    """A secret key or share, and what may be shown of it."""

    secret: bytes
    public: bytes

    def __repr__(self) -> str:
        return f"KeyPair(secret=<{len(self.secret)} bytes>, public=<{len(self.public)} bytes>)"


@dataclass(frozen=True)
class Facts:
    """What a message's header says; all of it is public."""

    kind: int
    parameters_id: int
    width: int
    count: int
    values: int
    size: int


class Plan(NamedTuple):
    """A row of the parameter table and how many polynomials share one c1."""

    parameters: LatticeParameters
    width: int


def plan(n_values: int, *, rounds: int = 1, collective: bool = False) -> Plan:
    """The parameters and width with the fewest bytes for so many sums of vectors of this length.

    A wider key costs ``width`` polynomials once and saves c1 in every round; a small ring costs little
    for few values and more per value.
    """
    if n_values < 1 or rounds < 1:
        raise ParameterError(f"a plan is for at least one value and one round. Got {n_values} and {rounds}.")
    rows = [row for row in LATTICE_TABLE if row.collective == collective and not row.insecure]
    plans = [Plan(row, width) for row in rows for width in range(1, MAX_WIDTH + 1)]
    return min(plans, key=lambda candidate: _island_bytes(candidate, n_values, rounds))


def _island_bytes(candidate: Plan, n_values: int, rounds: int) -> int:
    """What one island sends and receives, but for what is small (headers, carries, comparisons)."""
    key, ciphertext, share = key_bytes(candidate), ciphertext_bytes(candidate, n_values), 0
    if candidate.parameters.collective:
        share = share_bytes(candidate, n_values)
        return 2 * key + rounds * (2 * ciphertext + share)
    return key + rounds * ciphertext


def key_bytes(chosen: Plan) -> int:
    """A public key's size, without its header."""
    row, width = chosen
    return width * len(row.primes) * row.degree * RESIDUE_BYTES


def ciphertext_bytes(chosen: Plan, n_values: int) -> int:
    """A ciphertext's size, without its header."""
    row, width = chosen
    slots = n_values * row.coefficients
    groups = -(-slots // (row.degree * width))
    return (groups * row.degree + slots) * row.cipher_bytes


def carry_bytes(chosen: Plan, n_values: int) -> int:
    """The size of a sum's carries."""
    return ciphertext_bytes(chosen, n_values) // chosen.parameters.cipher_bytes


def share_bytes(chosen: Plan, n_values: int) -> int:
    """A decryption share's size, without its header."""
    return n_values * chosen.parameters.coefficients * chosen.parameters.share_bytes


def keygen(
    *,
    width: int = 1,
    parameters: LatticeParameters = LATTICE_SINGLE,
    seed: bytes | None = None,
    for_tests: bool = False,
) -> KeyPair:
    """A single holder's key pair."""
    row = secure(parameters, for_tests=for_tests)
    flags = _flags(for_tests)
    secret, public = _room(_SECRET_KEY, row, width, flags), _room(PUBLIC_KEY, row, width, flags)
    seeds = golib.bytes_in(_seed(seed))
    golib.call("atoll_additive_keygen", row.id, width, flags, *seeds, *secret[1:], *public[1:])
    return KeyPair(secret[0], public[0])


def key_share(
    reference: bytes,
    *,
    width: int = 1,
    parameters: LatticeParameters = LATTICE_COLLECTIVE,
    seed: bytes | None = None,
    for_tests: bool = False,
) -> KeyPair:
    """One member's secret share and key share; ``reference`` is the members' common 32-byte seed.

    The reference is public, but must be fresh for every key and not one member's choice alone.
    """
    row = secure(parameters, for_tests=for_tests)
    flags = _flags(for_tests)
    secret, share = _room(_SECRET_SHARE, row, width, flags), _room(_KEY_SHARE, row, width, flags)
    common, own = golib.bytes_in(_seed(reference)), golib.bytes_in(_seed(seed))
    golib.call("atoll_additive_key_share", row.id, width, flags, *common, *own, *secret[1:], *share[1:])
    return KeyPair(secret[0], share[0])


def aggregate(shares: Sequence[bytes], *, for_tests: bool = False) -> bytes:
    """The collective public key from the key shares of all members, in an order all agree on."""
    if not shares:
        raise ParameterError("a collective key needs key shares")
    flags = _flags(for_tests)
    first = inspect(shares[0], for_tests=for_tests)
    size = _size(PUBLIC_KEY, first.parameters_id, first.width, flags, count=len(shares))
    public = golib.bytes_new(size)
    golib.call("atoll_additive_aggregate", *golib.BufferList(shares).arguments, flags, *public[1:])
    return public[0]


def add(ciphertexts: Iterable[bytes], *, for_tests: bool = False) -> bytes:
    """The sum of ciphertexts under one key."""
    with Adder(for_tests=for_tests) as adder:
        for ciphertext in ciphertexts:
            adder.add(ciphertext)
        return adder.finish()


def inspect(message: bytes, *, for_tests: bool = False) -> Facts:
    """A message's public dimensions, from its header."""
    facts = golib.ffi.new("uint64_t[6]")
    golib.call("atoll_additive_inspect", *golib.bytes_in(message), _flags(for_tests), facts)
    return Facts(*(int(fact) for fact in facts))


def coefficients(ciphertext: bytes) -> tuple[memoryview, int]:
    """A ciphertext's coefficients, all of c1 and then of c0: integers of so many bytes."""
    row = _row(ciphertext)
    return memoryview(ciphertext)[HEADER_BYTES:], row.cipher_bytes


def key_residues(key: bytes) -> tuple[memoryview, int, tuple[int, ...]]:
    """The residues of a public key or key share, 7 bytes each, how many stand together, and the primes.

    For every polynomial so many residues modulo the first prime, as many modulo the second, and so on.
    """
    row, facts = _row(key), inspect(key, for_tests=True)
    at = HEADER_BYTES + SEED_BYTES + (facts.count * _KEY_ID_BYTES if facts.kind == PUBLIC_KEY else 0)
    return memoryview(key)[at:], row.degree, tuple(row.primes)


def digest_of(message: bytes) -> bytes:
    """What tells messages apart; a decryption share carries that of its ciphertext."""
    return hashlib.sha256(message).digest()


def key_reference(key: bytes) -> bytes:
    """The reference that a public key or key share was made for."""
    return key[HEADER_BYTES : HEADER_BYTES + SEED_BYTES]


def _row(message: bytes) -> LatticeParameters:
    number = inspect(message, for_tests=True).parameters_id
    return next(row for row in LATTICE_TABLE if row.id == number)


def table() -> list[dict[str, Any]]:
    """The Go library's parameter table."""
    length = golib.ffi.new("uint64_t*")
    golib.call("atoll_additive_table", golib.ffi.NULL, 0, length)
    room = golib.bytes_out(int(length[0]))
    golib.call("atoll_additive_table", *room[1:], length)
    rows: list[dict[str, Any]] = json.loads(room[0].tobytes())
    return rows


class _Opened:
    """A Go object with a context manager; what it was made from stays with the caller."""

    _handle: golib.Handle

    def close(self) -> None:
        """Free the Go object now rather than when this one is collected."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PublicKey(_Opened):
    """A public key, ready to encrypt; for a collective key also to combine decryption shares."""

    def __init__(self, message: bytes, *, for_tests: bool = False) -> None:
        self._flags = _flags(for_tests)
        self._for_tests = for_tests
        self.facts = inspect(message, for_tests=for_tests)
        self._handle = golib.Handle("atoll_additive_open_public", *golib.bytes_in(message), self._flags)

    @property
    def members(self) -> int:
        """How many members share the secret key; 0 when one party holds it."""
        return self.facts.count

    def __repr__(self) -> str:
        return f"PublicKey(width={self.facts.width}, members={self.members})"

    def encrypt(self, limbs: Limbs, *, summands: int = 1, seed: bytes | None = None) -> bytes:
        """A ciphertext of the vector.

        With ``summands`` a value that could overflow a sum of so many is a RangeOverflow. A seed must
        be fresh for every vector; without one, it is drawn.
        """
        values, facts = _limbs(limbs), self.facts
        n = values.shape[1]
        size = _size(_CIPHERTEXT, facts.parameters_id, facts.width, self._flags, count=1, values=n)
        out = golib.bytes_new(size)
        seeds = golib.bytes_in(_seed(seed))
        golib.call(
            "atoll_additive_encrypt", self._handle.number, *golib.words_in(values), summands, *seeds, *out[1:]
        )
        return out[0]

    def combine(self, ciphertext: bytes, shares: Sequence[bytes]) -> Limbs:
        """Open a ciphertext with the decryption shares of all members."""
        values = np.empty((LIMBS, inspect(ciphertext, for_tests=self._for_tests).values), dtype=np.uint64)
        golib.call(
            "atoll_additive_combine",
            self._handle.number,
            *golib.bytes_in(ciphertext),
            *golib.BufferList(shares).arguments,
            self._flags,
            *golib.words_out(values),
        )
        return values


class SecretKey(_Opened):
    """A secret key, or one member's secret share."""

    def __init__(self, message: bytes, *, for_tests: bool = False) -> None:
        self._flags = _flags(for_tests)
        self._for_tests = for_tests
        self._handle = golib.Handle("atoll_additive_open_secret", *golib.bytes_in(message), self._flags)

    def __repr__(self) -> str:
        return "SecretKey(<hidden>)"

    def decrypt(self, ciphertext: bytes) -> Limbs:
        """Open a ciphertext; only a single holder's key can."""
        values = np.empty((LIMBS, inspect(ciphertext, for_tests=self._for_tests).values), dtype=np.uint64)
        golib.call(
            "atoll_additive_decrypt",
            self._handle.number,
            *golib.bytes_in(ciphertext),
            self._flags,
            *golib.words_out(values),
        )
        return values

    def decryption_share(self, public: PublicKey, ciphertext: bytes, digest: bytes | None = None) -> bytes:
        """This member's part in opening a ciphertext: always the same bytes for the same ciphertext.

        It opens whatever ciphertext it is given: the caller makes sure that this is the agreed sum. A caller
        that has the ciphertext's :func:`digest_of` hands it over; with a wrong one the share is refused.
        """
        facts = inspect(ciphertext, for_tests=self._for_tests)
        size = _size(_DECRYPTION_SHARE, facts.parameters_id, facts.width, self._flags, values=facts.values)
        out = golib.bytes_new(size)
        golib.call(
            "atoll_additive_decryption_share",
            self._handle.number,
            public._handle.number,
            *golib.bytes_in(ciphertext),
            *golib.bytes_in(digest_of(ciphertext) if digest is None else digest),
            self._flags,
            *out[1:],
        )
        return out[0]


class Adder(_Opened):
    """A running sum: ciphertexts go in as they arrive, memory stays that of one."""

    def __init__(self, *, for_tests: bool = False) -> None:
        self._handle = golib.Handle("atoll_additive_adder", _flags(for_tests))

    def add(self, ciphertext: bytes) -> None:
        """Take one more ciphertext in; after an error the sum is as before."""
        golib.call("atoll_additive_adder_add", self._handle.number, *golib.bytes_in(ciphertext))

    def finish(self) -> bytes:
        """The sum so far."""
        size = golib.ffi.new("uint64_t*")
        golib.call("atoll_additive_adder_size", self._handle.number, size)
        out = golib.bytes_new(int(size[0]))
        golib.call("atoll_additive_adder_finish", self._handle.number, *out[1:])
        return out[0]

    def carries(self, total: bytes) -> bytes:
        """How often each coefficient of ``total``, the sum so far, wrapped; for a collective key.

        With them the sum is one of integers, and can be checked by those who do not see the summands.
        """
        body, size = coefficients(total)
        out = golib.bytes_new(len(body) // size)
        golib.call("atoll_additive_adder_carries", self._handle.number, *out[1:])
        return out[0]


def _flags(for_tests: bool) -> int:
    return _ALLOW_INSECURE if for_tests else 0


def _seed(seed: bytes | None) -> bytes:
    if seed is None:
        return fresh_seed()
    if len(seed) != SEED_BYTES:
        raise ParameterError(f"a seed has {SEED_BYTES} bytes")
    return seed


def _limbs(limbs: Limbs) -> Limbs:
    if limbs.dtype != np.uint64 or limbs.ndim != 2 or limbs.shape[0] != LIMBS or limbs.shape[1] == 0:
        raise ParameterError(
            f"values must be a (3, n) array of uint64 limbs. Got {limbs.dtype} of shape {limbs.shape}."
        )
    return np.ascontiguousarray(limbs)


def _size(kind: int, parameters_id: int, width: int, flags: int, *, count: int = 0, values: int = 0) -> int:
    if not 1 <= width <= MAX_WIDTH:
        raise ParameterError(f"width must be between 1 and {MAX_WIDTH}. Got {width}.")
    size = golib.ffi.new("uint64_t*")
    facts = golib.ffi.new("uint64_t[5]", [kind, parameters_id, width, count, values])
    golib.call("atoll_additive_size", facts, flags, size)
    return int(size[0])


def _room(kind: int, row: LatticeParameters, width: int, flags: int) -> tuple[bytes, Any, int]:
    return golib.bytes_new(_size(kind, row.id, width, flags))
