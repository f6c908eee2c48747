"""Paillier keys: the table of parameters, what a key must satisfy, what is refused, what is shown."""

from __future__ import annotations

import gmpy2
import phe
import pytest
from gmpy2 import mpz

from atoll import errors
from atoll.crypto.hazmat import paillier
from atoll.crypto.hazmat.paillier import (
    ALL_PARAMETERS,
    INSECURE_TEST,
    PAILLIER_2048,
    PAILLIER_3072,
    Parameters,
    PublicKey,
    SecretKey,
    encrypt_raw,
    generate,
    parameters_for,
)
from atoll.randomness import fresh_seed


@pytest.fixture(scope="module")
def key() -> SecretKey:
    return generate(INSECURE_TEST, bytes(32))


def primes_of(key: SecretKey) -> tuple[mpz, mpz]:
    half = key.public.parameters.half_bytes
    data = key.to_bytes()
    return paillier.from_little(data[2 : 2 + half]), paillier.from_little(data[2 + half : 2 + 2 * half])


def test_the_parameter_table() -> None:
    assert [(p.name, p.code, p.modulus_bits, p.obfuscator_bits, p.security_bits) for p in ALL_PARAMETERS] == [
        ("paillier-2048", 1, 2048, 1024, 112),
        ("paillier-3072", 2, 3072, 1536, 128),
        ("insecure-test-512", 255, 512, 256, 0),
    ]
    assert paillier.SECURE_PARAMETERS == (PAILLIER_2048, PAILLIER_3072)
    assert paillier.PRIMALITY_ROUNDS == 40
    assert paillier.MIN_PRIME_DISTANCE == 100
    assert paillier.KEY_ID_BYTES == 16


@pytest.mark.parametrize("parameters", ALL_PARAMETERS, ids=lambda p: p.name)
def test_a_key_allows_short_obfuscators(parameters: Parameters) -> None:
    key = generate(parameters, fresh_seed())
    p, q = primes_of(key)
    n, h = key.public.n, key.public.h
    assert p * q == n
    assert n.bit_length() == parameters.modulus_bits
    assert gmpy2.is_prime(p)
    assert gmpy2.is_prime(q)
    assert (p % 4, q % 4) == (3, 3)
    assert gmpy2.gcd(p - 1, q - 1) == 2
    # -h is a square, h itself is not, and it has Jacobi symbol 1.
    assert gmpy2.legendre(-h, p) == gmpy2.legendre(-h, q) == 1
    assert gmpy2.legendre(h, p) == gmpy2.legendre(h, q) == -1
    assert SecretKey.from_bytes(key.to_bytes(), ALL_PARAMETERS) == key
    assert PublicKey.from_bytes(key.public.to_bytes(), ALL_PARAMETERS) == key.public


def test_keys_of_different_seeds_differ() -> None:
    one, two = generate(INSECURE_TEST, fresh_seed()), generate(INSECURE_TEST, fresh_seed())
    assert one != two
    assert one.public != two.public
    assert one.public.key_id != two.public.key_id


@pytest.mark.parametrize("bits", [0, 512, 1024, 2047, 2049, 4096])
def test_other_sizes_are_refused(bits: int) -> None:
    with pytest.raises(errors.ParameterError, match="2048 or 3072"):
        parameters_for(bits)


def test_offered_sizes() -> None:
    assert parameters_for(2048) is PAILLIER_2048
    assert parameters_for(3072) is PAILLIER_3072


def test_parameters_outside_the_table_are_refused() -> None:
    with pytest.raises(errors.ParameterError, match="table"):
        generate(Parameters("homemade", 9, 1024, 80), bytes(32))


def test_a_test_key_is_refused_unless_accepted(key: SecretKey) -> None:
    with pytest.raises(errors.ParameterError, match="insecure-test-512"):
        PublicKey.from_bytes(key.public.to_bytes())
    with pytest.raises(errors.ParameterError, match="insecure-test-512"):
        SecretKey.from_bytes(key.to_bytes())


def test_reprs_show_nothing_secret(key: SecretKey) -> None:
    assert repr(key) == "SecretKey(insecure-test-512)"
    assert str(key) == repr(key)
    assert repr(key.public) == f"PublicKey(insecure-test-512, id={key.public.key_id.hex()})"


def public_bytes(n: mpz, h: mpz) -> bytes:
    return bytes([1, 255]) + paillier.to_little(n, 64) + paillier.to_little(h, 64)


def test_malformed_public_keys_are_refused(key: SecretKey) -> None:
    n, h = key.public.n, key.public.h
    good = key.public.to_bytes()
    p, _ = primes_of(key)
    not_a_symbol = next(x for x in range(2, 1000) if gmpy2.jacobi(x, n) == -1)
    for bad in (
        b"",
        good[:1],
        good[:-1],
        good + b"\0",
        b"\x02" + good[1:],
        good[:1] + b"\x07" + good[2:],
        public_bytes(n - 1, h),
        public_bytes(n >> 1 | 1, h),
        bytes([1, 1])
        + paillier.to_little(n, 256)
        + paillier.to_little(h, 256),  # of 512 bits, as one of 2048
        public_bytes(n, mpz(0)),
        public_bytes(n, mpz(1)),
        public_bytes(n, n),
        public_bytes(n, p),
        public_bytes(n, mpz(not_a_symbol)),
    ):
        with pytest.raises(errors.MessageError):
            PublicKey.from_bytes(bad, ALL_PARAMETERS)


