"""Messages, rounds and bytes of every kind of learning study: those that ``atoll review`` predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.support.examples import Example, description, learning, learning_columns

from atoll.data.island import as_islands
from atoll.protocols import protocol_of
from atoll.protocols.base import Circumstances
from atoll.runtime.execute import run_study

NAMES = [f"c{j}" for j in range(8)]


def frame(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(9)
    table = pd.DataFrame(rng.normal(size=(rows, 8)), columns=NAMES)
    table["stay"] = table @ np.linspace(-1, 1, 8) + rng.normal(size=rows)
    table["outcome"] = np.where(table["stay"] + rng.normal(size=rows) > 0, "ill", "well")
    return table


def by_rows(example: Example, columns: list[str] = NAMES) -> Example:
    """The same study of a larger table: what frames weigh is little beside it."""
    table, names = frame(), list(example.islands)
    cuts = dict(zip(names, np.array_split(np.arange(len(table)), len(names)), strict=True))
    said = {**example.study.parameters, "columns": tuple(columns)}
    islands = as_islands({name: table.iloc[part] for name, part in cuts.items()})
    return Example(structs.replace(example.study, parameters=said), islands)


def by_columns(protocol: str, **parameters: Any) -> Example:
    example = learning_columns(protocol, **parameters)
    table, names = frame(), list(example.islands)
    target = example.study.parameters.get("target")
    parts = {
        name: table[[NAMES[j] for j in part] + ([target] if target else [])]
        for name, part in zip(names, np.array_split(np.arange(8), len(names)), strict=True)
    }
    return Example(example.study, as_islands(parts))


def described() -> Example:
    example = by_rows(description(), [*NAMES, "outcome"])
    said = {**example.study.parameters, "ranges": {"c0": (-5.0, 5.0)}, "bins": 400}
    return Example(structs.replace(example.study, parameters=said), example.islands)


CASES: dict[str, Callable[[], Example]] = {
    "glm": lambda: by_rows(learning("glm")),
    "glm, binomial": lambda: by_rows(learning("glm", "masks")),
    "least squares": lambda: by_rows(learning("least-squares")),
    "lasso": lambda: by_rows(learning("least-squares", penalty="l1", alpha=0.1)),
    "logistic": lambda: by_rows(learning("classifier")),
    "squared hinge": lambda: by_rows(learning("classifier", "lattice", loss="squared_hinge")),
    "hinge": lambda: by_rows(learning("classifier", loss="hinge")),
    "k-means": lambda: by_rows(learning("kmeans", n_clusters=3)),
    "describe": described,
    "descent": lambda: by_rows(learning("gradient-descent", learning_rate=0.01, max_iter=6)),
    "least squares, columns": lambda: by_columns("least-squares-columns"),
    "lasso, columns": lambda: by_columns("least-squares-columns", penalty="l1", alpha=0.5, tol=1e-6),
    "logistic, columns": lambda: by_columns("classifier-columns"),
    "squared hinge, columns": lambda: by_columns("classifier-columns", loss="squared_hinge"),
    "hinge, columns": lambda: by_columns("classifier-columns", loss="hinge"),
    "k-means, columns": lambda: by_columns("kmeans-columns", n_clusters=3),
    "descent, columns": lambda: by_columns("gradient-descent", learning_rate=0.01, max_iter=5),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_costs_what_review_predicts(case: str) -> None:
    example = CASES[case]()
    protocol, study = protocol_of(example.study.protocol), example.study
    spent = run_study(study, example.own).result.transcript
    target = study.parameters.get("target")
    columns = study.parameters.get("columns") or {
        name for island in example.islands.values() for name in island.columns if name != target
    }
    at = Circumstances(len(columns), tuple(island.n_rows for island in example.islands.values()))
    expected = protocol.counted(study, at, 0) if protocol.counted else protocol.expect(study, at.columns)
    messages, rounds, total = expected.messages, expected.rounds, expected.bytes_total
    if spent.messages != messages:  # as many steps more, or fewer
        assert protocol.further is not None
        step = _step(protocol, study, at)
        more, left = divmod(spent.messages - messages, step.messages)
        assert left == 0
        messages, rounds = messages + more * step.messages, rounds + more * step.rounds
        total += more * step.bytes_total
    assert spent.messages == messages
    assert spent.rounds == rounds
    assert total == pytest.approx(spent.bytes, rel=0.05)


def _step(protocol: Any, study: Any, at: Circumstances) -> Any:
    if protocol.counted is None:
        return protocol.further(study, at.columns)
    usual, longer = (protocol.counted(study, at, more) for more in (0, 1))
    return type(usual)(*(b - a for a, b in zip(usual, longer, strict=True)))
