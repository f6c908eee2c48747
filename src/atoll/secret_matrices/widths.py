"""How a product is shifted, masked, truncated and cut into blocks, from its declared bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, isqrt, log2

from atoll.crypto.products import (
    Clearing,
    Layout,
    Ring,
    family,
    limits,
    most_entries,
    noise_bits,
    streamed_right,
)
from atoll.errors import ParameterError
from atoll.secret_matrices.machine import EVERY_PRECISION, Cut, Job, Machine, Precision, Shared

# What a polynomial costs, relative to each other: encrypting and sending a left one; making, sending and
# refreshing an output; encoding a right one, which is never sent, to keep it or on the way.
_LEFT_COST, _OUT_COST, _RIGHT_COST, _STREAM_COST = 6.0, 10.5, 0.8, 0.2
_REFRESH_COST = 1.5
"""Of an output that another party has made."""
_PRODUCT_COST = 0.1
"""And of multiplying a left with a right one."""
_MOST_ROW_BLOCKS = 8
_MOST_BLOCKS = 4096
"""Products of blocks that one sum may have: their noise adds up."""


_FAMILIES = {Precision.LOW: "wide", Precision.HIGH: "deep"}
"""The table's families of rings (go/product/table.go); rings of one family share their keys."""


def rings_for(precision: Precision) -> tuple[Ring, ...]:
    """The rings for products of this precision, narrowest first."""
    return family(_FAMILIES[precision])


def widest_ring() -> Ring:
    """The ring whose moduli begin with those of every other one."""
    return rings_for(Precision.HIGH)[-1]


def _precision_of(ring: Ring) -> Precision:
    return next(precision for precision, name in _FAMILIES.items() if name == ring.family)


@dataclass(frozen=True)
class Widths:
    """Everything public about one product."""

    ring: Ring
    layouts: tuple[Layout, ...]
    shifts: tuple[int, ...]
    clearing: Clearing


def layout_for(
    ring: Ring, rows: int, inner: tuple[int, ...], cols: tuple[int, ...], right_uses: float = 1
) -> Layout:
    """The cheapest blocks for products of one left side of several parts.

    ``inner`` are the parts' columns, ``cols`` the columns of each product. Nobody encodes more than the
    largest of either: in every product, or once for ``right_uses`` of them where its encoding is cached.
    """
    return _cheapest(ring, rows, inner, cols, right_uses)[1]


def effort(rows: int, inner: tuple[int, ...], cols: tuple[int, ...], right_uses: float) -> float:
    """What such products of low precision cost a party, compared with others."""
    ring = rings_for(Precision.LOW)[0]
    encoding = _cheapest(ring, rows, inner, cols, right_uses)[0]
    return encoding + _PRODUCT_COST * rows * max(inner) * max(cols) / ring.degree


