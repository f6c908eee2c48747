"""What the steps of Algorithm 1 cost: closed forms of our own, beside the paper's Table 1.

Counted are products, rotations by powers of two, refreshes, and ciphertexts sent, at the coordinator and at a
provider; tests compare the forms with what a machine counts. They hold where islands hold rows, for a sketch
of more than two rows, at the levels of :mod:`atoll.secret_matrices.slots.costs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from atoll.protocols.pca.sfpca.paper.parameters import Course
from atoll.secret_matrices.slots import costs
from atoll.secret_matrices.slots.costs import FRESH, LOWEST, Cost, cost
from atoll.secret_matrices.slots.machine import Operation
from atoll.secret_matrices.slots.products import Method, choose, period

__all__ = ["Sizes", "Step", "steps", "table"]


class Sizes(NamedTuple):
    """Of a run; the defaults are those of the paper's appendix B."""

    m: int = 256
    n_max: int = 1024
    providers: int = 6
    psi: int = 4
    rho: int = 8
    p: int = 10
    w: int = 5
    slots: int = 8192

    @property
    def wide(self) -> int:
        """Ciphertexts of a row."""
        return ceil(self.m / self.slots)


class Step(NamedTuple):
    """A step's cost at both roles; the paper's: products, rotations, and ciphertexts sent and refreshed."""

    name: str
    coordinator: Cost
    provider: Cost
    paper: tuple[float, float, float]
    difference: str


class _Product(NamedTuple):
    """What one product with the covariance costs, and the level of its rows below P's."""

    coordinator: Cost
    provider: Cost
    depth: int
    taken: int


def _both(here: Cost, there: Cost, refreshes: int) -> tuple[Cost, Cost]:
    """With refreshes, in which everybody takes part."""
    one = cost(refreshes=refreshes)
    return here + one, there + one


def _sends(count: int) -> Cost:
    return Counter({Operation.SEND: count})


def _log2(length: int) -> int:
    return period(length).bit_length() - 1


def _chosen(s: Sizes, a: int, b: int, c: int) -> tuple[Cost, int]:
    """Of an encrypted matrix and a clear one, by the cheapest method; and its levels."""
    method = choose(a, b, c, slots=s.slots).method
    return costs.by_method(method, a, b, c, slots=s.slots), method.levels


