"""Every secure sum side by side on the same vectors: seconds and bytes, per island and in total."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll import fixedpoint, randomness, secure_sums
from atoll.data.island import Island
from atoll.errors import MissingComponent, ParameterError
from atoll.estimators.base import parties
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study
from atoll.runtime.transcript import Transcript
from atoll.study.model import Study


def forms() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Every method under the options that it says are worth measuring."""
    return tuple((name, options) for name, kind in secure_sums.METHODS.items() for options in kind.measured)


class Row(NamedTuple):
    """One method's figures; ``note`` says why there are none."""

    method: str
    seconds: float
    key_seconds: float
    island_seconds: float
    island_bytes: int
    total_bytes: int
    exact: bool
    note: str = ""


def bench_sums(
    n_values: int, n_islands: int, chosen: Sequence[tuple[str, Mapping[str, Any]]] | None = None
) -> list[Row]:
    """One run of each form on the same vectors."""
    islands = {f"island-{i}": Island(_vector(n_values, i), name=f"island-{i}") for i in range(n_islands)}
    return [_one(method, options, islands, n_values) for method, options in chosen or forms()]


def _vector(n_values: int, island: int) -> np.ndarray[Any, Any]:
    """Numbers of either sign and many sizes, the same in every run."""
    words = randomness.expand_words(bytes(32), n_values, "atoll/bench/sums", island)
    signed = words.astype(np.int64).astype(np.float64)
    return (signed * 2.0 ** (np.arange(n_values) % 40 - 80)).reshape(1, -1)


def _one(method: str, options: Mapping[str, Any], islands: dict[str, Island], n_values: int) -> Row:
    study = Study(
        name="bench",
        analysis="sum",
        protocol="sum",
        secure_sum=method,
        sum_options=options,
        parties=parties(islands, "contributor", "receiver"),
        parameters={"length": n_values},
        release={"total": ("receiver",)},
    )
    name = f"{method} {' '.join(f'{k}={v}' for k, v in options.items())}".strip()
    try:
        kind = secure_sums.chosen(study)
        kind.check(len(islands), secure_sums.options(study))
    except ParameterError as few:
        return Row(name, np.nan, np.nan, np.nan, 0, 0, True, few.message)
    try:
        started = time.perf_counter()
        result = run_study(study, owned(islands)).result
        took = time.perf_counter() - started
    except MissingComponent as missing:
        return Row(name, np.nan, np.nan, np.nan, 0, 0, True, missing.message)
    return _row(name, took, result.transcript, result["total"], islands, kind.key_steps)


def _row(
    name: str,
    took: float,
    transcript: Transcript,
    total: np.ndarray[Any, Any],
    islands: dict[str, Island],
    key_steps: frozenset[str],
) -> Row:
    costs = [cost for role, cost in transcript.roles.items() if role.endswith("/contributor")]
    steps = [step for cost in transcript.roles.values() for step in cost.seconds.items()]
    keys = sum(seconds for step, seconds in steps if step in key_steps)
    expected = fixedpoint.Accumulator(total.size)
    for island in islands.values():
        expected.add(fixedpoint.encode(island.features(island.columns)))
    return Row(
        name,
        took,
        keys,
        max(cost.step_seconds for cost in costs),
        max(cost.bytes_sent for cost in costs),
        transcript.bytes,
        bool(np.array_equal(total, fixedpoint.decode(expected.total()))),
    )
