"""Paillier's additively homomorphic encryption: keys, raw encryption and decryption.

P. Paillier, Public-key cryptosystems based on composite degree residuosity classes, 1999; short
obfuscators after I. Damgard, M. Jurik, J. B. Nielsen, A generalization of Paillier's public-key
system with applications to electronic voting, 2010, section 4.2.

    n = p q, p = q = 3 mod 4, gcd(p-1, q-1) = 2     (so that -x^2 generates what it must)
    h = -x^2 mod n, h_s = h^n mod n^2, r' of |n|/2 bits
    E(m) = (1 + m n) h_s^r' mod n^2
    D(c): per prime, L_p(c^(p-1) mod p^2) / L_p((1+n)^(p-1) mod p^2) mod p with L_p(u) = (u-1)/p; then CRT

Semantic security rests on decisional composite residuosity and, for the short r', on h^r' mod n
being indistinguishable from a random element of the group that h generates.

Warning: low level. Ciphertexts are malleable on purpose and not authenticated; nothing here is constant
time; whoever holds the secret key opens everything. Messages are built in ``ciphertexts``.

Everything random is expanded from one 32-byte seed: keys are a function of (parameters, seed),
ciphertexts of (key, plaintexts, seed).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count as count_from

import gmpy2
import numpy as np
from gmpy2 import mpz

from atoll.crypto.hazmat.fixedbase import TABLES, Bytes2D
from atoll.errors import MessageError, ParameterError
from atoll.randomness import derive, expand
from atoll.threads import in_threads, joined, spans

KEY_VERSION = 1
KEY_ID_BYTES = 16

PRIME_DOMAIN = "paillier/prime/v1"
BASE_DOMAIN = "paillier/base/v1"
OBFUSCATOR_DOMAIN = "paillier/obfuscator/v1"

# Baillie-PSW and then this many rounds of Miller-Rabin, less 24 (so GMP counts).
PRIMALITY_ROUNDS = 40
PRIME_CANDIDATES = 64
# Primes closer than this (in bits below their length) would be found by Fermat's method.
MIN_PRIME_DISTANCE = 100
# Ciphertexts decrypted by one call; small, so that cores finish together.
DECRYPT_SPAN = 32


@dataclass(frozen=True)
class Parameters:
    """A key size. ``code`` stands in serialised keys; ``security_bits`` as NIST SP 800-57 counts."""

    name: str
    code: int
    modulus_bits: int
    security_bits: int

    @property
    def half_bytes(self) -> int:
        """Bytes of a prime."""
        return self.modulus_bits // 16

    @property
    def modulus_bytes(self) -> int:
        """Bytes of n."""
        return self.modulus_bits // 8

    @property
    def ciphertext_bytes(self) -> int:
        """Bytes of a number modulo n^2."""
        return self.modulus_bits // 4

    @property
    def obfuscator_bits(self) -> int:
        """Bits of the short exponent r'."""
        return self.modulus_bits // 2


PAILLIER_2048 = Parameters("paillier-2048", 1, 2048, 112)
PAILLIER_3072 = Parameters("paillier-3072", 2, 3072, 128)
INSECURE_TEST = Parameters("insecure-test-512", 255, 512, 0)

SECURE_PARAMETERS = (PAILLIER_2048, PAILLIER_3072)
ALL_PARAMETERS = (*SECURE_PARAMETERS, INSECURE_TEST)


def parameters_for(modulus_bits: int) -> Parameters:
    """The parameter set of a key size that a study may name; sizes for tests are not among them."""
    for parameters in SECURE_PARAMETERS:
        if parameters.modulus_bits == modulus_bits:
            return parameters
    sizes = " or ".join(str(parameters.modulus_bits) for parameters in SECURE_PARAMETERS)
    raise ParameterError(f"a Paillier key of {modulus_bits} bits is not offered", hint=f"use {sizes} bits")


