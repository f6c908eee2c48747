"""What the steps of a run cost the roles: processor seconds by the machine's rates, and memory.

Named after the real steps (:mod:`party`, :mod:`local`, :mod:`openings`), one method each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.crypto.products import Layout, Ring, streamed_right
from atoll.secret_matrices.costs.rates import Rates, RingRates
from atoll.secret_matrices.costs.timing import Effort
from atoll.secret_matrices.machine import Group
from atoll.secret_matrices.widths import Widths

_OBJECT_BYTES = 48
"""A Python integer of some words, with its place in an array."""
_NARROW_BITS = 62
_EXACT_ROWS = 4096


class Total(NamedTuple):
    """A masked total on its way."""

    group: Group
    carrier: str
    shown: bool
    """Whether all members are sent it."""
    depth: int
    """Of its message."""
    size: int


class Memory:
    """Bytes that one role uses: now, at most, and at most between steps (``lasting``)."""

    def __init__(self) -> None:
        self.now = self.most = self.lasting = 0

    @property
    def passing(self) -> int:
        """Bytes that single steps need in addition to what lasts from step to step."""
        return self.most - self.lasting

    def allocate(self, size: int) -> Allocation:
        """Bytes that are in use until the returned object dies."""
        return Allocation(self, size)

    def touch(self, size: int) -> None:
        """Bytes that are in use during one step."""
        self.most = max(self.most, self.now + size)


class Allocation:
    """Some bytes of a role's memory; given back when this object dies, as the real ones are."""

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory, self._size = memory, size
        memory.now += size
        memory.lasting = max(memory.lasting, memory.now)
        memory.touch(0)

    def __del__(self) -> None:
        self._memory.now -= self._size


def words_size(ring: Ring, polys: int) -> int:
    """Bytes of so many polynomials while they are computed with."""
    return 8 * ring.degree * ring.limbs * polys