def test_malformed_secret_keys_are_refused(key: SecretKey) -> None:
    p, q = primes_of(key)
    half = INSECURE_TEST.half_bytes
    h = key.public.h

    def secret_bytes(left: mpz, right: mpz) -> bytes:
        numbers = (paillier.to_little(left, half), paillier.to_little(right, half), paillier.to_little(h, 64))
        return bytes([1, 255]) + b"".join(numbers)

    assert SecretKey.from_bytes(secret_bytes(p, q), ALL_PARAMETERS) == key
    one_mod_four = next(x for x in range(int(q) + 2, int(q) + 100_000, 4) if gmpy2.is_prime(x))
    # Primes whose p - 1 and q - 1 share the factor 3.
    sharing = mpz(next(x for x in range(6 * 2**253 + 7, 2**256, 12) if gmpy2.is_prime(x)))
    also_sharing = mpz(next(x for x in range(int(sharing) + 12 * 2**200, 2**256, 12) if gmpy2.is_prime(x)))
    for bad in (
        b"",
        key.to_bytes()[:-1],
        key.to_bytes() + b"\0",
        secret_bytes(p, q + 4),
        secret_bytes(p, mpz(one_mod_four)),
        secret_bytes(p, p),
        secret_bytes(sharing, also_sharing),
    ):
        with pytest.raises(errors.MessageError, match=r"secret key|not a Paillier key"):
            SecretKey.from_bytes(bad, ALL_PARAMETERS)


@pytest.mark.parametrize("parameters", ALL_PARAMETERS, ids=lambda p: p.name)
@pytest.mark.parametrize("count", [1, 40])
def test_phe_opens_what_we_encrypt_and_we_open_what_phe_encrypts(parameters: Parameters, count: int) -> None:
    key = generate(parameters, fresh_seed())
    n = key.public.n
    reference = phe.PaillierPublicKey(int(n))
    opener = phe.PaillierPrivateKey(reference, *map(int, primes_of(key)))
    plaintexts = [mpz(x) % n for x in (0, 1, -1, n // 2, 12345)][:count] + [
        mpz(3) ** i for i in range(count - 5)
    ]
    ours = encrypt_raw(key.public, plaintexts, fresh_seed())
    assert [opener.raw_decrypt(int(c)) for c in ours[:6]] == plaintexts[:6]
    theirs = [mpz(reference.raw_encrypt(int(m))) for m in plaintexts[:6]]
    assert key.decrypt_raw(theirs) == plaintexts[:6]
    assert key.decrypt_raw(ours) == plaintexts


def test_obfuscators_are_powers_of_the_base_and_short(key: SecretKey) -> None:
    zeros = encrypt_raw(key.public, [mpz(0)] * 3, fresh_seed())
    p, q = primes_of(key)
    for c in zeros:
        # An n-th residue: its order divides (p-1)(q-1).
        assert gmpy2.powmod(c, (p - 1) * (q - 1), key.public.n_squared) == 1
    assert len(set(zeros)) == 3


def test_a_seed_used_twice_does_not_repeat_obfuscators(key: SecretKey) -> None:
    seed, public = fresh_seed(), key.public
    one, two = encrypt_raw(public, [mpz(1)], seed), encrypt_raw(public, [mpz(2)], seed)
    # With one obfuscator for both, the quotient would be (1 + n)^(2 - 1), for everybody to see.
    assert two[0] * gmpy2.invert(one[0], public.n_squared) % public.n_squared != 1 + public.n
    assert encrypt_raw(public, [mpz(1)], seed) == one
    assert encrypt_raw(public, [mpz(1)], seed, b"another use") != one


def test_nothing_encrypts_to_nothing(key: SecretKey) -> None:
    assert encrypt_raw(key.public, [], fresh_seed()) == []
    assert key.decrypt_raw([]) == []


def test_a_key_of_two_close_primes_is_refused() -> None:
    """Fermat's method finds them: n is nearly a square."""
    first = _next_prime(mpz(3) << 254)
    close = _next_prime(first + (mpz(1) << 155))
    while gmpy2.gcd(first - 1, close - 1) != 2:
        close = _next_prime(close + 1)
    far = _next_prime(first + (mpz(1) << 157))
    while gmpy2.gcd(first - 1, far - 1) != 2:
        far = _next_prime(far + 1)
    accept = (INSECURE_TEST,)
    assert SecretKey.from_bytes(_as_bytes(first, far), accept).public.n == first * far
    with pytest.raises(errors.MessageError, match="secret key is malformed"):
        SecretKey.from_bytes(_as_bytes(first, close), accept)


def _next_prime(start: mpz) -> mpz:
    """At or above ``start``, and 3 modulo 4."""
    candidate = start | 3
    while not gmpy2.is_prime(candidate):
        candidate += 4
    return candidate


def _as_bytes(p: mpz, q: mpz) -> bytes:
    """Version 1, the parameters for tests, the primes, and h = -2^2."""
    return (
        bytes([1, 255])
        + paillier.to_little(p, 32)
        + paillier.to_little(q, 32)
        + paillier.to_little(p * q - 4, 64)
    )