class PublicKey:
    """n and h; whoever has it encrypts."""

    def __init__(self, parameters: Parameters, n: mpz, h: mpz) -> None:
        self.parameters = parameters
        self.n = mpz(n)
        self.h = mpz(h)
        self.n_squared = self.n * self.n

    @cached_property
    def key_id(self) -> bytes:
        """What every ciphertext message names its key by."""
        return hashlib.blake2b(self.to_bytes(), digest_size=KEY_ID_BYTES, person=b"atoll/paillier").digest()

    @cached_property
    def obfuscator_base(self) -> mpz:
        """h_s = h^n mod n^2."""
        return gmpy2.powmod(self.h, self.n, self.n_squared)

    def to_bytes(self) -> bytes:
        """Version, parameter code, n, h."""
        size = self.parameters.modulus_bytes
        head = bytes([KEY_VERSION, self.parameters.code])
        return head + to_little(self.n, size) + to_little(self.h, size)

    @classmethod
    def from_bytes(cls, data: bytes, accept: Sequence[Parameters] = SECURE_PARAMETERS) -> PublicKey:
        """Read and check a key; one of a size outside ``accept`` is refused."""
        parameters = _read_head(data, accept)
        size = parameters.modulus_bytes
        if len(data) != 2 + 2 * size:
            raise MessageError("a Paillier public key has the wrong length")
        n, h = from_little(data[2 : 2 + size]), from_little(data[2 + size :])
        sound = n.bit_length() == parameters.modulus_bits and n % 4 == 1 and 1 < h < n
        if not sound or gmpy2.gcd(h, n) != 1 or gmpy2.jacobi(h, n) != 1:
            raise MessageError("a Paillier public key is malformed")
        return cls(parameters, n, h)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.key_id == other.key_id

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __repr__(self) -> str:
        return f"PublicKey({self.parameters.name}, id={self.key_id.hex()})"


