"""The parameter table of the lattice recipes: every choice of numbers, its security and its limits.

Nobody picks ring degrees or moduli by hand: a recipe names a row of this table. The Go library holds
the same rows (``go/additive/parameters.go``) and a test compares the two.

Security: ternary secrets, errors of standard deviation 3.24 (centred binomial). At 128 bits, classical,
the tables of the homomorphic encryption standard (2018) allow log2 Q of 218 at N = 2^13 and 438 at
2^14, those of Bossuat et al., "Security Guidelines for Implementing Homomorphic Encryption" (2024),
214 and 430. Ours are 212 and 280.

Correctness, in units of one step of the fixed-point grid (decryption refuses beyond 1/4):

- ``single-13``: a ciphertext's noise has standard deviation 2^-11.1 (half of its variance from the
  errors, half from rounding c1 to 208 bits); 1,024 summands make that 0.015, 17 times below 1/4.
- ``collective-14``: 256 members, 1,024 summands: noise 2^-69.6; each member's smudging is uniform on
  +-2^-9, 2^60 times wider, so that a million opened values together tell less than 2^-40 (statistical
  distance) about the secrets; 256 smudgings add up to a deviation of 0.018, 14 times below 1/4.
"""

from __future__ import annotations

from dataclasses import dataclass

from atoll.errors import ParameterError

_PRIMES_53 = (0x1FFFFFFFF38001, 0x1FFFFFFFE30001, 0x1FFFFFFFE28001, 0x1FFFFFFFDE8001)
_PRIMES_56 = (0xFFFFFFFFF78001, 0xFFFFFFFFF70001, 0xFFFFFFFFF00001, 0xFFFFFFFFEB0001, 0xFFFFFFFFE68001)


@dataclass(frozen=True)
class LatticeParameters:
    """One row: a ring, how coefficients travel, and how much may be added."""

    id: int
    name: str
    log_n: int
    primes: tuple[int, ...]
    cipher_bytes: int
    share_bytes: int
    smudge_bits: int
    max_summands: int
    max_members: int
    security_bits: int
    insecure: bool

    @property
    def degree(self) -> int:
        """The ring degree: values per polynomial."""
        return 1 << self.log_n

    @property
    def collective(self) -> bool:
        """Whether the key is shared among members rather than held by one."""
        return self.max_members > 0


LATTICE_SINGLE = LatticeParameters(
    id=1,
    name="single-13",
    log_n=13,
    primes=_PRIMES_53,
    cipher_bytes=26,
    share_bytes=0,
    smudge_bits=0,
    max_summands=1024,
    max_members=0,
    security_bits=128,
    insecure=False,
)
LATTICE_COLLECTIVE = LatticeParameters(
    id=2,
    name="collective-14",
    log_n=14,
    primes=_PRIMES_56,
    cipher_bytes=35,
    share_bytes=26,
    smudge_bits=80,
    max_summands=1024,
    max_members=256,
    security_bits=128,
    insecure=False,
)
INSECURE_TEST_SINGLE = LatticeParameters(
    id=129,
    name="test-single-10",
    log_n=10,
    primes=_PRIMES_53,
    cipher_bytes=26,
    share_bytes=0,
    smudge_bits=0,
    max_summands=1024,
    max_members=0,
    security_bits=0,
    insecure=True,
)
INSECURE_TEST_COLLECTIVE = LatticeParameters(
    id=130,
    name="test-collective-10",
    log_n=10,
    primes=_PRIMES_56,
    cipher_bytes=35,
    share_bytes=26,
    smudge_bits=80,
    max_summands=1024,
    max_members=256,
    security_bits=0,
    insecure=True,
)

LATTICE_TABLE = (LATTICE_SINGLE, LATTICE_COLLECTIVE, INSECURE_TEST_SINGLE, INSECURE_TEST_COLLECTIVE)


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
