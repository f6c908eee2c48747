"""The parameter table of the lattice recipes: every choice of numbers, its security and its limits.

Nobody picks ring degrees or moduli by hand: a recipe names a row of this table. The Go library holds
the same rows (``go/additive/parameters.go``) and a test compares the two.

Two rows for each form: one whose coefficients carry a whole 192-bit value, for long vectors, and one of
half the ring degree, for short ones, where three coefficients carry a value's residues modulo 2^74,
2^64 - 1 and 2^64 - 3. Every coefficient wraps at its own modulus, so whoever opens a sum sees residues of
the sum, coefficient by coefficient, and nothing of how it came about. (Limbs with room for carries would
show the carries, and so how many summands are negative.) Values of up to 2^190 are exact: the moduli's
product, 2^202, holds the sum of 1,024 of either sign.

Security: ternary secrets, errors of standard deviation 3.24 (centred binomial). At 128 bits, classical,
the tables of the homomorphic encryption standard (2018) allow log2 Q of 109, 218 and 438 at N = 2^12,
2^13 and 2^14; those of Bossuat et al., "Security Guidelines for Implementing Homomorphic Encryption"
(2024), 106, 214 and 430. Ours are 104, at most 212, and 280.

Correctness, in units of the last place that a coefficient carries (decryption refuses beyond 1/4):

- ``single-13``: a ciphertext's noise has standard deviation 2^-11.1 (half of its variance from the
  errors, half from rounding c1 to 208 bits); 1,024 summands make that 0.015, 17 times below 1/4.
  ``single-12``: 2^-18, rounding alone, and 2^-12.8 for the second and third residue, which get noise of
  2^-12 on either side because their fractions are not on the wire's grid; 1,024 summands make that 0.0045.
- ``collective-14``: 256 members, 1,024 summands: noise 2^-69.6; each member's smudging is uniform on
  +-2^-9, 2^60 times wider, so that a million opened coefficients together tell less than 2^-40
  (statistical distance) about the secrets; 256 smudgings add up to a deviation of 0.018, 14 times
  below 1/4. ``collective-13``: the same smudging, noise 2^-70.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from atoll.errors import ParameterError

_PRIMES_52 = (0xFFFFFFFF58001, 0xFFFFFFFF00001)
_PRIMES_54 = (0x3FFFFFFFEF8001, 0x3FFFFFFFEB8001, 0x3FFFFFFFE38001)
_PRIMES_53 = (0x1FFFFFFFF38001, 0x1FFFFFFFE30001, 0x1FFFFFFFE28001, 0x1FFFFFFFDE8001)
_PRIMES_56 = (0xFFFFFFFFF78001, 0xFFFFFFFFF70001, 0xFFFFFFFFF00001, 0xFFFFFFFFEB0001, 0xFFFFFFFFE68001)


@dataclass(frozen=True)
class LatticeParameters:
    """One row: a ring, how coefficients travel, and how much may be added."""

    id: int
    name: str
    log_n: int
    primes: tuple[int, ...]
    coefficients: int
    cipher_bytes: int
    share_bytes: int = 0
    smudge_bits: int = 0
    max_summands: int = 1024
    max_members: int = 0
    """0 where one party holds the key."""
    security_bits: int = 128
    insecure: bool = False

    @property
    def degree(self) -> int:
        """The ring degree: coefficients per polynomial."""
        return 1 << self.log_n

    @property
    def moduli(self) -> tuple[int, ...]:
        """What a value's coefficients wrap at, one after another."""
        return (1 << 192,) if self.coefficients == 1 else (1 << 74, (1 << 64) - 1, (1 << 64) - 3)

    @property
    def carried_bits(self) -> int:
        """How many bits of message a coefficient carries at most."""
        return self.moduli[0].bit_length() - 1

    @property
    def collective(self) -> bool:
        """Whether the key is shared among members rather than held by one."""
        return self.max_members > 0


LATTICE_SINGLE = LatticeParameters(
    id=1,
    name="single-13",
    log_n=13,
    primes=_PRIMES_53,
    coefficients=1,
    cipher_bytes=26,
)
LATTICE_COLLECTIVE = LatticeParameters(
    id=2,
    name="collective-14",
    log_n=14,
    primes=_PRIMES_56,
    coefficients=1,
    cipher_bytes=35,
    share_bytes=26,
    smudge_bits=80,
    max_members=256,
)
# Ids 3, 4, 131 and 132 were rows that carried limbs; they are not used again.
_SHORT = replace(LATTICE_SINGLE, coefficients=3)
LATTICE_SINGLE_SHORT = replace(_SHORT, id=5, name="single-12", log_n=12, primes=_PRIMES_52, cipher_bytes=12)
LATTICE_COLLECTIVE_SHORT = replace(
    _SHORT,
    id=6,
    name="collective-13",
    log_n=13,
    primes=_PRIMES_54,
    cipher_bytes=20,
    share_bytes=12,
    smudge_bits=78,
    max_members=256,
)


def _for_tests(row: LatticeParameters, id: int, name: str, log_n: int) -> LatticeParameters:  # noqa: A002
    """The same row in a ring so small that it is fast and protects nothing."""
    return replace(row, id=id, name=name, log_n=log_n, security_bits=0, insecure=True)


INSECURE_TEST_SINGLE = _for_tests(LATTICE_SINGLE, 129, "test-single-10", 10)
INSECURE_TEST_COLLECTIVE = _for_tests(LATTICE_COLLECTIVE, 130, "test-collective-10", 10)
INSECURE_TEST_SINGLE_SHORT = _for_tests(LATTICE_SINGLE_SHORT, 133, "test-single-9", 9)
INSECURE_TEST_COLLECTIVE_SHORT = _for_tests(LATTICE_COLLECTIVE_SHORT, 134, "test-collective-9", 9)

LATTICE_TABLE = (
    LATTICE_SINGLE,
    LATTICE_COLLECTIVE,
    LATTICE_SINGLE_SHORT,
    LATTICE_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE,
    INSECURE_TEST_COLLECTIVE,
    INSECURE_TEST_SINGLE_SHORT,
    INSECURE_TEST_COLLECTIVE_SHORT,
)


def lattice_parameters(name: str, *, for_tests: bool = False) -> LatticeParameters:
    """The row of that name; an insecure one only for tests."""
    for row in LATTICE_TABLE:
        if row.name == name:
            return secure(row, for_tests=for_tests)
    known = ", ".join(row.name for row in LATTICE_TABLE if not row.insecure)
    raise ParameterError(f"lattice parameters {name!r} are unknown", hint=f"known are {known}")


def secure(row: LatticeParameters, *, for_tests: bool) -> LatticeParameters:
    """The row itself, unless it is insecure and this is no test."""
    if row.insecure and not for_tests:
        raise ParameterError(
            f"lattice parameters {row.name!r} are insecure", hint="they exist for tests of Atoll only"
        )
    return row
