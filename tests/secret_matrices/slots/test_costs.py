"""Counted operations equal the closed forms, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.slot_routines import (
    by_method,
    by_one_vector,
    by_transpose,
    counted,
    decomposed,
    factorised,
    factorised_apart,
    reflector,
    squares,
)

from atoll.secret_matrices.slots import costs
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.machine import Operation
from atoll.secret_matrices.slots.products import Method, choose

PRODUCTS = [(2, 3, 5), (8, 256, 256), (5, 11, 40)]
USE = Recording()


def assert_counts(program: Any, *shapes: tuple[int, int], due: costs.Cost) -> None:
    got = counted(program, *shapes)
    assert {o: got.routine(o) for o in costs.COUNTED} == {o: due[o] for o in costs.COUNTED}


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize(("a", "b", "c"), PRODUCTS)
def test_products(method: Method, a: int, b: int, c: int) -> None:
    assert_counts(by_method(method, a, b, c), (a, b), (b, c), due=costs.by_method(method, a, b, c))


@pytest.mark.parametrize(("a", "b", "c"), PRODUCTS)
def test_encrypted_factors(a: int, b: int, c: int) -> None:
    assert_counts(by_transpose(a, b), (a, b), due=costs.by_method(Method.M1, a, b, a, encrypted=True))
    for case in (1, 2):
        assert_counts(by_one_vector(case, a, b), (a, b), (1, b), due=costs.m4(a, b))


@pytest.mark.parametrize("size", [2, 5, 8, 16])
def test_small_matrices(size: int) -> None:
    assert_counts(squares(size), (size, size), (size, size), due=costs.m5(size))


@pytest.mark.parametrize("length", [5, 8, 300])
def test_householder(length: int) -> None:
    assert_counts(reflector(length, 0, USE), (1, length), due=costs.householder(length))


@pytest.mark.parametrize(("rows", "length"), [(2, 8), (8, 256), (5, 5), (10, 11)])
def test_qr(rows: int, length: int) -> None:
    assert_counts(factorised(rows, length, USE), (rows, length), due=costs.qr(rows, length))


@pytest.mark.parametrize(("rows", "length"), [(2, 8), (8, 256), (5, 11)])
def test_dqr(rows: int, length: int) -> None:
    got = counted(factorised_apart(rows, length, USE), (rows, length), apart=True)
    for tally, due in zip((got.coordinator, got.provider), costs.dqr(rows, length, 3, 8192), strict=True):
        found = tally.parts["routine"]
        kinds = (*costs.COUNTED, Operation.SEND)
        assert {o: found[o] for o in kinds} == {o: due[o] for o in kinds}


@pytest.mark.parametrize(("size", "w"), [(2, 5), (3, 2), (5, 3), (8, 5), (10, 1)])
def test_eigen(size: int, w: int) -> None:
    assert_counts(decomposed(size, w, USE), (size, size), due=costs.eigen(size, w))


def test_the_choice_is_made_by_these_counts() -> None:
    """A product by M3 is priced as what it does."""
    choice = choose(8, 256, 256)
    due = costs.by_method(Method.M3, 8, 256, 256)
    assert choice.costs[Method.M3] == pytest.approx(due[costs.COUNTED[1]] * 1.0 + due[costs.COUNTED[2]] * 6.2)


def test_a_table_says_why_counts_differ() -> None:
    rows = costs.formulas()
    text = costs.table(rows)
    assert len(text.splitlines()) == 2 + len(rows)
    assert "| M3 | 8 x 256 x 256 | 0 | 2,048 | 2,048 | 240 | 257 | 0 | 0 |" in text
    for row in rows:
        assert len(row.difference) > 40
