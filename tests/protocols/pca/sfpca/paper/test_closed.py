"""Counted operations of each step of Algorithm 1 equal the closed forms, exactly."""

from __future__ import annotations

import pytest

from atoll.protocols.pca.sfpca.paper.algorithm1 import Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.closed import Sizes, steps, table
from atoll.protocols.pca.sfpca.paper.counts import Stretched
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.costs import COUNTED, FRESH, LOWEST
from atoll.secret_matrices.slots.counting import Tallies, tallied
from atoll.secret_matrices.slots.machine import Operation, Slots

SIZES = [
    Sizes(m=5, n_max=60, providers=3, psi=2, rho=3, p=3, w=1),
    Sizes(m=11, n_max=817, providers=6, psi=5, rho=10, p=2, w=1),
    Sizes(p=4, w=2),
    Sizes(m=16, n_max=40, providers=9, psi=1, rho=4, p=2, w=1, slots=256),
    Sizes(m=600, n_max=20, providers=3, psi=2, rho=3, p=2, w=1, slots=256),
    Sizes(m=20_000, n_max=1500, providers=6, psi=2, rho=4, p=2, w=2),
    Sizes(m=520, n_max=40, providers=3, psi=2, rho=5, p=1, w=1, slots=512),
]
COURSES = [Course("precomp", "qr"), Course("seq", "qr"), Course("seq", "dqr")]
KINDS = (*COUNTED, Operation.SEND)


def counted(s: Sizes, course: Course) -> Tallies:
    shape = Shape((s.n_max,) * s.providers, s.m, s.psi, s.rho, s.vertical)
    paper = Algorithm(p=s.p, alpha=s.rho - s.psi, w=s.w)
    plan = Plan(shape, course, paper, Recording(), (0,) * s.rho, Stretched())

    async def run(m: Slots) -> None:
        await principal(m, plan, None)

    return tallied(run, n_providers=s.providers, slots=s.slots, fresh_level=FRESH, lowest=LOWEST)


@pytest.mark.parametrize("course", COURSES, ids=str)
@pytest.mark.parametrize("s", SIZES, ids=lambda s: f"m{s.m}")
def test_every_step(s: Sizes, course: Course) -> None:
    got = counted(s, course)
    for step in steps(s, course):
        for tally, due in ((got.coordinator, step.coordinator), (got.provider, step.provider)):
            found = tally.parts[step.name]
            assert {o: found[o] for o in KINDS} == {o: due[o] for o in KINDS}, step.name


COLUMNS = [
    Sizes(m=5, n_max=120, providers=3, psi=1, rho=3, p=3, w=1, vertical=True),
    Sizes(m=8, n_max=768, providers=3, psi=1, rho=3, p=2, w=2, vertical=True),
    Sizes(m=256, n_max=1024, providers=6, p=2, w=1, vertical=True),
    Sizes(m=16, n_max=700, providers=4, psi=2, rho=5, p=4, w=1, slots=256, vertical=True),
    Sizes(m=600, n_max=40, providers=3, psi=2, rho=4, p=2, w=1, slots=256, vertical=True),
]


@pytest.mark.parametrize("s", COLUMNS, ids=lambda s: f"m{s.m}")
def test_every_step_where_islands_hold_columns(s: Sizes) -> None:
    test_every_step(s, Course("seq", "qr"))
    text = table(steps(s, Course("seq", "qr")))
    assert "R is added up and refreshed between the two products" in text


def test_a_table_has_the_papers_numbers_and_says_why_they_differ() -> None:
    rows = steps(Sizes(), Course("seq", "dqr"))
    text = table(rows).splitlines()
    assert len(text) == 2 + 6
    assert text[2].startswith("| 2 | 0 | 0 | 0 | 0 | 0 | 1 | 1 |")
    # 3 rho more ciphertexts than QR^T for each of ten iterations.
    four = {course: steps(Sizes(), course)[2].paper[2] for course in COURSES}
    assert four[COURSES[2]] - four[COURSES[1]] == 10 * 3 * 8
