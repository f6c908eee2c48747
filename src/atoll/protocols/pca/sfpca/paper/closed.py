"""What the steps of Algorithm 1 cost: closed forms of our own, beside the paper's Table 1.

Counted are products, rotations by powers of two, refreshes, and ciphertexts sent, at the coordinator and at a
provider; tests compare the forms with what a machine counts. They hold for a sketch of more than two rows, at
the levels of :mod:`atoll.secret_matrices.slots.costs`.
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
    vertical: bool = False
    """Islands hold columns of ``n_max`` common rows (the paper's D.2)."""

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
    pieces: tuple[tuple[int, int], ...] = ()
    """Where islands hold columns: the levels there and back of each piece of their rows."""

    def passed(self, levels: Sequence[int]) -> tuple[int, list[int]]:
        """Refreshes on the way of rows that have room, and the levels of what comes out."""
        if not self.pieces:
            return 0, [level - self.taken for level in levels]
        arrived = [[level - there for there, _ in self.pieces] for level in levels]
        due = sum(_due(row, _BETWEEN) for row in arrived)
        rows = [_after(row, _BETWEEN, 0) for row in arrived]
        return due, [
            min(level - back for level, (_, back) in zip(row, self.pieces, strict=True)) for row in rows
        ]


_BETWEEN = 3
"""Levels that R takes once it is added up: a product, and one that is left."""


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


def _alike(s: Sizes) -> tuple[Cost, int]:
    """Copies made the same again, and the level that it takes."""
    copies = max(1, s.slots // period(s.m))
    return (cost(0, s.rho, s.rho * _log2(copies)), 1) if copies > 1 else (cost(), 0)


def _product(s: Sizes, course: Course) -> _Product:
    """P C: by Precomp, or by Seq and back."""
    if course.method == "precomp":
        own, _ = _chosen(s, s.rho, s.m, s.m)
        mean = costs.m4(s.rho, s.m, s.slots) + cost(s.rho * s.wide)
        sent = s.rho * s.wide
        return _Product(mean + _sends(s.providers * sent), own + _sends(sent), 4, 2)
    forth, back, there, home = cost(), cost(), 0, 0
    pieces: list[tuple[int, int]] = []
    for start in range(0, s.n_max, s.slots):
        length = min(s.slots, s.n_max - start)
        (one, down), (other, up) = _chosen(s, s.rho, s.m, length), _chosen(s, s.rho, length, s.m)
        pieces.append((down, up))
        forth += one + cost(0, s.rho)  # the mean is taken off
        back += other
        there, home = (down, up) if not start else (there, min(home, up))
    if s.vertical:
        return _across(s, pieces)
    provider = forth + costs.m4(s.rho, s.m, s.slots) + back + _sends(s.rho * s.wide)
    taken = max(2, there) + home
    return _Product(_sends(s.providers * (s.rho + 1) * s.wide), provider, taken + 1, taken)


def _across(s: Sizes, pieces: Sequence[tuple[int, int]]) -> _Product:
    """R = Xi(P_i A_i^T), and R A_i of all islands side by side; no mean is taken off under encryption."""
    own = cost()
    for start in range(0, s.n_max, s.slots):
        length = min(s.slots, s.n_max - start)
        own += _chosen(s, s.rho, s.m, length)[0] + _chosen(s, s.rho, length, s.m)[0]
    sent = s.rho * (s.wide + len(pieces))
    there, back = pieces[0]
    return _Product(_sends(s.providers * sent), own + _sends(sent), there + back + 1, 0, tuple(pieces))


def _due(levels: Sequence[int], depth: int) -> int:
    """How many rows are refreshed before so many levels."""
    return sum(level - LOWEST < depth for level in levels)


def _after(levels: Sequence[int], depth: int, taken: int) -> list[int]:
    return [(FRESH if level - LOWEST < depth else level) - taken for level in levels]


def _iterations(s: Sizes, course: Course) -> tuple[Cost, Cost, list[int]]:
    """Step 4, and the levels of P after it."""
    product, (alike, level) = _product(s, course), _alike(s)
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
            between, made = product.passed(_after(levels, depth, 0))
            made, refreshes = [one - level for one in made], refreshes + between
            factored = costs.qr(s.rho, s.m, level=made, slots=s.slots)
            here += factored + alike + product.coordinator + cost(0, s.rho * s.wide)
            there += product.provider + cost(refreshes=factored[Operation.REFRESH])
            levels = costs.levels_after_qr(s.rho, s.m)
        here, there = _both(here, there, refreshes)
    return here, there, levels


def steps(s: Sizes, course: Course) -> list[Step]:
    """Steps 2 to 7."""
    four = _iterations(s, course)
    product, (alike, one) = _product(s, course), _alike(s)
    P = _after(four[2], product.depth, 0)
    between, Y = product.passed(P)
    Y = [level - one for level in Y]
    small, level = costs.eigen_and_level(s.rho, s.w, min(*P, *_after(Y, 4, 0)) - 2)
    five = _both(
        product.coordinator
        + alike
        + costs.by_method(Method.M1, s.rho, s.m, s.rho, encrypted=True, slots=s.slots),
        product.provider,
        s.wide * (_due(four[2], product.depth) + _due(Y, 4)) + between,
    )
    level, due = (FRESH, s.psi) if level - LOWEST < 2 else (level, 0)
    last = costs.qr(s.psi, s.m, level=min(level - 1, *_after(Y, 4, 0)) - 1, slots=s.slots)
    turned = costs.by_method(Method.M2, s.psi, s.rho, s.m, encrypted=True, slots=s.slots)
    seven = turned + cost(0, s.psi * s.wide) + last
    refreshed = cost(refreshes=last[Operation.REFRESH])
    ours = (
        ("2", cost(), _sends(s.wide)),
        ("3", cost(), _sends(s.rho * s.wide)),
        ("4", *four[:2]),
        ("5", *five),
        ("6", small, cost(refreshes=small[Operation.REFRESH])),
        ("7", *_both(seven, refreshed, due)),
    )
    paper, why = _papers(s, course), _WHY | (_WHY_ACROSS if s.vertical else {})
    return [Step(name, here, there, paper[name], why[name]) for name, here, there in ours]


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
    pieces = s.rho * ceil(s.n_max / s.slots)
    apart = 3 * pieces if course.qr == "dqr" else pieces if s.vertical else 0
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


_WHY_ACROSS = {
    "2": "One ciphertext from everybody, with zeros for others' columns: an island's own mean stays clear.",
    "3": "The same; a row of the sketch has zeros for others' columns.",
    "4": "The paper prints no count for columns: beside it stands Seq's, R's ciphertexts added. Ours has "
    "no mean to take off; R is added up and refreshed between the two products, and islands multiply whole "
    "rows, zeros for others' columns among them.",
    "5": "As where islands hold rows; R is added up and refreshed on the way.",
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
