"""What the paper's routines cost: closed forms of our own, the paper's beside them, and why they differ.

Counted are products (of ciphertexts, and with clear numbers), rotations by powers of two, and refreshes. The
forms hold at the paper's parameters, ``FRESH`` and ``LOWEST`` levels, which say where a refresh is due; tests
compare them with what a machine counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt

from atoll.secret_matrices.slots.levelled import polynomial_operations
from atoll.secret_matrices.slots.machine import Operation
from atoll.secret_matrices.slots.packed import sigma_baby, tau_baby
from atoll.secret_matrices.slots.products import SLOTS, Method, breadth, operations, period, within

__all__ = [
    "COUNTED",
    "Cost",
    "Formula",
    "by_method",
    "dqr",
    "eigen",
    "eigen_and_level",
    "formulas",
    "householder",
    "levels_after_qr",
    "m4",
    "m5",
    "paper_eigen",
    "paper_product",
    "paper_qr",
    "qr",
]

COUNTED = (Operation.MULTIPLY, Operation.WEIGH, Operation.ROTATE, Operation.REFRESH)
Cost = Counter[Operation]

FRESH, LOWEST = 9, 2
DEGREE = 31


def cost(products: int = 0, weighings: int = 0, rotations: int = 0, refreshes: int = 0) -> Cost:
    """A cost of these numbers."""
    return Counter(dict(zip(COUNTED, (products, weighings, rotations, refreshes), strict=True)))


def _log2(length: int) -> int:
    return period(length).bit_length() - 1


def _times(factor: int, one: Cost) -> Cost:
    return Counter({operation: factor * count for operation, count in one.items()})


# ---- products ----


def by_method(method: Method, a: int, b: int, c: int, *, encrypted: bool = False, slots: int = SLOTS) -> Cost:
    """(a x b) times (b x c) by M1, M2 or M3."""
    factors, masks, rotations = operations(method, a, b, c, slots)
    return cost(factors if encrypted else 0, masks + (0 if encrypted else factors), rotations)


def m4(a: int, b: int, slots: int = SLOTS) -> Cost:
    """(a x b) times a matrix of one vector, either case."""
    return cost(a * breadth(b, slots), 0, a * _log2(within(b, slots)))


def m5(size: int) -> Cost:
    """A product of two small matrices, each in one ciphertext."""
    d, bits = period(size), _log2(size)
    sigma = sigma_baby(d) - 1 + 2 * d // sigma_baby(d) - 1
    tau = tau_baby(d) - 1 + d // tau_baby(d) - 1
    return cost(d, 5 * d - 2, sigma + tau + 3 * (d - 1) + 2 * bits)


# ---- algorithms 2, 3, 4 ----


def householder(length: int, *, fresh: bool = False, slots: int = SLOTS) -> Cost:
    """Algorithm 2. A row that is not fresh is refreshed first; then 1 / |v| and v_0, the side, and |u|^2."""
    series, wide = polynomial_operations(DEGREE), breadth(length, slots)
    return cost(
        3 * series[Operation.MULTIPLY] + 4 + 3 * wide,
        3 * series[Operation.WEIGH] + 2 + 2 * wide,
        2 * _log2(within(length, slots)),
        4 if fresh else 4 + wide,
    )


def _later(first: int, count: int) -> range:
    """Steps of two levels before which a row is refreshed: the first, then every third."""
    return range(first, count, 3)


def _without(level: int) -> int:
    """How many reflections of two levels a row at this level takes, and keeps one level."""
    return max(0, (level - LOWEST - 3) // 2 + 1)


def levels_after_qr(rows: int, length: int) -> list[int]:
    """Of the rows of Q: born two levels below a fresh vector, each reflection takes two more."""
    n = min(rows, length - 1)
    return [FRESH - 2 - 2 * (min(j, n - 1) % 3) for j in range(rows)]


def qr(
    rows: int,
    length: int,
    *,
    level: int | Sequence[int] = FRESH,
    active: int | None = None,
    slots: int = SLOTS,
) -> Cost:
    """Algorithm 3 on rows at a level, or each at its own.

    Reflection i meets rows - i rows of V, two products each; and in the second half the rows of Q after its
    own, and once its own. A row of V at level 9 goes three reflections without a refresh, one of Q two and
    then three.
    """
    n, wide = min(rows, (length if active is None else active) - 1), breadth(length, slots)
    forth = sum(rows - i for i in range(n))
    back = sum(rows - 1 - i for i in range(n - 1))
    levels = [level] * rows if isinstance(level, int) else level
    refreshed = sum(len(_later(_without(own), min(j + 1, n))) for j, own in enumerate(levels))
    refreshed += sum(min(j, n - 1) // 3 for j in range(rows))
    own = cost(
        wide * (2 * forth + 2 * back + rows),
        wide * (3 * n + rows) + rows,
        _log2(within(length, slots)) * (forth + back + rows),
        wide * (n + refreshed),  # a reflection's vector, once it is found
    )
    return own + _times(n, householder(length, slots=slots))


def dqr(rows: int, length: int, providers: int, slots: int) -> tuple[Cost, Cost]:
    """DQR^T at the coordinator and at a provider, with the ciphertexts that each sends.

    A reflection: |v|^2 and v_0 there, two numbers and the vector's blocks back; then in one ciphertext there
    and back the products with the rows that are left, and in the second half with the rows of Q.
    """
    blocks = ceil(providers * period(length) / slots)
    forth, back = range(1, rows), range(1, rows + 1)
    met = sum(forth) + sum(back)
    spread = sum(k * _log2(k) for k in (*forth, *back))
    meetings = 2 * rows - 1
    series = polynomial_operations(DEGREE)
    refreshes = (7 + blocks) * rows + meetings
    coordinator = cost(
        rows * (3 * series[Operation.MULTIPLY] + 6),
        rows * (3 * series[Operation.WEIGH] + 1),
        0,
        refreshes,
    )
    provider = cost(
        2 * rows + 2 * met - rows,
        (5 + 2 * blocks) * rows + 2 * met + meetings,
        rows * (2 * _log2(length) + _log2(slots // period(length))) + met * _log2(length) + spread,
        refreshes,
    )
    provider[Operation.SEND] = (2 + blocks) * rows + meetings
    coordinator[Operation.SEND] = providers * provider[Operation.SEND]
    return coordinator, provider


def _unpacked(rows: int, size: int, slots: int) -> Cost:
    return cost(0, rows, rows * _log2(slots // period(size)))


def _tridiagonal(size: int, slots: int) -> tuple[Cost, int]:
    """Lines 1 to 12 of algorithm 4, and the level of Q after them."""
    total = cost(0, size)
    level = 0
    for i in range(size - 2):
        later = size - 1 - i
        reflection = cost(later, 1 + 2 * later, later * _log2(size), 1)
        total += (
            _unpacked(1, size, slots) + householder(size) + reflection + _times(2 if i == 0 else 3, m5(size))
        )
        total += cost(refreshes=1 if i == 0 else 2)  # M, before P M and before (P M) P
        if i == 0:
            level = FRESH - 3
        else:
            total += cost(refreshes=int(level - LOWEST < 3))
            level = (FRESH if level - LOWEST < 3 else level) - 3
            level = min(level, FRESH - 6)
    return total + cost(refreshes=1) + _unpacked(size, size, slots), level


def eigen(size: int, w: int, slots: int = SLOTS) -> Cost:
    """Algorithm 4."""
    return eigen_and_level(size, w, slots=slots)[0]


def eigen_and_level(size: int, w: int, level: int = FRESH, slots: int = SLOTS) -> tuple[Cost, int]:
    """The same for a matrix at a level, if it has more than two rows; and the level of the eigenvectors."""
    again = cost(refreshes=int(size > 2 and level - 1 - LOWEST < 3))  # the packed matrix, before line 7
    total, level = _tridiagonal(size, slots) if size > 2 else (cost(), -1)
    start = FRESH - 1 if size > 2 else FRESH
    for i in reversed(range(1, size)):
        rows = i + 1
        for _ in range(w):
            total += cost(0, 1 + rows + 2 * rows + 1, _log2(size))  # the shift, taken off, packing, put back
            total += qr(rows, size, level=start - 2, active=rows) + m5(size)
            total += _unpacked(rows, size, slots)
            rotation = FRESH if i > 1 else FRESH - 3
            total += cost(refreshes=2 + int(i > 1))  # R, T, and Q' unless it is still high
            if level >= 0:
                total += m5(size) + cost(refreshes=int(level - LOWEST < 3))
                level = min(rotation, FRESH if level - LOWEST < 3 else level) - 3
            else:
                level = rotation
            start = FRESH - 1
        total += cost(0, 1 + i)  # the eigenvalue, and the rows that are left
        start -= 1
    return again + total + cost(0, 1) + _unpacked(size, size, slots), level - 1


# ---- beside the paper's ----


@dataclass(frozen=True)
class Formula:
    """A routine's cost at some sizes, and the paper's formula there."""

    routine: str
    sizes: str
    ours: Cost
    products: float
    """The paper's Mults: with clear numbers and of ciphertexts together."""
    rotations: float
    refreshes: float
    difference: str


