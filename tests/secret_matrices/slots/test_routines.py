"""The paper's routines: against NumPy in the clear, and encrypted against their clear twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.slot_routines import (
    by_method,
    by_one_vector,
    by_transpose,
    decomposed,
    factorised,
    factorised_apart,
    inputs,
    learned,
    one_after_another,
    parts,
    reflector,
    squares,
    symmetric,
)
from tests.support.slot_runs import INSECURE, clear, encrypted, provider

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.approximations import agreed
from atoll.secret_matrices.slots.products import Method, choose, period, repeated

SIZES = [(2, 3, 5), (3, 8, 8), (4, 11, 6)]
PAPER = "paper-14"


def matrices(*shapes: tuple[int, int], seed: int = 1) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) * 0.3 for shape in shapes]


def found(program: Any, given: Any) -> np.ndarray[Any, Any]:
    return np.array(clear(program, given).results[provider(0)])


# ---- in the clear, against NumPy ----


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize(("a", "b", "c"), SIZES)
def test_an_encrypted_matrix_times_the_providers_own(method: Method, a: int, b: int, c: int) -> None:
    M, N = matrices((a, b), (b, c))
    np.testing.assert_allclose(found(by_method(method, a, b, c), inputs(M, N)), M @ N, atol=1e-12)


@pytest.mark.parametrize(("a", "b", "c"), SIZES)
def test_a_matrix_times_its_transpose_and_times_one_vector(a: int, b: int, c: int) -> None:
    M, mu = matrices((a, b), (1, b))
    np.testing.assert_allclose(found(by_transpose(a, b), inputs(M)), M @ M.T, atol=1e-12)
    np.testing.assert_allclose(
        found(by_one_vector(1, a, b), inputs(M, mu)), M @ np.repeat(mu, b, axis=0), atol=1e-12
    )
    np.testing.assert_allclose(
        found(by_one_vector(2, a, b), inputs(M, mu)), M @ np.repeat(mu.T, b, axis=1), atol=1e-12
    )


@pytest.mark.parametrize("size", [2, 5, 8])
def test_a_product_of_small_matrices(size: int) -> None:
    A, B = matrices((size, size), (size, size))
    np.testing.assert_allclose(found(squares(size), inputs(A, B)), A @ B, atol=1e-12)


@pytest.mark.parametrize(("length", "at"), [(5, 0), (8, 3), (11, 9)])
def test_a_householder_vector_makes_all_but_one_coordinate_nothing(length: int, at: int) -> None:
    (v,) = matrices((1, length), seed=length)
    v[0, :at] = 0.0
    given = inputs(v)
    use = learned(lambda use: reflector(length, at, use), given, clear)
    [u] = found(reflector(length, at, use), given)
    assert u @ u == pytest.approx(1.0, abs=1e-9)
    reflected = v[0] - 2 * (v[0] @ u) * u
    assert abs(reflected[at]) == pytest.approx(np.linalg.norm(v), rel=1e-6)
    np.testing.assert_allclose(np.delete(reflected, at), 0.0, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 2e-4])
def test_a_row_is_reflected_however_much_shorter_it_is_than_was_agreed(size: float) -> None:
    """Down to nothing: what comes of it is of length one, and differs from no copy in the slots."""
    use = agreed({"length": (2.0**-40, 2.0**-24), "sign": (0.0, 1.0)})
    row = np.random.default_rng(4).normal(size=(1, 6)) * size
    ran = clear(reflector(6, 1, use), inputs(row), noise=1e-7)
    [u] = ran.results[provider(0)]
    assert u @ u == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("rows", "length"), [(2, 8), (4, 11), (5, 5)])
def test_rows_are_factorised(rows: int, length: int) -> None:
    (V,) = matrices((rows, length))
    given = inputs(V)
    use = learned(lambda use: factorised(rows, length, use), given, clear)
    both = found(factorised(rows, length, use), given)
    Q, R = both[:rows], both[rows:, :rows]
    np.testing.assert_allclose(Q @ Q.T, np.eye(rows), atol=1e-8)
    np.testing.assert_allclose(R @ Q, V, atol=1e-6)
    np.testing.assert_allclose(np.triu(R, 1), 0.0, atol=1e-6)


@pytest.mark.parametrize(("rows", "lengths"), [(2, (4, 4, 3)), (4, (5, 9, 16))])
def test_rows_are_factorised_where_every_provider_has_its_own_columns(
    rows: int, lengths: tuple[int, ...]
) -> None:
    (V,) = matrices((rows, sum(lengths)))
    given = [None, *enumerate(np.split(V, np.cumsum(lengths)[:-1], axis=1))]
    longest = max(lengths)
    use = learned(lambda use: factorised_apart(rows, longest, use), given, clear)
    results = clear(factorised_apart(rows, longest, use), given).results
    Q = np.hstack([np.array(results[provider(i)])[:, :n] for i, n in enumerate(lengths)])
    np.testing.assert_allclose(Q @ Q.T, np.eye(rows), atol=1e-8)
    np.testing.assert_allclose(V @ Q.T @ Q, V, atol=1e-6)
    np.testing.assert_allclose(np.triu(V @ Q.T, 1), 0.0, atol=1e-6)


@pytest.mark.parametrize(("size", "w"), [(2, 4), (3, 6), (6, 6)])
def test_eigenvectors(size: int, w: int) -> None:
    M = symmetric(size)
    given = inputs(M)
    use = learned(lambda use: decomposed(size, w, use), given, clear)
    both = found(decomposed(size, w, use), given)
    Q, values = both[:size], both[size]
    np.testing.assert_allclose(Q @ Q.T, np.eye(size), atol=1e-7)
    np.testing.assert_allclose(Q @ M @ Q.T, np.diag(values), atol=1e-5)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(M), atol=1e-6)


def test_rows_that_do_not_fit_a_ciphertext_are_refused() -> None:
    assert period(9) == 16
    with pytest.raises(ParameterError, match="a row of 9 numbers does not fit the 8 slots"):
        repeated(np.zeros(9), 8)


def test_the_cheapest_method_is_taken_and_all_prices_are_told() -> None:
    choice = choose(8, 256, 256)
    assert choice.method is Method.M3
    assert str(choice).startswith("8 x 256 x 256: M3 (M1 ")
    assert choose(8, 256, 1).method is Method.M1  # one dot product a row


# ---- encrypted, at the paper's parameters, against the clear twin ----


def every_routine() -> list[tuple[str, Any, list[Any]]]:
    """The least sizes that meet every line: name, program, and the inputs of all."""
    M, N, mu, A, B = matrices((1, 2), (2, 3), (1, 2), (2, 2), (2, 2))
    row, V, apart = matrices((1, 3), (2, 3), (2, 9), seed=2)
    out: list[tuple[str, Any, list[Any]]] = [
        (method.name, by_method(method, 1, 2, 3), inputs(M, N)) for method in Method
    ]
    out.append(("X X^T", by_transpose(1, 2), inputs(M)))
    out += [(f"M4, case {case}", by_one_vector(case, 1, 2), inputs(M, mu)) for case in (1, 2)]
    out.append(("M5", squares(2), inputs(A, B)))
    for name, make, given in (
        ("Householder", lambda use: reflector(3, 0, use), inputs(row)),
        ("QR^T", lambda use: factorised(2, 3, use), inputs(V)),
        ("DQR^T", lambda use: factorised_apart(2, 3, use), [None, *enumerate(np.split(apart, 3, axis=1))]),
        ("Eigen", lambda use: decomposed(2, 1, use), inputs(symmetric(2))),
    ):
        out.append((name, make(learned(make, given, clear)), given))
    return out


def compare(routines: list[tuple[str, Any, list[Any]]], *, set_name: str, within: float) -> None:
    names, programs, given = zip(*routines, strict=True)
    everybodys = [None, *(tuple(one[1 + i] for one in given) for i in range(3))]
    program = one_after_another(*programs)
    secret = encrypted(program, everybodys, set_name=set_name)
    twin = clear(program, everybodys, set_name=set_name)
    for name, got, due in zip(names, secret.results[provider(0)], twin.results[provider(0)], strict=True):
        np.testing.assert_allclose(got, due, atol=within, err_msg=name)
    for role, tally in twin.tallies.items():
        assert secret.tallies[role].total == tally.total


def test_every_routine_encrypted_finds_and_counts_what_its_twin_does() -> None:
    compare(every_routine(), set_name=INSECURE, within=2e-5)


def test_products_and_reflections_at_the_papers_parameters() -> None:
    """QR^T, DQR^T and Eigen too, in benchmarks/sfpca_paper_routines.py: they take a minute."""
    wanted = {"M3", "M4, case 2", "M5", "Householder"}
    compare([one for one in every_routine() if one[0] in wanted], set_name=PAPER, within=1e-4)


def test_parts_add_up() -> None:
    (M,) = matrices((2, 3))
    np.testing.assert_allclose(sum(parts(M)), M, atol=1e-12)