def _alike(s: Sizes, rows: int) -> tuple[Cost, int]:
    """Copies of so many rows made the same again, and the level that it takes."""
    copies = max(1, s.slots // period(s.m))
    return (cost(0, rows, rows * _log2(copies)), 1) if copies > 1 else (cost(), 0)


def _product(s: Sizes, course: Course) -> _Product:
    """P C: by Precomp, or by Seq and back."""
    if course.method == "precomp":
        own, _ = _chosen(s, s.rho, s.m, s.m)
        mean = costs.m4(s.rho, s.m, s.slots) + cost(s.rho * s.wide)
        sent = s.rho * s.wide
        return _Product(mean + _sends(s.providers * sent), own + _sends(sent), 4, 2)
    forth, back, there, home = cost(), cost(), 0, 0
    for start in range(0, s.n_max, s.slots):
        length = min(s.slots, s.n_max - start)
        (one, down), (other, up) = _chosen(s, s.rho, s.m, length), _chosen(s, s.rho, length, s.m)
        forth += one + cost(0, s.rho)  # the mean is taken off
        back += other
        there, home = (down, up) if not start else (there, min(home, up))
    provider = forth + costs.m4(s.rho, s.m, s.slots) + back + _sends(s.rho * s.wide)
    taken = max(2, there) + home
    return _Product(_sends(s.providers * (s.rho + 1) * s.wide), provider, taken + 1, taken)


def _due(levels: Sequence[int], depth: int) -> int:
    """How many rows are refreshed before so many levels."""
    return sum(level - LOWEST < depth for level in levels)


def _after(levels: Sequence[int], depth: int, taken: int) -> list[int]:
    return [(FRESH if level - LOWEST < depth else level) - taken for level in levels]


def _iterations(s: Sizes, course: Course) -> tuple[Cost, Cost, list[int]]:
    """Step 4, and the levels of P after it."""
    product, (alike, level) = _product(s, course), _alike(s, s.rho)
    here, there, levels = cost(), cost(), [FRESH] * s.rho
    for _ in range(s.p):
        depth = 5 if course.qr == "dqr" else product.depth
        refreshes = s.wide * _due(levels, depth)
        if course.qr == "dqr":
            one, other = costs.dqr(s.rho, s.n_max, s.providers, s.slots)
            here += one + alike + product.coordinator
            there += other + product.provider + cost(0, s.rho)  # rows are stretched where they are
            _, home = _chosen(s, s.rho, s.n_max, s.m)
            levels = [FRESH - 2 - home - level] * s.rho
        else:
            made = _after(levels, depth, product.taken + level)
            factored = costs.qr(s.rho, s.m, level=made, slots=s.slots)
            here += factored + alike + product.coordinator + cost(0, s.rho * s.wide)
            there += product.provider + cost(refreshes=factored[Operation.REFRESH])
            levels = costs.levels_after_qr(s.rho, s.m)
        here, there = _both(here, there, refreshes)
    return here, there, levels


def steps(s: Sizes, course: Course) -> list[Step]:
    """Steps 2 to 7."""
    four = _iterations(s, course)
    product, (alike, one) = _product(s, course), _alike(s, s.rho)
    P = _after(four[2], product.depth, 0)
    Y = _after(four[2], product.depth, product.taken + one)
    small, level = costs.eigen_and_level(s.rho, s.w, min(*P, *_after(Y, 4, 0)) - 2, s.slots)
    five = _both(
        product.coordinator
        + alike
        + costs.by_method(Method.M1, s.rho, s.m, s.rho, encrypted=True, slots=s.slots),
        product.provider,
        s.wide * (_due(four[2], product.depth) + _due(Y, 4)),
    )
    level, due = (FRESH, s.psi) if level - LOWEST < 3 else (level, 0)
    again, one = _alike(s, s.psi)
    last = costs.qr(s.psi, s.m, level=min(level - 1, *_after(Y, 4, 0)) - 1 - one, slots=s.slots)
    turned = costs.by_method(Method.M2, s.psi, s.rho, s.m, encrypted=True, slots=s.slots)
    seven = turned + cost(0, s.psi * s.wide) + again + last
    refreshed = cost(refreshes=last[Operation.REFRESH])
    ours = (
        ("2", cost(), _sends(s.wide)),
        ("3", cost(), _sends(s.rho * s.wide)),
        ("4", *four[:2]),
        ("5", *five),
        ("6", small, cost(refreshes=small[Operation.REFRESH])),
        ("7", *_both(seven, refreshed, due)),
    )
    paper = _papers(s, course)
    return [Step(name, here, there, paper[name], _WHY[name]) for name, here, there in ours]


# ---- the paper's Table 1 ----


def _papers(s: Sizes, course: Course) -> dict[str, tuple[float, float, float]]:
    """Products, rotations and ciphertexts of each step, by the formulas that it prints."""
    wide = s.wide

    def cheapest(a: int, b: int, c: int) -> tuple[float, float]:
        return costs.paper_product(choose(a, b, c, slots=s.slots).method, a, b, c, s.slots)

    def added(*parts: tuple[float, ...]) -> tuple[float, float]:
        return sum(x[0] for x in parts), sum(x[1] for x in parts)

    square = cheapest(s.rho, s.m, s.m)
    forth, back = cheapest(s.rho, s.m, s.n_max), cheapest(s.rho, s.n_max, s.m)
    step4 = square if course.method == "precomp" else added(forth, back)
    first, last = costs.paper_qr(s.rho, s.m), costs.paper_qr(s.psi, s.m)
    small = costs.paper_eigen(s.rho, s.w)
    if course.method == "precomp":
        step5, step7 = added(square, cheapest(s.rho, s.m, s.rho)), cheapest(s.psi, s.rho, s.m)
    else:
        step5 = added(forth, cheapest(s.rho, s.n_max, s.rho))
        step7 = added(cheapest(s.psi, s.rho, s.n_max), cheapest(s.psi, s.n_max, s.m))
    apart = 3 * s.rho * ceil(s.n_max / s.slots) if course.qr == "dqr" else 0
    iteration = added(step4, first)
    return {
        "2": (0, 0, wide),
        "3": (0, 0, s.rho * wide),
        "4": (s.p * iteration[0], s.p * iteration[1], s.p * (s.rho * wide + first[2] + apart)),
        "5": (*step5, s.rho * wide),
        "6": small,
        "7": (*added(step7, last), s.psi * wide + last[2]),
    }


_WHY = {
    "2": "The same.",
    "3": "The same.",
    "4": "Ours takes the mean off at the coordinator (Precomp) or from each row (Seq), makes copies alike; P "
    "is refreshed before a product where a row has no levels left, which the paper leaves out, and QR^T "
    "and DQR^T differ as their own forms say.",
    "5": "The sum is taken before the second product, so that Z is a product of two encrypted matrices at "
    "the coordinator, by M1. For that Seq goes back to columns, where the paper multiplies Z_i Z_i^T; what "
    "is added up there is refreshed once.",
    "6": "As Eigen's own form says.",
    "7": "U times the sum of all islands' rows, at the coordinator: nothing is sent but refreshes.",
}


def table(rows: Sequence[Step]) -> str:
    """As a table in Markdown: both roles' operations, the paper's beside them."""
    head = "step | ct x ct | ct x pt | paper | rotations | paper | sent and refreshed by a provider | paper"
    lines = [f"| {head} | why they differ |", "|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        both = row.coordinator + row.provider
        kinds = (Operation.MULTIPLY, Operation.WEIGH, Operation.ROTATE)
        products, weighings, rotations = (f"{both[kind]:,}" for kind in kinds)
        sent = f"{row.provider[Operation.SEND] + row.provider[Operation.REFRESH]:,}"
        paper = [f"{number:,.0f}" for number in row.paper]
        cells = [row.name, products, weighings, paper[0], rotations, paper[1], sent, paper[2]]
        lines.append("| " + " | ".join([*cells, row.difference]) + " |")
    return "\n".join(lines)
