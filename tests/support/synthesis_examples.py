"""One small study for each synthesizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from tests.support.example_tables import Example, cut_frame

from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.study.model import Study

SCHEMA: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "low": 18, "high": 90, "edges": [40, 65]},
    {"name": "sex", "kind": "category", "levels": ["F", "M"]},
    {"name": "weight", "kind": "number", "low": 40.0, "high": 140.0},
    {"name": "ill", "kind": "boolean"},
]


def people(rows: int = 60, seed: int = 5) -> pd.DataFrame:
    """Older people are ill more often, and men are heavier."""
    rng = np.random.default_rng(seed)
    age, man = rng.integers(18, 91, rows), rng.random(rows) < 0.5
    return pd.DataFrame(
        {
            "age": age,
            "sex": np.where(man, "M", "F"),
            "weight": np.clip(rng.normal(65 + 15 * man, 9), 40.0, 140.0),
            "ill": rng.random(rows) < age / 100,
        }
    )


def synthesis(
    protocol: str = "ppca-synthesis",
    secure_sum: str = "shares",
    sum_options: dict[str, Any] | None = None,
    rows: int = 60,
    **parameters: Any,
) -> Example:
    islands = as_islands({f"hospital-{i}": part for i, part in enumerate(cut_frame(people(rows), 3))})
    study = Study(
        name="example",
        analysis="synthesis",
        protocol=protocol,
        secure_sum=secure_sum,
        sum_options=sum_options or {},
        parties=parties(islands, "owner", "curator"),
        parameters={"epsilon": 5.0, "delta": 1e-5, "schema": SCHEMA, "bins": 4, **parameters},
        release={"model": ("owner", "curator"), "moments": ("curator",)},
    )
    return Example(study, islands)


def published() -> Example:
    """The paper's own form, which takes an epsilon and nothing else of privacy."""
    example = synthesis()
    stated = {"epsilon": 5.0, "schema": SCHEMA, "bins": 4}
    release = {"rows": ("owner", "curator")}
    study = structs.replace(example.study, protocol="ppca-dp-mh", parameters=stated, release=release)
    return Example(study, example.islands)