@lru_cache(maxsize=1024)
def _cheapest(
    ring: Ring, rows: int, inner: tuple[int, ...], cols: tuple[int, ...], right_uses: float
) -> tuple[float, Layout]:
    best: tuple[float, Layout] | None = None
    longest, widest = max(inner), max(cols)
    for row_blocks in range(1, min(rows, _MOST_ROW_BLOCKS) + 1):
        a = ceil(rows / row_blocks)
        for b in _even_parts(longest):
            c = min(widest, ring.degree // (a * b))
            blocks = sum(ceil(part / b) for part in inner)
            if c < 1 or blocks > _MOST_BLOCKS:
                continue
            layout = Layout(rows, longest, widest, a, b, ceil(widest / ceil(widest / c)))
            left = ceil(rows / a) * blocks
            others = ceil(rows / a) * sum(ceil(part / layout.block_cols) for part in cols) - layout.out_polys
            right = _STREAM_COST if streamed_right(ring, layout) else _RIGHT_COST / right_uses
            cost = _LEFT_COST * left + _OUT_COST * layout.out_polys + right * layout.right_polys
            cost += _REFRESH_COST * others
            if best is None or cost < best[0]:
                best = (cost, layout)
    if best is None:
        raise ParameterError(f"a product of {rows} x {longest} entries does not fit the ring {ring.name!r}")
    return best


@lru_cache(maxsize=1024)
def entries_layout(ring: Ring, rows: int, cols: int) -> Layout:
    """The cheapest blocks for a column times the columns of another matrix, entry by entry."""
    best: tuple[float, Layout] | None = None
    for side_by_side in _even_parts(cols):
        most = min(rows, most_entries(ring, side_by_side))
        if most < 1:
            continue
        layout = Layout(rows, 1, cols, ceil(rows / ceil(rows / most)), 1, side_by_side, entrywise=True)
        cost = _LEFT_COST * layout.left_polys + _OUT_COST * layout.out_polys
        if best is None or cost < best[0]:
            best = (cost, layout)
    assert best is not None, "one entry of one column fits every ring"
    return best[1]


@lru_cache(maxsize=1024)
def _even_parts(size: int) -> list[int]:
    """All sizes of parts into which something can be cut evenly, but for the last."""
    root = isqrt(size)
    return sorted({ceil(size / parts) for parts in range(1, root + 1)} | set(range(1, root + 1)))


def widths_for(
    members: int, job: Job, *, spare: int = 0, precisions: Sequence[Precision] = EVERY_PRECISION
) -> Widths:
    """The cheapest ring that holds the product, with shifts, truncation and masks.

    ``spare`` bits are shifted beyond what this product needs, for others with the same left side. There are
    keys for these ``precisions`` only.
    """
    wanted = precisions if job.cut is None else (job.cut.precision,)
    rings = [ring for precision in wanted for ring in rings_for(precision)]
    for ring in rings:
        needed = _least_bits(ring, members, job)
        if needed > ring.log_q:
            continue
        try:
            widths = _widths(ring, members, job, spare)
        except ParameterError:  # no blocks fit it
            if ring == rings[-1]:
                raise
            continue
        needed = widths.clearing.mask_bits + members.bit_length()
        if needed <= ring.log_q:
            return widths
    raise ParameterError(
        f"{job.name}: a product needs {needed} bits, the widest ring has {rings[-1].log_q:.0f}",
        hint="fewer fractional bits, or smaller bounds",
    )


def _least_bits(ring: Ring, members: int, job: Job) -> int:
    """What the product needs however it is cut: most rings are told from that alone."""
    right = max(
        y.fraction + min(y.bits, y.bits if y.norm_bits is None else y.norm_bits) for _, y in job.terms
    )
    noise = noise_bits(ring, members, max(1, right)) + limits().truncate_margin
    return noise + job.fraction + job.bits + limits().mask_margin + members.bit_length()


def cut_for(machine: Machine, job: Job, *, spare: int = 0) -> Cut:
    """How this product's left side is cut, for others with the same one."""
    widths = widths_for(machine.n_providers, job, spare=spare, precisions=machine.precisions)
    return Cut(_precision_of(widths.ring), widths.layouts[0], min(widths.shifts))


def with_one_left(machine: Machine, jobs: Sequence[Job]) -> list[Job]:
    """Jobs with one left side, in one ring, with blocks and a shift that serve all: it is encrypted once.

    The left side may have parts: then every job has a term for each of them.
    """
    left, cols = jobs[0].terms[0][0], tuple(job.terms[0][1].shape[1] for job in jobs)
    inner = tuple(x.shape[1] for x, _ in jobs[0].terms)
    for precision in machine.precisions:
        blocks = layout_for(rings_for(precision)[0], left.shape[0], inner, cols, jobs[0].right_uses)
        cut = Cut(precision, blocks, 0)
        try:
            all_widths = [widths_for(machine.n_providers, replace(job, cut=cut)) for job in jobs]
            cut = cut._replace(shift=max(min(widths.shifts) for widths in all_widths))
            made = [replace(job, cut=cut) for job in jobs]
            for job in made:
                widths_for(machine.n_providers, job)
        except ParameterError:
            if precision == machine.precisions[-1]:
                raise
            continue
        return made
    raise AssertionError("a machine has keys of one precision at least")


def _widths(ring: Ring, members: int, job: Job, spare: int) -> Widths:
    terms, fraction, bits = job.terms, job.fraction, job.bits
    left, right = terms[0]
    inner = tuple(x.shape[1] for x, _ in terms)
    if job.cut:
        first: Layout = job.cut.blocks
    elif job.entrywise:
        first = entries_layout(ring, *right.shape)
    else:
        first = layout_for(ring, left.shape[0], inner, (right.shape[1],), job.right_uses)
    blocks = (first.block_rows, first.block_inner, first.block_cols, job.entrywise)
    layouts = tuple(Layout(x.shape[0], x.shape[1], y.shape[1], *blocks) for x, y in terms)
    scale = max(x.fraction + y.fraction for x, y in terms)
    right_bits = max(1, _added(_right_bits(y, layout) for (_, y), layout in zip(terms, layouts, strict=True)))
    # The truncation drops shift + scale - fraction bits, which must hide the noise.
    least = noise_bits(ring, members, right_bits) + limits().truncate_margin
    shift = max(job.cut.shift if job.cut else 0, least + fraction - scale + spare)
    value_bits = scale + shift + bits
    mask_bits = value_bits + limits().mask_margin
    clearing = Clearing(members, value_bits, right_bits, scale + shift - fraction, mask_bits)
    shifts = tuple(shift + scale - x.fraction - y.fraction for x, y in terms)
    return Widths(ring, layouts, shifts, clearing)


def _right_bits(y: Shared, layout: Layout) -> int:
    """log2 of a bound on the Frobenius norm of a block of columns, in integers; of entries, of one block."""
    rows = layout.block_rows if layout.entrywise else y.shape[0]
    from_entries = y.bits + ceil(log2(rows * min(layout.block_cols, y.shape[1])) / 2)
    real = from_entries if y.norm_bits is None else min(from_entries, y.norm_bits)
    return y.fraction + real


def _added(bits: Iterable[int]) -> int:
    return ceil(log2(sum(2.0**value for value in bits)))
