"""Ids of rows as text that is the same everywhere: one rule for all islands, named in the study.

An error names places, never an id: ids are people.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from atoll.data.island import Island
from atoll.errors import DataError, SchemaError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

RULES: Mapping[str, Callable[[str], str]] = {
    "trim": str.strip,
    "spaces": lambda text: "".join(text.split()),
    "case": str.casefold,
    "digits": lambda text: "".join(c for c in text if c in "0123456789"),
}
"""By name: no white space at the ends; none at all; upper and lower case alike; digits only."""


def normalised(island: Island, column: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The ids of all rows; none missing, none empty, none twice."""
    if column not in island.columns:
        raise SchemaError(
            f"{island.name}: there is no column of ids {column!r}",
            hint=f"its columns are {', '.join(map(repr, island.columns[:5]))}",
        )
    values = island.values(column)
    absent = np.asarray(pd.isna(values))
    if absent.any():
        raise DataError(
            f"{island.name}: the id {column!r} is missing at {island.place(int(np.argmax(absent)))}",
            hint="give every row an id, or leave the row out",
        )
    ids = tuple(_ruled(_text(value), rules) for value in values.tolist())
    _check_distinct(island, column, ids)
    return ids


def _text(value: object) -> str:
    """Numbers as whole numbers where they are such: 17, 17.0 and "17" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return unicodedata.normalize("NFKC", str(value))


def _ruled(text: str, rules: Sequence[str]) -> str:
    for rule in RULES:  # in this order, however the study lists them
        if rule in rules:
            text = RULES[rule](text)
    return text


def _check_distinct(island: Island, column: str, ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for row, one in enumerate(ids):
        if not one:
            raise DataError(
                f"{island.name}: nothing is left of the id {column!r} at {island.place(row)}",
                hint="the study's rule (normalise) takes all of it away; correct the id, or the rule",
            )
        if not _encodable(one):
            raise DataError(
                f"{island.name}: the id {column!r} at {island.place(row)} is no text that can be sent",
                hint="half of a character is missing there (a lone surrogate); correct the id",
            )
        if one in first:
            raise DataError(
                f"{island.name}: the ids {column!r} at {island.place(first[one])} and {island.place(row)} "
                "are the same",
                hint="one row for each id: join or drop rows first; the study's rule may make ids alike",
            )
        first[one] = row


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fingerprint(ids: Sequence[str]) -> str:
    """Tells its owner whether these are still the same ids in the same order; for nobody else."""
    mac = hashlib.sha256(b"atoll/aligned ids/v1")
    for one in ids:
        data = one.encode()
        mac.update(len(data).to_bytes(8, "little") + data)
    return mac.hexdigest()