class Costing:
    """Books every step to the roles that do it."""

    def __init__(self, rates: Rates, effort: Effort) -> None:
        self.rates, self.effort = rates, effort
        self.n_providers = len(effort.providers)
        self.memories = [Memory() for _ in range(self.n_providers)]
        self.coordinator_memory = Memory()
        self.key_parts = 0
        """Bytes of everybody's key parts: every provider keeps them, in one process all keep the same."""

    def _ring(self, ring: Ring) -> RingRates:
        return self.rates.rings[ring.name]

    # ---- messages ----

    def gathered(self, size: int, who: Sequence[int]) -> None:
        """A message of each of these providers to the coordinator."""
        p = self.rates.python
        one = p.message / 2 + p.byte * size / 2
        self.effort.provider(one, alone=True, who=who)
        self.effort.provider(p.hash_byte * size, who=who)
        for line in self.effort.timelines:
            line.gathered(size, self._mask(who))
        self.effort.coordinator(one * len(who), alone=True)

    def broadcast(self, size: int, who: Sequence[int]) -> None:
        """A message of the coordinator, encoded once for all its receivers."""
        p = self.rates.python
        self.effort.coordinator(p.message * len(who) / 2 + p.byte * size / 2, alone=True)
        for line in self.effort.timelines:
            line.broadcast(size, self._mask(who))
        self.effort.provider(p.message / 2 + p.byte * size / 2, alone=True, who=who)

    def _mask(self, who: Sequence[int]) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.n_providers, dtype=bool)
        mask[list(who)] = True
        return mask

    # ---- products ----

    def encrypt(self, ring: Ring, y: Layout, who: Sequence[int]) -> None:
        """Providers encrypt their shares of a left matrix."""
        seconds = self._ring(ring).encrypt.seconds(y.left_polys, y.rows * y.inner)
        seconds += self.rates.python.fresh_byte * y.left_polys * ring.poly_size
        self.effort.provider(seconds + self.rates.python.step, width=y.left_polys, who=who)
        self._touch(y.left_polys * ring.poly_size, who)

    def fingerprint(self, size: int, who: Sequence[int]) -> None:
        """Providers take a message's fingerprints."""
        self.effort.provider(self.rates.python.fingerprint_byte * size, who=who)

    def digest(self, size: int, who: Sequence[int]) -> None:
        """Providers hash a message that arrived."""
        self.effort.provider(self.rates.python.hash_byte * size, who=who)

    def told(self, size: int) -> None:
        """A message of every provider to every other one sets out."""
        seconds = (self.n_providers - 1) * (self.rates.python.message + self.rates.python.byte * size)
        self.effort.provider(seconds, alone=True)
        for line in self.effort.timelines:
            line.told(size)

    def heard(self) -> None:
        """It arrived."""
        for line in self.effort.timelines:
            line.heard()

    def assemble(self, ring: Ring, y: Layout, parts: int, public: bool, carrier: Sequence[int]) -> None:
        """The coordinator adds the parts up; if it adds its own share, the carrier encodes that too."""
        rates, polys = self._ring(ring), y.left_polys
        seconds = rates.gather * parts * polys
        if public:
            encoded = rates.public.seconds(polys, y.rows * y.inner)
            seconds += encoded
            self.effort.provider(encoded, width=polys, who=carrier)
        fresh = self.rates.python.fresh_byte * polys * ring.poly_size
        self.effort.coordinator(seconds + fresh + self.rates.python.step, width=polys)
        self.coordinator_memory.touch((parts + 1) * polys * ring.poly_size + words_size(ring, polys))

    def read(self, ring: Ring, y: Layout, who: Sequence[int]) -> list[Allocation]:
        """Those who multiply with a ciphertext expand it, and keep it."""
        seconds = self._ring(ring).read * y.left_polys + self.rates.python.step
        return self._those(seconds, y.left_polys, who, words_size(ring, 2 * y.left_polys))

    def encode(self, ring: Ring, y: Layout, who: Sequence[int]) -> list[Allocation]:
        """Those with a share of a right side encode it; a large one is encoded within products."""
        step, polys = self.rates.python.step, y.right_polys
        if streamed_right(ring, y):
            return self._those(step, 1, who, 8 * y.inner * y.cols)
        seconds = self._ring(ring).encode.seconds(polys, y.right_entries)
        return self._those(seconds + step, polys, who, words_size(ring, polys))

    def multiply(self, ring: Ring, y: Layout, who: Sequence[int]) -> None:
        """One product, its right side encoded on the way where it is large."""
        rates, columns = self._ring(ring), -(-y.cols // y.block_cols)
        seconds = rates.multiply * y.left_polys * columns
        if streamed_right(ring, y):
            seconds += rates.stream.seconds(y.right_polys, y.inner * y.cols)
        self._those(seconds, columns * ring.limbs, who)

    def add_public(self, ring: Ring, y: Layout, who: Sequence[int]) -> None:
        """Those who read an encrypted matrix add the coordinator's part, which they know."""
        rates = self._ring(ring)
        seconds = rates.public.seconds(y.left_polys, y.rows * y.inner) + rates.gather * y.left_polys
        seconds += self.rates.python.fresh_byte * y.left_polys * ring.poly_size + self.rates.python.step
        self.effort.provider(seconds, width=y.left_polys, who=who)

    def randomise(self, widths: Widths, who: Sequence[int]) -> None:
        """An encryption of zero for every output, packed."""
        ring, y = widths.ring, widths.layouts[0]
        seconds = self._ring(ring).zero.seconds(y.out_polys, y.rows * y.cols) + self.rates.python.step
        seconds += self.rates.python.fresh_byte * y.out_polys * ring.poly_size
        self._those(seconds, y.out_polys, who)
        self._touch(words_size(ring, 2 * y.out_polys) + y.out_polys * ring.poly_size, who)

    def align(self, entries: int, who: Sequence[int]) -> None:
        """A plain summand is brought to the scale of a product."""
        p = self.rates.python
        seconds = entries * (p.to_integers + p.from_integers)
        self.effort.provider(seconds, alone=True, who=who)

    def public_key(self, ring: Ring, who: Sequence[int]) -> list[Allocation]:
        """A group's key, at those who re-randomise with it."""
        return self._those(0.0, 1, who, words_size(ring, 2))

    def _those(self, seconds: float, width: float, who: Sequence[int], size: int = 0) -> list[Allocation]:
        if len(who):
            self.effort.provider(seconds, width=width, who=who)
        return [self.memories[i].allocate(size) for i in who]

    def _touch(self, size: int, who: Sequence[int]) -> None:
        for i in who:
            self.memories[i].touch(size)

    def sum_products(self, widths: Widths, senders: int) -> Allocation:
        """The coordinator adds up everybody's products as they come, on its event loop."""
        ring, y = widths.ring, widths.layouts[0]
        rates = self._ring(ring)
        each = rates.add.seconds(y.out_polys, y.rows * y.cols)
        # The sum and its second halves lie in memory of their own.
        fresh = self.rates.python.fresh_byte * (
            words_size(ring, y.out_polys) + y.out_polys * ring.poly_size + 8 * ring.limbs * y.rows * y.cols
        )
        self.effort.coordinator(each * senders + fresh, width=y.out_polys)
        self.effort.coordinator(rates.second * y.out_polys + self.rates.python.step, width=y.out_polys)
        message = ring.residues_size(y.rows * y.cols) + y.out_polys * ring.poly_size
        self.coordinator_memory.touch(senders * message)
        return self.coordinator_memory.allocate(words_size(ring, y.out_polys))

    def refresh(self, widths: Widths, who: Sequence[int]) -> None:
        """Providers mask their decryption shares; the message is hashed into the masks' domain."""
        ring, y = widths.ring, widths.layouts[0]
        seconds = self._ring(ring).refresh.seconds(y.out_polys, y.rows * y.cols)
        self.effort.provider(seconds + self.rates.python.step, width=y.out_polys, who=who)
        self.effort.provider(self.rates.python.hash_byte * y.out_polys * ring.poly_size, who=who)

    def clear(self, widths: Widths, shares: int, told: Sequence[int]) -> None:
        """The coordinator adds up the masked shares and truncates the sum; so do those who are sent it."""
        rates, y = self._ring(widths.ring), widths.layouts[0]
        entries = y.rows * y.cols
        self.effort.coordinator(rates.share * entries * shares)
        truncating = rates.clear * entries + self.rates.python.step
        self.effort.coordinator(truncating, width=y.rows)
        self.effort.provider(truncating, width=y.rows, who=told)

    # ---- what everybody does with shares ----

    def own(self, entries: int, bits: int, who: Sequence[int] | None) -> None:
        """A matrix of a provider's own becomes words."""
        p = self.rates.python
        self.effort.provider(
            entries * (p.from_words if bits <= _NARROW_BITS else p.from_integers), alone=True, who=who
        )

    def combine(self, entries: int, terms: int, identity: bool) -> None:
        """A linear combination of shares."""
        p = self.rates.python
        self.effort.everybody(p.linear + p.combine * entries * terms, alone=False)
        if identity:
            self.effort.coordinator(entries * (p.to_integers + p.from_integers), alone=True)

    def times_public(self, rows: int, inner: int, cols: int) -> None:
        """A public matrix times shares, in Python integers."""
        p = self.rates.python
        ends = inner * cols * p.to_integers + rows * cols * p.from_integers
        self.effort.everybody(p.times_public * rows * inner * cols + ends)

    def weighted(self, entries: int) -> None:
        """Every entry times its weight."""
        p = self.rates.python
        self.effort.everybody(entries * (p.weigh + p.to_integers + p.from_integers))

    def plus_public(self, entries: int) -> None:
        """The coordinator adds public numbers to its share."""
        p = self.rates.python
        self.effort.coordinator(entries * (p.to_integers + p.from_integers), alone=True)

    def trace(self, entries: int) -> None:
        """The sum of a diagonal."""
        self.effort.everybody(entries * self.rates.python.to_integers)

    def smudge(self, entries: int) -> None:
        """Every provider adds noise before an opening."""
        self.effort.provider(entries * self.rates.python.smudge)

    def deal(self, numbers: int, threshold: int) -> None:
        """Everybody evaluates polynomials for everybody, in Python integers."""
        p = self.rates.python
        self.effort.provider(numbers * threshold * self.n_providers * p.times_public)

    def added_up(self, entries: int, shares: int, *, at_provider: bool) -> None:
        """Shares of an opening become numbers."""
        p = self.rates.python
        seconds = entries * (p.combine * shares + p.floats)
        (self.effort.provider if at_provider else self.effort.coordinator)(seconds, alone=True)

    def as_floats(self, entries: int) -> None:
        """Every provider reads what the coordinator opened."""
        self.effort.provider(entries * self.rates.python.floats, alone=True)

    # ---- before the recipe ----

    def keys(self, size: int) -> None:
        """Key parts of so many bytes each, and the collective keys."""
        self.key_parts = size * self.n_providers
        self.effort.provider(self.rates.python.keys, alone=False)
        self.effort.coordinator(self.rates.python.keys / 2)

    def moments(self, rows: Sequence[int], m: int, *, exact: bool, keep_rows: bool) -> None:
        """Every provider's sums over its own rows; without a Gram matrix where products use the rows."""
        p = self.rates.python
        for i, n in enumerate(rows):
            if exact:
                seconds = p.exact_moments.seconds(n * m, -(-n // _EXACT_ROWS) * m * m)
            else:
                seconds = p.quick_moments.seconds(n * m, 0.0 if keep_rows else float(n) * m * m)
            self.effort.provider(seconds + p.table * n * m + 2 * p.step, who=[i])
            self.memories[i].touch(8 * n * m if keep_rows else m * m * (2 * _OBJECT_BYTES if exact else 24))

    def rotation(self, size: int) -> None:
        """Every provider draws its secret rotation."""
        self.effort.provider(self.rates.python.rotation.seconds(size, float(size) ** 3), alone=True)

    def gaussians(self, count: int) -> None:
        """Every provider draws its part of the sketch."""
        self.effort.provider(self.rates.python.gaussian * count, alone=True)
