"""The names of a table's columns, checked before they leave: column names are sent to every party.

A csv file without a header line has a person's row where names should be, whether Atoll reads it or pandas
did before. So names that are numbers are refused, without being quoted. An index that a program wrote beside
the table is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from atoll.errors import DataError, DataWarning

_INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")
"""What csv and parquet writers call an index that has no name."""


SEPARATORS = "values are separated by commas in .csv files and by tabs in .tsv files: save it so"


def other_separator(names: Sequence[str], marks: str) -> str | None:
    """What a table of one column was separated by, as it seems: a mark in the column's name."""
    return next((mark for mark in marks if len(names) == 1 and mark in names[0]), None)


def without_index(names: Sequence[str]) -> list[str]:
    """The names of the columns that count; an index without a name in the first place is left out."""
    return list(names[1:] if len(names) > 1 and names[0] in _INDEX_NAMES else names)


def warn_of_index(source: str, island: str) -> None:
    """Say that a column was left out; ``source``: the file's name, or what else holds the table."""
    warnings.warn(
        f"{island}: the first column of {source} has no name: it is taken for an index and left out",
        DataWarning,
        stacklevel=4,
    )


def check_header(names: Sequence[str], source: str, island: str) -> None:
    """Refuse names that cannot be names, or that two columns have. No name is quoted that may be a value."""
    positions = [str(place) for place in range(len(names))]
    if list(names) != positions:  # names that only count the columns are no values
        for place, name in enumerate(names, 1):
            if _is_number(name):
                raise DataError(
                    f"{island}: the name of column {place} of {source} is a number",
                    hint="names are sent to all parties: has the file no header line? Write one",
                )
    if (other := other_separator(names, ";\t|")) is not None:
        raise DataError(f"{island}: {source} has one column only, and {other!r} in its name", hint=SEPARATORS)
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise DataError(
                f"{island}: column {place} of {source} has no name", hint="name it in the header line"
            )
        if name in names[: place - 1]:
            raise DataError(
                f"{island}: columns {names.index(name) + 1} and {place} of {source} have the same name",
                hint="name every column differently",
            )


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", ".", 1))
    except ValueError:
        return False
    return True
