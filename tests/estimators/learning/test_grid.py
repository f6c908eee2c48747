"""A part of ``python -m benchmarks.learning_grid``: every model on every table, both splits, few islands.

The number of islands goes round, so that all of them occur; the whole grid takes some minutes.
"""

from __future__ import annotations

import pytest
from benchmarks.learning_grid import BOUNDS, SPLITS, TABLES, measured

CELLS = [
    (model, table, split, list(SPLITS[split])[(3 * i + 5 * j) % len(SPLITS[split])])
    for i, model in enumerate(BOUNDS)
    for j, table in enumerate(TABLES)
    for split in SPLITS
    # Some hundred sums: test_columns.py has that lasso; and some dozen of long ones.
    if (model, split) != ("lasso", "columns") and ((model, split) != ("hinge", "rows") or table == "diabetes")
]


@pytest.mark.parametrize(("model", "table", "split", "islands"), CELLS)
def test_a_model_is_scikit_learns_optimum(model: str, table: str, split: str, islands: int) -> None:
    assert measured(model, table, split, islands) <= BOUNDS[model]


@pytest.mark.parametrize("islands", [4, 7])
def test_a_hinge_stays_where_its_optimum_was_proved(islands: int) -> None:
    """One step more along a direction of mere rounding once led away from there."""
    assert measured("hinge", "diabetes", "columns", islands) <= BOUNDS["hinge"]


def test_every_number_of_islands_occurs() -> None:
    assert {(split, islands) for _, _, split, islands in CELLS} == {
        (split, islands) for split, counts in SPLITS.items() for islands in counts
    }
