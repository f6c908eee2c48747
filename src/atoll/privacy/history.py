"""What exact studies were made of a data set: a small history in its owner's ledger, against differencing.

Two exact results of nearly the same rows and columns, one less the other, are a result of the few that
differ. So a study is compared with those that were run before. Of the rows a sketch is kept: the 1,024
smallest of their hashes under the ledger's secret, which say how many rows differ and nothing to whoever
lacks the secret. Of a table with more rows they say so to one or two per cent.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.privacy.identities import canonical

Hashes = npt.NDArray[np.uint64]

FEW_ROWS: Final = 10
FEW_COLUMNS: Final = 3
FEW_COMPONENTS: Final = 3
"""Studies that differ by no more than this differ by a few. Of large tables, rows count by the sketch."""

_SKETCH: Final = 1024
_SKETCH_NOISE: Final = 16
"""Hashes of the sketch that must differ before tables count as different."""

_TABLES = """
CREATE TABLE IF NOT EXISTS history (
    entry    TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    study    TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('reserved', 'settled')),
    made_at  REAL NOT NULL,
    said     TEXT NOT NULL,
    sketch   BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS allowed (
    identity TEXT NOT NULL,
    study    TEXT NOT NULL,
    UNIQUE (identity, study)
) STRICT
"""


class Joined(NamedTuple):
    """What one study is made of, as its island sees it."""

    analysis: str
    columns: tuple[str, ...]
    rows: int
    components: int | float | None
    filters: str
    """What the study does to the table before it is read, as text that is equal where that is."""
    sketch: Hashes


class Known(NamedTuple):
    """A study that was run, and when."""

    study: str
    made_at: float
    joined: Joined


class History:
    """The tables of a ledger that hold it; made when they are first needed."""

    def __init__(
        self, connection: sqlite3.Connection, transaction: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._connection, self._transaction = connection, transaction

    def _ready(self) -> None:
        for statement in _TABLES.split(";"):
            self._connection.execute(statement)

    def sketch(self, blocks: Iterable[Hashes]) -> Hashes:
        """The smallest hashes of rows; ``blocks``: rows of 64-bit values."""
        (secret,) = self._connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
        kept = np.empty(0, np.uint64)
        for block in blocks:
            kept = np.unique(np.concatenate([kept, _hashed(block, secret)]))[:_SKETCH]
        return kept

    def close_to(self, identity: str, study: str, joined: Joined, entry: str) -> tuple[Known, str] | None:
        """A study that was run and differs by a few, and in what; None where none is, or it is allowed.

        ``entry``: this run, which is not compared with itself where it is resumed.
        """
        with self._transaction():
            self._ready()
            if self._allowed(canonical(identity), study):
                return None
            earlier = list(self._settled(canonical(identity), entry))
        for known in earlier:
            if (words := differs_by_few(known.joined, joined)) is not None:
                return known, words
        return None

    def reserve(self, identity: str, entry: str, study: str, joined: Joined) -> None:
        """Before anything leaves; it counts once something has left."""
        said = json.dumps([*joined[:5]])
        row = (entry, canonical(identity), study, "reserved", time.time(), said, joined.sketch.tobytes())
        with self._transaction():
            self._ready()
            self._connection.execute("INSERT OR IGNORE INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def give_back(self, entry: str) -> None:
        """Of a run that released nothing."""
        with self._transaction():
            self._connection.execute("DELETE FROM history WHERE entry = ? AND state = 'reserved'", (entry,))

    def settle(self, key: str, study: str) -> None:
        """Within the transaction that settles the exact release. ``key``: the data set's canonical name."""
        self._ready()
        self._connection.execute(
            "UPDATE history SET state = 'settled' WHERE identity = ? AND study = ?", (key, study)
        )

    def allow(self, identity: str, study: str) -> None:
        """The owner's word that a study may run although it differs from another by a few."""
        with self._transaction():
            self._ready()
            self._connection.execute(
                "INSERT OR IGNORE INTO allowed VALUES (?, ?)", (canonical(identity), study)
            )

    def studies(self, identity: str) -> list[Known]:
        """What was run, in order."""
        with self._transaction():
            self._ready()
            return list(self._settled(canonical(identity)))

    def _allowed(self, key: str, study: str) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM allowed WHERE identity = ? AND study = ?", (key, study)
        ).fetchone()
        return found is not None

    def _settled(self, key: str, but: str = "") -> Iterator[Known]:
        rows = self._connection.execute(
            "SELECT study, made_at, said, sketch FROM history WHERE identity = ? AND state = 'settled' "
            "AND entry <> ? ORDER BY made_at",
            (key, but),
        ).fetchall()
        for study, made_at, said, sketch in rows:
            analysis, columns, n, components, filters = json.loads(said)
            joined = Joined(
                analysis, tuple(columns), n, components, filters, np.frombuffer(sketch, np.uint64)
            )
            yield Known(study, made_at, joined)


def _hashed(block: Hashes, secret: bytes) -> Hashes:
    """One hash for each row: a sum under secret odd factors, mixed so that all bits count."""
    d = block.shape[1]
    drawn = hashlib.shake_256(b"atoll/history/v1" + secret).digest(8 * d + 8)
    factors = np.frombuffer(drawn, np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = block ^ (block >> np.uint64(31))
        total = (mixed * factors[:d]).sum(axis=1, dtype=np.uint64)
        total ^= total >> np.uint64(33)
        total *= factors[d]
        return np.asarray(total ^ (total >> np.uint64(29)))


def differs_by_few(one: Joined, other: Joined) -> str | None:
    """In what two studies differ, if they differ, and only by a few; None where a result says no more, or
    both say something else."""
    if one.analysis != other.analysis:
        return None
    rows = _rows_apart(one, other)
    columns = len(set(one.columns) ^ set(other.columns))
    if rows > _few_rows(one, other) or columns > FEW_COLUMNS:
        return None
    changed = [f"{rows:,} row(s)"] if rows else []
    changed += [f"{columns} column(s)"] if columns else []
    if one.components != other.components:
        a, b = one.components, other.components
        if isinstance(a, int) and isinstance(b, int) and abs(a - b) > FEW_COMPONENTS:
            return None
        changed.append("the number of components")
    if one.filters != other.filters:
        changed.append("what [table] does")
    return " and ".join(changed) or None


def _few_rows(one: Joined, other: Joined) -> int:
    most = max(one.rows, other.rows)
    return FEW_ROWS if most <= _SKETCH else max(FEW_ROWS, most * _SKETCH_NOISE // _SKETCH)


def _rows_apart(one: Joined, other: Joined) -> int:
    """How many rows only one of the two has, about; of other columns, by their number alone."""
    at_least = abs(one.rows - other.rows)
    if one.columns != other.columns:
        return at_least
    both = np.union1d(one.sketch, other.sketch)[:_SKETCH]
    apart = len(both) - int((np.isin(both, one.sketch) & np.isin(both, other.sketch)).sum())
    most = max(one.rows, other.rows)
    scale = most / _SKETCH if most > _SKETCH else 1.0
    return max(at_least, int(np.ceil(apart * scale)))


def words_of(known: Known) -> dict[str, Any]:
    """For the owner's eyes."""
    said = known.joined
    return {
        "study": known.study,
        "made_at": known.made_at,
        "analysis": said.analysis,
        "rows": said.rows,
        "columns": len(said.columns),
        "components": said.components,
    }
