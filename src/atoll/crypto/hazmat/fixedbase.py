"""Many powers of one base modulo n^2, from a table made once.

A unit u modulo n^2 is a (1 + n c) with a = u mod n and one c modulo n. The factors 1 + n c multiply by
adding their c, so a product of k table entries costs k - 1 additions and one product of numbers of
half the length: about half of the plain way. (1 + n)^m, which carries a Paillier plaintext, joins
the same sum at no cost.

    exponent e = sum of digits e_j 2^(w j)    ->    base^e = product over j of row_j[e_j]

The rows of several exponents are walked together, one position after the other: the reductions
modulo n^2 are then one list call, which releases the GIL, so threads help.

Table look-ups depend on the exponent: like everything here, this is not constant time.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Sequence

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from atoll.threads import in_threads, joined, spans

Bytes2D = npt.NDArray[np.uint8]

ONE = mpz(1)

# A table of window 10 for 1,024-bit exponents modulo a 4,096-bit n^2 takes about 65 MB.
MAX_WINDOW = 10
# Costs in units of one table multiplication, measured on two cores: an entry of a new table (entries are
# made on one core) and, per exponent bit, a power without a table.
ENTRY_COST = 3.0
DIRECT_COST_PER_BIT = 1.5
# Exponents walked together: long enough to hide the hand-over of the GIL, short enough for the cache.
WALK = 256
# Tables of so many keys are kept.
KEPT_TABLES = 2


class FixedBase:
    """Powers of ``base`` modulo ``n``^2; the base must be a unit."""

    def __init__(self, base: mpz, n: mpz, exponent_bits: int, window: int) -> None:
        self.n = n
        self.n_squared = n * n
        self.exponent_bits = exponent_bits
        self.window = window
        self._residues: list[list[mpz]] = []
        self._logs: list[list[mpz]] = []
        step = 1 << window
        for _ in range(digit_count(exponent_bits, window)):
            residues, logs = _row(base, n, step)
            self._residues.append(residues)
            self._logs.append(logs)
            base = gmpy2.powmod(base, step, self.n_squared)

    def __repr__(self) -> str:
        return f"FixedBase({self.exponent_bits}-bit exponents, window {self.window})"

    def powers(self, exponents: Bytes2D, plaintexts: Sequence[mpz]) -> list[mpz]:
        """base^e (1 + n)^m for each exponent (a row of little-endian bytes) and plaintext."""

        def walk(part: slice) -> list[mpz]:
            return self._walk(digits(exponents[part], self.window), plaintexts[part])

        return joined(in_threads(walk, spans(len(plaintexts), WALK)))

    def _walk(self, positions: list[list[int]], plaintexts: Sequence[mpz]) -> list[mpz]:
        products: list[mpz] = [ONE] * len(plaintexts)
        logs = list(plaintexts)
        for residue_row, log_row, chosen in zip(self._residues, self._logs, positions, strict=True):
            longer = list(map(operator.mul, products, map(residue_row.__getitem__, chosen)))
            products = gmpy2.powmod_base_list(longer, ONE, self.n_squared)
            logs = list(map(operator.add, logs, map(log_row.__getitem__, chosen)))
        n, n_squared = self.n, self.n_squared
        return [(a + n * (a * c % n)) % n_squared for a, c in zip(products, logs, strict=True)]


def _row(base: mpz, n: mpz, length: int) -> tuple[list[mpz], list[mpz]]:
    """base^0 .. base^(length-1) as (a, c) with base^d = a (1 + n c) mod n^2 and 0 < a < n."""
    high, a1 = gmpy2.f_divmod(base, n)
    inverse1 = gmpy2.invert(a1, n)
    c1 = high * inverse1 % n
    residues, logs = [ONE], [mpz(0)]
    a, c, inverse = ONE, mpz(0), ONE
    for _ in range(1, length):
        # a a1 = carry n + a', so (as a unit) a' (1 + n carry / a'), where 1 / a' = a1^-d mod n.
        carry, a = gmpy2.f_divmod(a * a1, n)
        inverse = inverse * inverse1 % n
        c = (c + c1 + carry * inverse) % n
        residues.append(a)
        logs.append(c)
    return residues, logs


def digit_count(exponent_bits: int, window: int) -> int:
    """Digits of ``window`` bits in an exponent."""
    return -(-exponent_bits // window)


def digits(exponents: Bytes2D, window: int) -> list[list[int]]:
    """Per position, from the least significant, the digit of every exponent."""
    bits = np.unpackbits(exponents, axis=1, bitorder="little")
    count, length = bits.shape
    positions = digit_count(length, window)
    padded = np.zeros((count, positions * window), dtype=np.uint8)
    padded[:, :length] = bits
    weights = (1 << np.arange(window)).astype(np.int64)
    by_position: list[list[int]] = (padded.reshape(count, positions, window) @ weights).T.tolist()
    return by_position


def best_window(count: int, exponent_bits: int, made: int | None = None) -> int | None:
    """The cheapest window for ``count`` powers; ``made`` has its table already; None is no table."""
    cost: dict[int | None, float] = {None: count * exponent_bits * DIRECT_COST_PER_BIT}
    for window in range(1, MAX_WINDOW + 1):
        table = 0.0 if window == made else ENTRY_COST * (1 << window)
        cost[window] = digit_count(exponent_bits, window) * (count + table)
    return min(cost, key=cost.__getitem__)


class TableCache:
    """The last tables made, by key id, so that islands of one process share them. Public data only."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._tables: OrderedDict[bytes, FixedBase] = OrderedDict()
        self._lock = threading.Lock()

    def table(self, key_id: bytes, base: mpz, n: mpz, exponent_bits: int, count: int) -> FixedBase | None:
        """A table worth using for ``count`` powers, made if it pays; None if plain powers are cheaper."""
        with self._lock:
            known = self._tables.get(key_id)
            window = best_window(count, exponent_bits, known.window if known else None)
            if window is None:
                return None
            if known is None or known.window != window:
                known = FixedBase(base, n, exponent_bits, window)
                self._tables[key_id] = known
            self._tables.move_to_end(key_id)
            while len(self._tables) > self._kept:
                self._tables.popitem(last=False)
            return known


TABLES = TableCache(KEPT_TABLES)
