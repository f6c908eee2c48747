"""Who is whose neighbour among many: everybody's of everybody, or a sparse graph that stays connected.

Masks are agreed on between neighbours, and neighbours compare what a receiver told each of them.

The sparse graph of masks is that of Bell et al., Secure Single-Server Aggregation with (Poly)Logarithmic
Overhead (2020): all stand on a ring in a random order (``drawn_graph`` says who draws it), and each has k
neighbours, the k/2 next on either side. Colluders are whoever they are before the order is drawn. What must
not happen, except with probability 2^-40 (:func:`failure`):

* *The honest fall apart*, or two parts of them believe two lists of who stayed. Where one part ends and
  another begins, no honest contributor sees more than ``missing`` neighbours that are not of its mind, or it
  stops. So the k/2 places before that point have at most 2 ``missing`` honest ones. There are two such
  points, whose places do not overlap (k is at most n/2): k places with at most 4 ``missing`` honest ones.
* *Colluding neighbours open a backup* of one contributor: k - ``missing`` of its k neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import count
from math import comb
from typing import NamedTuple

from atoll.errors import ParameterError

MAX_NEIGHBOURS = 100
FULL_UP_TO = 100
"""So many contributors are all neighbours of each other, unless the study asks for a sparse graph."""
FAILURE = Fraction(1, 2**40)
INTERRUPTION = Fraction(1, 2**20)
"""The chance that contributors who leave at random, no more than may, are too many around one of them."""


def neighbours(index: int, n: int) -> list[int]:
    """A circulant graph in which each of n has up to 100 neighbours: no 99 of them disconnect it."""
    reach = MAX_NEIGHBOURS // 2
    if n - 1 <= MAX_NEIGHBOURS:
        return [other for other in range(n) if other != index]
    return sorted((index + step) % n for step in range(-reach, reach + 1) if step)


class Degree(NamedTuple):
    """How many neighbours each contributor has, and how many of them it may miss."""

    neighbours: int
    missing: int
    sparse: bool


def on_ring(order: Sequence[int], degree: int) -> list[list[int]]:
    """Everybody's neighbours: the ``degree`` nearest on the ring, half of them on either side."""
    n, reach = len(order), degree // 2
    near: list[list[int]] = [[] for _ in order]
    for place, index in enumerate(order):
        steps = (step for step in range(-reach, reach + 1) if step)
        near[index] = sorted(order[(place + step) % n] for step in steps)
    return near


# ---- how many neighbours are enough ----


def at_least(bad: int, *, population: int, marked: int, drawn: int) -> Fraction:
    """The chance that of ``drawn`` members of a population ``bad`` or more are marked; exact."""
    if bad <= 0:
        return Fraction(1)
    most = min(marked, drawn)
    ways = sum(comb(marked, j) * comb(population - marked, drawn - j) for j in range(bad, most + 1))
    return Fraction(ways, comb(population, drawn))


def missing(n: int, dropouts: int, degree: int) -> int:
    """How many neighbours each must be able to do without, when so many contributors leave at random."""
    for bearable in count():
        more = at_least(bearable + 1, population=n - 1, marked=dropouts, drawn=degree)
        if bearable >= dropouts or n * more <= INTERRUPTION:
            return bearable
    raise AssertionError


def failure(n: int, colluders: int, dropouts: int, degree: int) -> Fraction:
    """A bound on the chance that so many colluders, and a receiver that lies, learn more than the sum."""
    without = missing(n, dropouts, degree)
    apart = comb(n, 2) * at_least(degree - 4 * without, population=n, marked=colluders, drawn=degree)
    if not dropouts:
        return apart
    opened = n * at_least(degree - without, population=n - 1, marked=colluders, drawn=degree)
    return apart + opened


@cache
def enough(n: int, colluders: int, dropouts: int) -> int | None:
    """The fewest neighbours that are enough; None where a sparse graph needs more than half of all."""
    for degree in range(2, n // 2 + 1, 2):
        if failure(n, colluders, dropouts, degree) <= FAILURE:
            return degree
    return None


def colluders_of(n: int, asked: int | None) -> int:
    """How many colluders a sparse graph withstands: as many as asked for, or a third."""
    return n // 3 if asked is None else asked


@cache
def degree_of(
    n: int, dropouts: int, graph: str, colluders: int | None = None, asked: int | None = None
) -> Degree:
    """The degree that a study's options mean; an error where a sparse graph is asked for that is too thin."""
    full = Degree(n - 1, dropouts, False)
    if asked is not None and graph != "sparse":
        raise ParameterError(
            "neighbours are for a sparse graph", hint='graph = "sparse", or leave it out', option="neighbours"
        )
    if graph == "full" or (graph == "auto" and n <= FULL_UP_TO):
        return full
    bad = colluders_of(n, colluders)
    least = enough(n, bad, dropouts)
    if least is None:
        if graph == "auto":
            return full
        raise ParameterError(
            f"a sparse graph of {n} contributors withstands no {bad} colluders and {dropouts} dropouts",
            hint='graph = "full" does, at the cost of more messages; or name fewer of either',
            option="graph",
        )
    degree = least if asked is None else asked
    if degree % 2 or degree > n // 2 or failure(n, bad, dropouts, degree) > FAILURE:
        raise ParameterError(
            f"{degree} neighbours are not enough, or too many, for {n} contributors of whom {bad} collude",
            hint=f"take an even number from {least} to {n // 2}, or leave it out",
            option="neighbours",
        )
    return Degree(degree, missing(n, dropouts, degree), True)
