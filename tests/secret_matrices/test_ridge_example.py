"""The worked example of docs/howto/write-a-secret-matrix-program.md: what the page shows runs here."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from atoll.errors import RangeOverflow
from atoll.secret_matrices.costs.counted import Counted
from atoll.secret_matrices.simulated import Simulated

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-secret-matrix-program.md"
PRECISION = 1e-9


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Everything that the page's code leaves behind: simulated, counted and really encrypted."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), namespace)
    return namespace


def fitted(page: dict[str, Any]) -> np.ndarray:
    model = Ridge(alpha=page["problem"].penalty, fit_intercept=False, solver="cholesky")
    return np.asarray(model.fit(page["X"], page["y"]).coef_)


def test_the_simulated_machine_finds_scikit_learns_ridge(page: dict[str, Any]) -> None:
    np.testing.assert_allclose(page["found"][:, 0], fitted(page), atol=PRECISION)


def test_three_parties_find_it_under_encryption(page: dict[str, Any]) -> None:
    providers = [f"hospital{i}/provider" for i in range(3)]
    assert set(page["learned"]) == {*providers, "university/coordinator"}
    for name in providers:
        np.testing.assert_allclose(page["learned"][name][:, 0], fitted(page), atol=PRECISION)
        np.testing.assert_array_equal(page["learned"][name], page["learned"][providers[0]])
    assert page["learned"]["university/coordinator"] is None


def test_its_cost_is_counted(page: dict[str, Any]) -> None:
    counted, transcript = page["counted"], page["outcome"].transcript
    assert counted.messages == transcript.messages
    assert counted.depth == transcript.rounds
    assert sum(counted.sent.values()) + counted.coordinator_bytes == pytest.approx(transcript.bytes, rel=0.01)
    assert 0 < counted.costing.effort.providers.max() < 60


def test_a_bound_that_does_not_hold_is_found_in_simulation(page: dict[str, Any]) -> None:
    larger = page["together"]._replace(gram=60 * page["together"].gram)  # of more rows than was said
    machine = Simulated(3, np.random.default_rng(0).random)
    with pytest.raises(RangeOverflow, match=r"beyond its bound of 2\^"):
        asyncio.run(page["ridge"](machine, larger, page["problem"], frozenset()))


@pytest.mark.parametrize("parties", [2, 6])
def test_the_count_follows_the_number_of_parties(page: dict[str, Any], parties: int) -> None:
    machine = Counted([f"p{i}/provider" for i in range(parties)])
    asyncio.run(page["ridge"](machine, None, page["problem"], frozenset()))
    assert machine.messages > 0
    assert machine.depth <= page["counted"].depth
