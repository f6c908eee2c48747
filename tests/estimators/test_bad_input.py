"""Bad input gets an error that names the island and the place, and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.examples import table

import atoll
from atoll.errors import AtollError, DataError, ParameterError, RangeOverflow, SchemaError

X = table(30, 4)
FRAME = pd.DataFrame(X, columns=["age", "dose", "weight", "stay"])


def with_nan() -> pd.DataFrame:
    frame = FRAME.copy()
    frame.iloc[-1, 2] = np.nan
    return frame


def with_text() -> pd.DataFrame:
    frame = FRAME.astype(object)
    frame.iloc[17, 1] = "pending"
    return frame


CASES: dict[str, tuple[Callable[[], Any], type[AtollError], str]] = {
    "one island": (lambda: atoll.PCA().fit([X]), ParameterError, "at least 2 islands, got 1"),
    "no island": (lambda: atoll.PCA().fit([]), ParameterError, "at least 2 islands, got 0"),
    "a bare array": (
        lambda: atoll.PCA().fit(X),
        ParameterError,
        "one table per island, got a single ndarray",
    ),
    "a bare frame": (lambda: atoll.PCA().fit(FRAME), ParameterError, "got a single DataFrame"),
    "k > d": (lambda: atoll.PCA(5).fit([X, X]), ParameterError, "n_components=5 must be between 1 and .*=4"),
    "k > n": (lambda: atoll.PCA(4).fit([X[:1], X[1:3]]), ParameterError, "joint table has 3 rows"),
    "k = 0": (lambda: atoll.PCA(0).fit([X, X]), AtollError, "n_components=0 is not possible"),
    "k = mle": (lambda: atoll.PCA("mle").fit([X, X]), ParameterError, "n_components='mle' must be"),
    "nan in the last row": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": with_nan()}),
        DataError,
        r"south: column 'weight' holds a missing value \(NaN\) at row 29",
    ),
    "infinity": (
        lambda: atoll.PCA().fit({"north": X, "south": np.where(X[3, 1] == X, -np.inf, X)}),
        DataError,
        r"south: column 'x1' holds an infinite value \(inf\) at row 3",
    ),
    "a missing column": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": FRAME.drop(columns="dose")}),
        SchemaError,
        "south lacks 'dose', which north has",
    ),
    "an extra column": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": FRAME.assign(bmi=1.0)}),
        SchemaError,
        "south has 'bmi', which north lacks",
    ),
    "unequal arrays": (
        lambda: atoll.PCA().fit({"north": X, "south": X[:, :3]}),
        SchemaError,
        "south has 3 columns, north has 4",
    ),
    "names here, none there": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": X}),
        SchemaError,
        "columns of south are not named",
    ),
    "text among numbers": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": with_text()}),
        DataError,
        "south: column 'dose' holds text at row 17",
    ),
    "dates": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": FRAME.assign(dose=pd.Timestamp("2026-01-01"))}),
        DataError,
        "south: column 'dose' holds dates or times",
    ),
    "a masked array": (
        lambda: atoll.PCA().fit({"north": X, "south": np.ma.masked_less(X, 0)}),
        DataError,
        "south: a masked array",
    ),
    "equal names": (
        lambda: atoll.PCA().fit({1: X, "1": X}),
        ParameterError,
        "two islands have the same name",
    ),
    "an option of the wrong type": (
        lambda: atoll.PCA(standardize="False").fit([X, X]),
        ParameterError,
        "standardize='False' must be True or False",
    ),
    "no engine": (lambda: atoll.PCA(engine="local").fit([X, X]), ParameterError, "is not an engine"),
    "an array where nothing is meant": (
        lambda: atoll.PCA(bounds=np.ones(4)).fit([X, X]),
        ParameterError,
        "bounds=.* cannot be used",
    ),
    "no table": (lambda: atoll.PCA().fit({"north": X, "south": None}), DataError, "south: this is no table"),
    "a series": (lambda: atoll.PCA().fit([FRAME.age, FRAME.dose]), DataError, r"series.to_frame\(\) makes"),
    "a column called nan": (
        lambda: atoll.PCA().fit([FRAME, FRAME.rename(columns={"dose": np.nan})]),
        DataError,
        "column 2 of the frame has no name",
    ),
    "a number beyond doubles": (
        lambda: atoll.PCA().fit([FRAME, FRAME.assign(dose=[10**400] * 30)]),
        DataError,
        "'dose' holds a number too large for a double at row 0",
    ),
    "a list in a cell": (
        lambda: atoll.PCA().fit([FRAME, FRAME.assign(dose=[[1]] * 30)]),
        DataError,
        "'dose' holds a list, which is no number, at row 0",
    ),
    "another letter that looks the same": (
        lambda: atoll.PCA().fit({"north": FRAME, "south": FRAME.rename(columns={"age": "\u0430ge"})}),
        SchemaError,
        "south lacks 'age', which north has; it has '\u0430ge' instead",
    ),
    "a norm whose square is no double": (
        lambda: atoll.PCA(1, epsilon=1.0, delta=1e-5, row_norm=1e200).fit([X] * 3),
        ParameterError,
        "a public bound on the norm of a row, got 1e\\+200",
    ),
    "one dimension": (lambda: atoll.PCA().fit([X[0], X[1]]), DataError, "island-0: expected 2D array"),
    "no rows": (
        lambda: atoll.PCA().fit({"north": X, "south": X[:0]}),
        DataError,
        "south: .*no rows",
    ),
    "an overflow": (
        lambda: atoll.PCA(accept_determined=True).fit({"north": X, "south": X * 1e20}),
        RangeOverflow,
        "outside the fixed-point range",
    ),
    "a meaningless option": (
        lambda: atoll.PCA(row_norm=1.0).fit([X, X]),
        ParameterError,
        "row_norm=1.0 cannot be used with protocol='pppca' with secure_sum='shares'",
    ),
    "an unknown protocol": (
        lambda: atoll.PCA(protocol="magic").fit([X, X]),
        ParameterError,
        "no protocol 'magic'",
    ),
    "an unknown sum": (lambda: atoll.PCA(secure_sum="magic").fit([X, X]), AtollError, "no secure sum called"),
    "dropouts without masks": (lambda: atoll.PCA(dropouts=1).fit([X] * 4), AtollError, "dropouts"),
    "too many dropouts": (
        lambda: atoll.PCA(secure_sum="masks", dropouts=2).fit([X] * 4),
        AtollError,
        "4 contributors cannot lose 2",
    ),
    "a missing file": (
        lambda: atoll.PCA().fit({"north": X, "south": "nowhere.csv"}),
        DataError,
        "south: there is no file nowhere.csv",
    ),
    "an unknown ending": (
        lambda: atoll.PCA().fit({"north": X, "south": "table.xlsx"}),
        DataError,
        "south: table.xlsx has an ending that is not known",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str) -> None:
    call, kind, words = CASES[name]
    with pytest.raises(kind, match=words) as caught:
        call()
    error: BaseException | None = caught.value
    while error is not None:  # no cause along the way quotes a cell
        assert "pending" not in str(error)
        error = error.__context__


def test_text_in_a_csv_is_named_with_its_line(tmp_path: Path) -> None:
    with_text().to_csv(tmp_path / "south.csv", index=False)
    with pytest.raises(
        DataError, match=r"south: column 'dose' holds text at row 17 \(line 19 of south.csv\)"
    ):
        atoll.PCA().fit({"north": FRAME, "south": tmp_path / "south.csv"})


def test_secure_sum_refuses_unequal_and_missing() -> None:
    with pytest.raises(DataError, match=r"island-1 adds an array of shape \(2,\)"):
        atoll.secure_sum([[1.0], [1.0, 2.0]])
    with pytest.raises(DataError, match="island-1: entry 1 is missing"):
        atoll.secure_sum([[1.0, 2.0], [1.0, np.nan]])
    with pytest.raises(DataError, match="island-1 adds something that is no array of numbers"):
        atoll.secure_sum([[1.0], ["pending"]])
    with pytest.raises(ParameterError, match="at least 2"):
        atoll.secure_sum([[1.0]])