def paper_product(method: Method, a: int, b: int, c: int, slots: int) -> tuple[float, float]:
    """The paper's Mults and Rots of M1, M2 or M3."""
    wide = ceil(b / slots)
    if method is Method.M1:
        return (wide + 1) * a * c, a * c * wide * log2(slots)
    if method is Method.M2:
        return wide * a * b, a * b * log2(min(c, slots))
    return wide * a * b, wide * (ceil(c / b) + 2 * a * ceil(sqrt(b)))


def paper_householder(length: int) -> tuple[float, float, float]:
    series = 2 * sqrt(2 * DEGREE) + log2(DEGREE) / 2
    return 3 * series + 6, 2 * log2(length), (5 + 3 * ceil(1 + log2(DEGREE))) / (FRESH - LOWEST)


def paper_qr(rows: int, length: int) -> tuple[float, float, float]:
    products, rotations, refreshes = paper_householder(length)
    return (
        rows**2 + rows * products,
        rows**2 * (1 + log2(length)) + rows * rotations,
        rows * refreshes + 4 * rows**2 / (FRESH - LOWEST),
    )


def paper_eigen(size: int, w: int) -> tuple[float, float, float]:
    hh, factors = paper_householder(size), paper_qr(size, size)
    m5_products, m5_rotations = 5 * size, 3 * size + 5 * sqrt(size)
    return (
        size * (1 + hh[0] + w * factors[0]) + size * (1 + w * m5_products),
        size * (hh[1] + w * factors[1]) + size * (1 + w * m5_rotations),
        (size - 1) * (hh[2] + w * factors[2]) + (size - 1) * (4 + 3 * w) / (FRESH - LOWEST),
    )


