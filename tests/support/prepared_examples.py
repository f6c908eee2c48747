"""Studies whose tables are prepared first: categories, missing values, flat columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from tests.support.example_tables import Example, cut_frame

from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.study.model import Study, TablePlan


def wards(rows: int = 60, seed: int = 3) -> pd.DataFrame:
    """Numbers and categories with holes, a constant, an empty column and a label; four numbers in all."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": draw.normal(50.0, 10.0, rows),
            "dose": draw.normal(size=rows),
            "ward": draw.choice(["a", "b", "c"], rows),
            "smokes": draw.choice(["no", "yes"], rows),
            "site": 3.7,
            "note": np.nan,
            "outcome": draw.choice(["home", "stay"], rows),
        }
    )
    frame.loc[draw.random(rows) < 0.1, "age"] = np.nan
    frame.loc[draw.random(rows) < 0.1, "ward"] = None
    return frame


PLAN = TablePlan(categorical=("ward", "smokes"), missing="mean", flat="drop")
LOCAL_LEVELS = TablePlan(categorical=("ward", "smokes"), missing="drop", exclude=("note",))
ONLY_NUMBERS = TablePlan(missing="mean", exclude=("ward", "smokes", "note"))


def prepared(protocol: str = "pppca", plan: TablePlan = PLAN, secure_sum: str = "shares") -> Example:
    """With a leader, and a consumer that is told how tables were prepared."""
    frame = wards()
    label: dict[str, Any] = {"label": "outcome"} if protocol == "pppca" else {}
    islands = as_islands(cut_frame(frame if label else frame.drop(columns="outcome"), 3))
    leader = {"pppca": "server", "sfpca": "coordinator"}[protocol]
    study = Study(
        name="example",
        protocol=protocol,
        secure_sum=secure_sum,
        parties=parties(islands, "provider", leader, "consumer"),
        parameters={"n_components": 2, "accept_determined": True, **label},
        release={
            "components": ("provider", "consumer"),
            "explained_variance": ("consumer",),
            "n_samples": ("consumer",),
            "table": ("consumer",),
        },
        table=plan,
    )
    return Example(study, islands)
