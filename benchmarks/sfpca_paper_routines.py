"""The SF-PCA paper's routines alone, under encryption, each against its clear twin.

    python -m benchmarks.sfpca_paper_routines [--only M3 QR] [--small] [--providers 3]

At the paper's ring (N = 2^14). For each routine: the largest difference from the twin on plain numbers, the
operations counted at coordinator and first provider beside the closed form, and the processor's seconds, of
all roles on this machine together and without those that making keys takes. Sizes are those of the paper's
table 2 where that is a matter of minutes; M1 and M2 are the size of ``--small`` always.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.support import paper_runs
from tests.support import slot_routines as routines
from tests.support.slot_runs import clear, encrypted, provider

from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.secret_matrices.slots import costs
from atoll.secret_matrices.slots.machine import Slots
from atoll.secret_matrices.slots.products import Method

PAPER = "paper-14"
WITHIN = 1e-4


@dataclass(frozen=True)
class Case:
    """A routine at one size: its program, the inputs of all roles, and what it should cost."""

    name: str
    program: Callable[[], routines.Routine]
    """Made when it is wanted: intervals take a run in the clear."""
    inputs: list[Any]
    due: costs.Cost | None


def cases(small: bool, providers: int) -> list[Case]:
    """Every routine."""
    rng = np.random.default_rng(1)
    a, b, c = (2, 6, 11) if small else (8, 256, 256)
    size = 3 if small else 8
    few = rng.normal(size=(2, 6)) * 0.3, rng.normal(size=(6, 11)) * 0.3
    M, N = rng.normal(size=(a, b)) / np.sqrt(b), rng.normal(size=(b, c)) / np.sqrt(b)
    squares = list(rng.normal(size=(2, size, size)) / np.sqrt(size))

    def given(*wholes: Any) -> list[Any]:
        return routines.inputs(*wholes, providers=providers)

    def product(kind: Method, x: Any, y: Any) -> Case:
        shape = (*x.shape, y.shape[1])
        name = f"{kind.name} {shape[0]} x {shape[1]} x {shape[2]}"
        program = routines.by_method(kind, *shape)
        return Case(name, lambda: program, given(x, y), costs.by_method(kind, *shape))

    out = [product(Method.M1, *few), product(Method.M2, *few), product(Method.M3, M, N)]
    transposed = costs.by_method(Method.M1, a, b, a, encrypted=True)
    out.append(Case(f"X X^T {a} x {b}", lambda: routines.by_transpose(a, b), given(M), transposed))
    for case in (1, 2):
        one = routines.by_one_vector(case, a, b)
        out.append(Case(f"M4.{case} {a} x {b}", lambda one=one: one, given(M, M[:1]), costs.m4(a, b)))  # type: ignore[misc]
    out.append(Case(f"M5 {size} x {size}", lambda: routines.squares(size), given(*squares), costs.m5(size)))
    unit = M[:1] / np.linalg.norm(M[0])
    out.append(_learned(f"Householder {b}", lambda use: routines.reflector(b, 0, use), given(unit), None))
    out.append(
        _learned(f"QR {a} x {b}", lambda use: routines.factorised(a, b, use), given(M), costs.qr(a, b))
    )
    out.append(
        _learned(
            f"QR {size} x {size}",
            lambda use: routines.factorised(size, size, use),
            given(squares[0]),
            costs.qr(size, size),
        )
    )
    apart = [None, *enumerate(np.split(rng.normal(size=(a, b * providers)) / np.sqrt(b), providers, axis=1))]
    out.append(_learned(f"DQR {a} x {b}", lambda use: routines.factorised_apart(a, b, use), apart, None))
    Z = routines.symmetric(size)
    w = 2 if small else 1
    eigen = lambda use: routines.decomposed(size, w, use)  # noqa: E731
    out.append(_learned(f"Eigen {size} x {size}, w = {w}", eigen, given(Z), costs.eigen(size, w)))
    wide = rng.normal(size=(2, 10_000)) / 100
    wide_m4, row = routines.by_one_vector(2, 2, 10_000), wide[:1] / np.linalg.norm(wide[0])
    out.append(Case("M4.2 2 x 10000, wide", lambda: wide_m4, given(wide, wide[:1]), costs.m4(2, 10_000)))
    due = costs.householder(10_000, fresh=True)
    out.append(
        _learned(
            "Householder 10000, wide", lambda use: routines.reflector(10_000, 9_000, use), given(row), due
        )
    )
    return out + list(_wholes(providers))


def _wholes(providers: int) -> Iterator[Case]:
    """Steps 2 to 7 of Algorithm 1 and the certificate, on a small table."""
    X, paper = paper_runs.table(40 * providers), Algorithm(p=2, alpha=1, w=1)
    parts = np.array_split(X, providers)
    for course in (Course("precomp", "qr"), Course("seq", "qr"), Course("seq", "dqr")):
        intervals = paper_runs.agreed_intervals(parts, 1, paper, course.method, course.qr)
        plan, given = paper_runs.planned(parts, 1, paper, intervals, course)
        name = f"Algorithm 1, {course.method}, {course.qr}"
        yield Case(name, lambda plan=plan: paper_runs.whole(plan), given, None)  # type: ignore[misc]


def _learned(
    name: str, make: Callable[[Any], routines.Routine], given: list[Any], due: costs.Cost | None
) -> Case:
    return Case(name, lambda: make(routines.learned(make, given, _twin)), given, due)


def _twin(program: routines.Routine, given: list[Any]) -> Any:
    return clear(program, given, set_name=PAPER)


async def nothing(m: Slots, own: Any) -> None:
    """Keys only."""


def timed(program: Any, given: list[Any]) -> tuple[Any, float, float]:
    """A run, with the processor's seconds and the wall's."""
    cpu, wall = time.process_time(), time.perf_counter()
    ran = encrypted(program, given, set_name=PAPER)
    return ran, time.process_time() - cpu, time.perf_counter() - wall


def run(case: Case, keys: float) -> bool:
    """Print one routine's line; whether it is as it should be."""
    program = case.program()
    ran, cpu, wall = timed(program, case.inputs)
    twin = _twin(program, case.inputs)
    found, due = ran.results[provider(0)], twin.results[provider(0)]
    error = max(float(np.abs(x - y).max()) for x, y in zip(found, due, strict=True))
    same = all(ran.tallies[role].total == tally.total for role, tally in twin.tallies.items())
    parts = [ran.tallies[role].parts["routine"] for role in ("hub/coordinator", provider(0))]
    counted = {kind: max(part[kind] for part in parts) for kind in costs.COUNTED}
    exact = case.due is None or all(counted[kind] == case.due[kind] for kind in costs.COUNTED)
    counts = ", ".join(f"{count:,} {kind.value}" for kind, count in counted.items())
    right = error <= WITHIN and same and exact
    print(
        f"{case.name:24} error {error:.1e}  {cpu - keys:7.1f} s CPU, {wall:6.1f} s wall  {counts}"
        f"{'' if right else '   NOT AS IT SHOULD BE'}",
        flush=True,
    )
    return right


def main() -> None:
    """Run the routines asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="words of the names")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--providers", type=int, default=3)
    options = parser.parse_args()
    wanted = [
        case
        for case in cases(options.small, options.providers)
        if not options.only or any(word in case.name for word in options.only)
    ]
    _, keys, wall = timed(nothing, [None] * (options.providers + 1))
    print(f"keys of {options.providers} providers: {keys:.1f} s CPU, {wall:.1f} s wall")
    right = [run(case, keys) for case in wanted]
    if not all(right):
        sys.exit(1)


if __name__ == "__main__":
    main()
