"""How a product is shifted, masked, truncated and cut into blocks, from its declared bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2

from atoll.crypto.hazmat.product import (
    MASK_MARGIN,
    TRUNCATE_MARGIN,
    Clearing,
    Layout,
    Ring,
    family,
    noise_bits,
)
from atoll.errors import ParameterError
from atoll.protocols.sfpca.shared import Job, Shared

# What a polynomial costs, relative to each other: encrypting and sending a left one; making, sending and
# refreshing an output; encoding a right one, which is never sent.
_LEFT_COST, _OUT_COST, _RIGHT_COST = 4.0, 7.0, 0.8
_RIGHT_MEMORY = 1 << 30
"""Bytes that an encoded right side may take where another cut takes less."""


@dataclass(frozen=True)
class Widths:
    """Everything public about one product."""

    ring: Ring
    layouts: tuple[Layout, ...]
    shifts: tuple[int, ...]
    clearing: Clearing


@lru_cache(maxsize=1024)
def layout_for(
    ring: Ring, rows: int, inner: int, cols: int, right_uses: float = 1, kept: bool = True
) -> Layout:
    """The cheapest blocks for a product whose right side is used so many times, and kept in between."""
    best: tuple[float, Layout] | None = None
    for row_blocks in range(1, min(rows, 8) + 1):
        a = ceil(rows / row_blocks)
        if a > ring.degree:
            continue
        room = ring.degree // a
        for b in sorted({ceil(inner / blocks) for blocks in range(1, inner + 1)}):
            if b > room:
                break
            c = min(cols, room // b)
            layout = Layout(rows, inner, cols, a, b, ceil(cols / ceil(cols / c)))
            cost = (
                _LEFT_COST * layout.left_polys
                + _OUT_COST * layout.out_polys
                + _RIGHT_COST * layout.right_polys / right_uses
            )
            if kept and layout.right_polys * ring.degree * ring.limbs * 8 > _RIGHT_MEMORY:
                cost *= 1000
            if best is None or cost < best[0]:
                best = (cost, layout)
    if best is None:
        raise ParameterError(f"{rows} rows do not fit the ring {ring.name!r}")
    return best[1]


def plan_for(parties: int, job: Job, *, spare: int = 0) -> Widths:
    """The cheapest ring of the family that holds the product, with shifts, truncation and masks.

    ``spare`` bits are shifted beyond what this product needs, for others with the same left side.
    """
    rings = family(job.ring)
    plans = (_widths(ring, parties, job, spare) for ring in rings)
    for plan in plans:
        if plan.clearing.mask_bits + parties.bit_length() <= plan.ring.log_q:
            return plan
    raise ParameterError(
        f"{job.name}: a product needs {plan.clearing.mask_bits + parties.bit_length()} bits, "
        f"the widest {job.ring!r} ring has {rings[-1].log_q:.0f}",
        hint="fewer fractional bits, or the deeper rings",
    )


def _widths(ring: Ring, parties: int, job: Job, spare: int) -> Widths:
    terms, fraction, bits = job.terms, job.fraction, job.bits
    left, right = terms[0]
    first = job.blocks or layout_for(ring, left.shape[0], left.shape[1], right.shape[1], job.right_uses)
    blocks = (first.block_rows, first.block_inner, first.block_cols)
    layouts = tuple(Layout(x.shape[0], x.shape[1], y.shape[1], *blocks) for x, y in terms)
    scale = max(x.fraction + y.fraction for x, y in terms)
    right_bits = max(1, _added(_right_bits(y, first.block_cols) for _, y in terms))
    # The truncation drops shift + scale - fraction bits, which must hide the noise.
    least = noise_bits(ring, parties, right_bits) + TRUNCATE_MARGIN
    shift = max(job.least_shift, least + fraction - scale + spare)
    value_bits = scale + shift + bits
    clearing = Clearing(parties, value_bits, right_bits, scale + shift - fraction, value_bits + MASK_MARGIN)
    shifts = tuple(shift + scale - x.fraction - y.fraction for x, y in terms)
    return Widths(ring, layouts, shifts, clearing)


def _right_bits(y: Shared, block_cols: int) -> int:
    """log2 of a bound on the Frobenius norm of a block of columns, in integers."""
    from_entries = y.bits + ceil(log2(y.shape[0] * min(block_cols, y.shape[1])) / 2)
    real = from_entries if y.norm_bits is None else min(from_entries, y.norm_bits)
    return y.fraction + real


def _added(bits: Iterable[int]) -> int:
    return ceil(log2(sum(2.0**value for value in bits)))
