"""Own rows beside a result: those that miss something are left out, and nothing is made up for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from atoll.data.island import Island
from atoll.errors import DataError
from atoll.report.own_rows import predicted, projections
from atoll.runtime.result import Result
from atoll.runtime.transcript import Transcript
from atoll.study.model import Study

FRAME = pd.DataFrame(
    {
        "dose": [1.0, 2.0, np.nan, 4.0, 5.0],
        "sex": ["f", None, "f", "m", "f"],
        "beside": [10.0, 20.0, 30.0, 40.0, 50.0],
        "stay": [1.0, 2.0, 3.0, 4.0, np.nan],
    }
)


def result(**outputs: object) -> Result:
    parameters = {"target": "stay", "categorical": ("sex",), "offset": "beside"}
    study = Study(
        name="x", analysis="regression", protocol="least-squares", parties=(), parameters=parameters
    )
    return Result(study, dict(outputs), Transcript())


def test_rows_that_miss_a_number_a_category_or_the_target_are_left_out() -> None:
    model = {"names": ("(Intercept)", "dose", "sex[m]"), "coefficients": np.array([0.5, 2.0, 100.0])}
    found = predicted(result(model=model), Island.from_frame(FRAME, name="north"))
    assert found is not None
    assert found.seen.tolist() == [1.0, 4.0]
    assert found.score.tolist() == [0.5 + 2.0 + 10.0, 0.5 + 8.0 + 100.0 + 40.0]


def test_projections_are_of_centred_and_divided_rows() -> None:
    rows = Island.from_frame(pd.DataFrame({"a": [1.0, 3.0], "b": [5.0, 9.0]}), name="north")
    told = {"components": np.array([[0.0, 1.0]]), "columns": ("a", "b"), "mean": np.array([1.0, 1.0])}
    for more, due in (
        ({}, [4.0, 8.0]),
        ({"scale": np.array([1.0, 2.0])}, [2.0, 4.0]),
        ({"scale": np.array([1.0, 0.0])}, [4.0, 8.0]),  # a column without variance is not divided
        ({"offset": np.array([3.0])}, [2.0, 6.0]),
        ({"offset": np.array([3.0]), "scale": np.array([1.0, 2.0])}, [-0.5, 1.5]),
    ):
        found = projections(result(**told, **more), rows)
        assert found is not None
        assert found[:, 0].tolist() == due
    missing = Island.from_frame(pd.DataFrame({"a": [1.0, np.nan], "b": [5.0, 9.0]}), name="north")
    with pytest.raises(DataError, match="rows with missing values cannot be projected"):
        projections(result(**told), missing)
    assert projections(result(), rows) is None