def formulas(
    a: int = 8, b: int = 256, c: int = 256, size: int = 8, w: int = 5, slots: int = 8192
) -> list[Formula]:
    """Every routine at one set of sizes."""
    product, small = f"{a} x {b} x {c}", f"{size} x {size}"
    paper: list[tuple[str, str, Cost, tuple[float, float, float], str]] = [
        *(
            (
                method.name,
                product,
                by_method(method, a, b, c),
                (*paper_product(method, a, b, c, slots), 0),
                why,
            )
            for method, why in zip(Method, (_M1, _M2, _M3), strict=True)
        ),
        ("M4", f"{a} x {b}", m4(a, b), (a, 2 * a * log2(min(b, slots)), 0), _M4),
        ("M5", small, m5(size), (5 * size, 3 * size + 5 * sqrt(size), 0), _M5),
        ("Householder", f"{b}", householder(b), paper_householder(b), _HOUSEHOLDER),
        ("QR^T", f"{a} x {b}", qr(a, b), paper_qr(a, b), _QR),
        ("QR^T", small, qr(size, size), paper_qr(size, size), _QR),
        ("DQR^T", f"6 x ({a} x {b})", _both(dqr(a, b, 6, slots)), paper_qr(a, b), _DQR),
        (f"Eigen, w = {w}", small, eigen(size, w), paper_eigen(size, w), _EIGEN),
    ]
    return [Formula(name, sizes, ours, *theirs, why) for name, sizes, ours, theirs, why in paper]


def _both(costs: tuple[Cost, Cost]) -> Cost:
    """Coordinator and one provider; a refresh is one for both."""
    here, there = costs
    total = here + there
    total[Operation.REFRESH] = here[Operation.REFRESH]
    return total


def table(rows: list[Formula]) -> str:
    """As a table in Markdown: products of ciphertexts, and with clear numbers, beside the paper's Mults."""
    head = "routine | sizes | ct x ct | ct x pt | paper | rotations | paper | refreshes | paper"
    lines = [f"| {head} | why they differ |", "|---|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        products, weighings, rotations, refreshes = (f"{row.ours[operation]:,}" for operation in COUNTED)
        theirs = [f"{number:,.0f}" for number in (row.products, row.rotations, row.refreshes)]
        cells = [row.routine, row.sizes, products, weighings, theirs[0], rotations, theirs[1], refreshes]
        lines.append("| " + " | ".join([*cells, theirs[2], row.difference]) + " |")
    return "\n".join(lines)


_M1 = (
    "A row is repeated with a power of two as its period: a sum takes log2 of the period, not of all "
    "slots. It stands in every slot, so that the mask puts it into place without a rotation."
)
_M2 = (
    "The paper counts no mask for M[i, j]. An element is spread over the period of M's rows, which takes "
    "log2 p(b) rotations for any c."
)
_M3 = "One baby and one giant step are not rotated at all, and nothing is repeated to length c."
_M4 = "A sum over a repeated row stands in every slot: the duplication costs nothing."
_M5 = (
    "The same steps. Where a row's shift goes to the right it takes log2 d of the keys, in two places. "
    "Sizes are rounded up to powers of two."
)
_HOUSEHOLDER = (
    "A series of degree 31 takes 11 products and 29 with clear coefficients, which the paper does not "
    "count and puts at 18 products in all. The row is divided by its length before the "
    "sign is taken and |u|^2 is found, which is some products more. A refresh is of whole ciphertexts, where "
    "seven levels end; the paper divides the depth by seven."
)
_QR = (
    "The paper counts one product for each pair of rows where there are two, but all pairs, where half "
    "have nothing to do: minors shrink, and rows of Q are the identity's until their own reflection. Rows "
    "stay in place, without its rotation by one. A square matrix's last row is not reflected."
)
_DQR = (
    "Coordinator and one provider together; the paper's is QR^T with the lengths of the parts, and 3 "
    "ciphertexts a row to add up, here 5. A provider's own reflection vector has to be refreshed too, in "
    "one ciphertext for all; then its rows never run out of levels."
)
_EIGEN = (
    "The paper takes every QR^T at full size; here a deflated matrix has fewer rows and reflections. Its "
    "formula has one product of matrices in a step and none in the tridiagonalisation; line 20 is "
    "another, lines 6 to 8 are three. A matrix is refreshed packed, as one ciphertext, where it can."
)