class SecretKey:
    """p and q (and the public key); whoever has it decrypts."""

    def __init__(self, public: PublicKey, p: mpz, q: mpz) -> None:
        self.public = public
        self._p, self._q = mpz(p), mpz(q)
        # L_p((1+n)^(p-1) mod p^2) = n/p (p-1) = -q mod p
        self._halves = (
            (self._p, self._p**2, gmpy2.invert(-self._q, self._p)),
            (self._q, self._q**2, gmpy2.invert(-self._p, self._q)),
        )
        self._p_inverse = gmpy2.invert(self._p, self._q)

    def to_bytes(self) -> bytes:
        """Version, parameter code, p, q, h. Secret."""
        parameters = self.public.parameters
        head = bytes([KEY_VERSION, parameters.code])
        primes = to_little(self._p, parameters.half_bytes) + to_little(self._q, parameters.half_bytes)
        return head + primes + to_little(self.public.h, parameters.modulus_bytes)

    @classmethod
    def from_bytes(cls, data: bytes, accept: Sequence[Parameters] = SECURE_PARAMETERS) -> SecretKey:
        """Read and check a key; one of a size outside ``accept`` is refused."""
        parameters = _read_head(data, accept)
        half = parameters.half_bytes
        if len(data) != 2 + 2 * half + parameters.modulus_bytes:
            raise MessageError("a Paillier secret key has the wrong length")
        p, q = from_little(data[2 : 2 + half]), from_little(data[2 + half : 2 + 2 * half])
        for prime in (p, q):
            if prime % 4 != 3 or not gmpy2.is_prime(prime, PRIMALITY_ROUNDS):
                raise MessageError("a Paillier secret key is malformed")
        if not _good_pair(p, q, parameters):
            raise MessageError("a Paillier secret key is malformed")
        head = bytes([KEY_VERSION, parameters.code])
        n = to_little(p * q, parameters.modulus_bytes)
        return cls(PublicKey.from_bytes(head + n + data[2 + 2 * half :], accept), p, q)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and hmac.compare_digest(self.to_bytes(), other.to_bytes())

    def __hash__(self) -> int:
        return hash(self.public)

    def __repr__(self) -> str:
        return f"SecretKey({self.public.parameters.name})"

    def decrypt_raw(self, ciphertexts: Sequence[mpz]) -> list[mpz]:
        """Plaintexts in [0, n) of units modulo n^2, on all cores."""
        parts = spans(len(ciphertexts), DECRYPT_SPAN)
        tasks = [(half, part) for part in parts for half in range(2)]

        def residues(task: tuple[int, slice]) -> list[mpz]:
            prime, square, scale = self._halves[task[0]]
            reduced = [c % square for c in ciphertexts[task[1]]]
            powers = gmpy2.powmod_base_list(reduced, prime - 1, square)
            return [(u - 1) // prime * scale % prime for u in powers]

        done = in_threads(residues, tasks)
        modulo_p, modulo_q = joined(done[0::2]), joined(done[1::2])
        p, q, p_inverse = self._p, self._q, self._p_inverse
        return [a + p * ((b - a) * p_inverse % q) for a, b in zip(modulo_p, modulo_q, strict=True)]


def generate(parameters: Parameters, seed: bytes) -> SecretKey:
    """A key pair, a function of ``parameters`` and ``seed`` (32 bytes from ``fresh_seed``)."""
    if parameters not in ALL_PARAMETERS:
        raise ParameterError(
            "these Paillier parameters are not in the table",
            hint="use " + " or ".join(p.name for p in SECURE_PARAMETERS),
        )
    primes = _primes(parameters, seed)
    p = next(primes)
    q = next(prime for prime in primes if _good_pair(p, prime, parameters))
    n = p * q
    return SecretKey(PublicKey(parameters, n, _obfuscator_root(n, parameters, seed)), p, q)


def _primes(parameters: Parameters, seed: bytes) -> Iterator[mpz]:
    size = parameters.half_bytes
    # The two highest bits make n exactly as long as it should be, the two lowest make p = 3 mod 4.
    forced = (mpz(3) << (8 * size - 2)) | 3
    for block in count_from():
        stream = expand(seed, PRIME_CANDIDATES * size, PRIME_DOMAIN, parameters.name, block)
        for start in range(0, len(stream), size):
            candidate = from_little(stream[start : start + size]) | forced
            if gmpy2.is_prime(candidate, PRIMALITY_ROUNDS):
                yield candidate


def _good_pair(p: mpz, q: mpz, parameters: Parameters) -> bool:
    half_bits = 8 * parameters.half_bytes
    distance = 1 << (half_bits - MIN_PRIME_DISTANCE)
    right_length = (p * q).bit_length() == parameters.modulus_bits
    return bool(right_length and abs(p - q) > distance and gmpy2.gcd(p - 1, q - 1) == 2)


def _obfuscator_root(n: mpz, parameters: Parameters, seed: bytes) -> mpz:
    """h = -x^2 mod n for a random unit x."""
    for block in count_from():
        # 16 bytes more than n, so that x mod n is as good as uniform.
        x = from_little(expand(seed, parameters.modulus_bytes + 16, BASE_DOMAIN, parameters.name, block)) % n
        if gmpy2.gcd(x, n) == 1:
            return -x * x % n
    raise AssertionError("unreachable")


def encrypt_raw(key: PublicKey, plaintexts: Sequence[mpz], seed: bytes, *domain: bytes) -> list[mpz]:
    """E(m) for integers m (taken modulo n), on all cores.

    The exponents r' depend on the seed, the key, ``domain`` and on the plaintexts, so that a seed used twice
    by mistake still does not give two messages the same obfuscators.
    """
    exponents = _obfuscators(key, plaintexts, seed, *domain)
    parameters = key.parameters
    table = TABLES.table(key.key_id, key.obfuscator_base, key.n, parameters.obfuscator_bits, len(plaintexts))
    if table is not None:
        return table.powers(exponents, plaintexts)
    integers = [from_little(row.tobytes()) for row in exponents]

    def powers(part: slice) -> list[mpz]:
        hidden = gmpy2.powmod_exp_list(key.obfuscator_base, integers[part], key.n_squared)
        return [u * (1 + m * key.n) % key.n_squared for u, m in zip(hidden, plaintexts[part], strict=True)]

    return joined(in_threads(powers, spans(len(plaintexts), len(plaintexts))))


def _obfuscators(key: PublicKey, plaintexts: Sequence[mpz], seed: bytes, *domain: bytes) -> Bytes2D:
    size = key.parameters.modulus_bytes
    contents = hashlib.blake2b(digest_size=32, person=b"atoll/paillier")
    for plaintext in plaintexts:
        contents.update(to_little(plaintext % key.n, size))
    stretched = derive(seed, OBFUSCATOR_DOMAIN, key.key_id, contents.digest(), *domain)
    row = key.parameters.obfuscator_bits // 8
    stream = expand(stretched, row * len(plaintexts), OBFUSCATOR_DOMAIN)
    return np.frombuffer(stream, dtype=np.uint8).reshape(len(plaintexts), row)


def to_little(number: mpz, size: int) -> bytes:
    """A natural number as ``size`` little-endian bytes."""
    return bytes(number.to_bytes(size, "little"))


def from_little(data: bytes) -> mpz:
    """The natural number that little-endian bytes stand for."""
    return mpz.from_bytes(data, "little")


def _read_head(data: bytes, accept: Sequence[Parameters]) -> Parameters:
    if len(data) < 2 or data[0] != KEY_VERSION:
        raise MessageError("not a Paillier key of this version")
    for parameters in ALL_PARAMETERS:
        if parameters.code == data[1]:
            if parameters not in accept:
                raise ParameterError(
                    f"a key with the parameters {parameters.name} is refused",
                    hint="use " + " or ".join(p.name for p in accept),
                )
            return parameters
    raise MessageError("a Paillier key names an unknown parameter set")
