"""Column names of csv files are read as pandas would read them, without pandas."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from atoll.data.columns import column_names
from atoll.errors import DataError


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,3\n",
        "\ufeffa,b\n1,2\n",
        "\n\na,b\n1,2\n",
        '"a, with a comma","b\nof two lines"\n1,2\n',
        "a,b\r\n1,2\r\n",
        "only",
    ],
)
def test_names_are_those_of_pandas(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    assert column_names(path) == tuple(pd.read_csv(path, nrows=0).columns)


def test_an_empty_file_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n\n")
    with pytest.raises(DataError, match="is empty"):
        column_names(path)
