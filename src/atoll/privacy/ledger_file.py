"""The file of a ledger: where it stands, how it is made, and what earlier versions left in it.

A ledger is made on purpose (``atoll ledger init``) and never by opening one: a folder copied without its
ledger, or a path with a slip in it, must not start with an empty account. It remembers its place; a copy,
which would count the same people's spending twice over, is refused.
"""

from __future__ import annotations

import hmac
import json
import os
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from atoll.errors import ParameterError, PrivacyError
from atoll.privacy.identities import lenient
from atoll.randomness import fresh_seed

VERSION = 4
# Fingerprints without a secret; identities as typed and debits for all stages at once; no word of what a
# study states.
_EARLIER_VERSIONS = (1, 2, 3)

BUSY_SECONDS = 30.0
_RETRY_SECONDS = 0.01

_SCHEMA = """
CREATE TABLE data_set (
    identity TEXT PRIMARY KEY,
    name     TEXT NOT NULL,
    epsilon  REAL CHECK (epsilon > 0),
    delta    REAL CHECK (delta >= 0 AND delta < 1),
    method   TEXT CHECK (method IN ('pure', 'gdp')),
    exact    TEXT NOT NULL DEFAULT 'booked' CHECK (exact IN ('booked', 'refused'))
) STRICT;
CREATE TABLE debit (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    release_id  TEXT NOT NULL,
    stage       TEXT NOT NULL,
    identity    TEXT NOT NULL REFERENCES data_set (identity),
    kind        TEXT NOT NULL CHECK (kind IN ('private', 'exact')),
    state       TEXT NOT NULL CHECK (state IN ('reserved', 'settled')),
    fingerprint TEXT NOT NULL,
    study       TEXT NOT NULL,
    neighbours  TEXT NOT NULL,
    mu          REAL NOT NULL CHECK (mu >= 0),
    pure        TEXT NOT NULL,
    made_at     REAL NOT NULL,
    epsilon     REAL,
    delta       REAL,
    UNIQUE (release_id, stage)
) STRICT;
CREATE INDEX debit_of_data_set ON debit (identity);
"""
_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT"


def site_ledger() -> Path:
    """The ledger of this site: in ``$ATOLL_HOME``, else where the user's data stand."""
    home = os.environ.get("ATOLL_HOME")
    if home:
        return Path(home).expanduser().absolute() / "ledger.db"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "atoll" / "ledger.db"


def command(path: Path | None, *words: str) -> str:
    """An ``atoll ledger`` command on this ledger, as it is typed."""
    named = () if path is None or path == site_ledger() else ("--ledger", str(path))
    return shlex.join(["atoll", "ledger", *words, *named])


def create(path: Path) -> None:
    """Make a ledger where there is none; whole or not at all, and for its owner alone."""
    try:
        if path == site_ledger():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise ParameterError(f"cannot make the ledger {path}: {error.strerror}") from error
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        write_schema(connection)
        connection.close()
        os.link(temporary, path)  # fails where there is one already
        remember_place(path)
    except FileExistsError:
        raise ParameterError(
            f"there is a ledger {path} already", hint=f"{command(path, 'show')} says what it holds"
        ) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def write_schema(connection: sqlite3.Connection) -> None:
    """Tables, a secret for fingerprints, and the version."""
    connection.execute("BEGIN IMMEDIATE")
    _write_tables(connection)
    connection.execute(_META)
    connection.execute("INSERT INTO meta VALUES ('secret', ?)", (fresh_seed(),))
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _write_tables(connection: sqlite3.Connection) -> None:
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)


# ---- opening ----


def open_file(path: Path) -> sqlite3.Connection:
    """A ledger that is there, brought to this version and ready for debits."""
    if not path.is_file():
        raise PrivacyError(
            f"there is no ledger {path}",
            hint=f"{command(path, 'init')} makes one; in a copied folder, name the ledger of the original",
        )
    if path.stat().st_nlink > 1:
        # Each name would have a write-ahead log of its own: debits under one are not seen under the other.
        raise PrivacyError(
            f"the ledger {path} has a second name (a hard link)",
            hint="find it (find -samefile) and remove it; a symbolic link does no harm",
        )
    try:
        path.chmod(0o600)  # nobody but the owner reads or writes it; its side files inherit the mode
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise PrivacyError(f"cannot open the ledger {path}: {error}") from error
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        if read_version(connection, path) != VERSION:
            _under_lock(connection, lambda: _migrate(connection, path))
        _use_write_ahead_log(connection)
        # A debit is on the disk when its transaction ends, not merely in the page cache.
        connection.execute("PRAGMA synchronous = FULL")
        _refuse_a_copy(connection, path)
    except sqlite3.DatabaseError as error:
        raise PrivacyError(f"{path} is not a ledger, or damaged: {error}") from error


def read_version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == 0:
        raise PrivacyError(
            f"{path} is not a ledger",
            hint=f"remove the file; {command(path, 'init')} makes a ledger",
        )
    if version not in (*_EARLIER_VERSIONS, VERSION):
        raise PrivacyError(
            f"the ledger was written by another version ({version}, this one reads {VERSION})",
            hint="use the version of Atoll that wrote it",
        )
    return version


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """The busy timeout does not cover this change, so processes that meet here take turns by hand."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _under_lock(connection: sqlite3.Connection, work: Callable[[], None]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        work()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


# ---- place: a copy is not the ledger ----


def _here(path: Path) -> tuple[str, int]:
    return str(path.resolve()), path.stat().st_ino


def _refuse_a_copy(connection: sqlite3.Connection, path: Path) -> None:
    """Neither the path nor the file itself is the one that was written down.

    Files on two disks may have the same number, so a path that is still there counts for more.
    """
    kept = connection.execute("SELECT value FROM meta WHERE name = 'place'").fetchone()
    if kept is None:  # migrated just now, or made and not yet opened
        _write_place(connection, path)
        return
    where, inode = json.loads(kept[0])
    here = _here(path)
    if (where, inode) == here:
        return
    if where != here[0] and (inode != here[1] or Path(where).is_file()):
        raise PrivacyError(
            f"the ledger {path} is a copy of {where}: what is spent would be counted in two places",
            hint=f"use {where}; if it was moved here and is gone from there: {command(path, 'moved')}",
        )
    _write_place(connection, path)  # the same file, renamed, or a backup at the same place


def _write_place(connection: sqlite3.Connection, path: Path) -> None:
    place = json.dumps(_here(path)).encode()
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('place', ?)", (place,))


def remember_place(path: Path) -> None:
    """From now on the ledger stands here."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        read_version(connection, path)
        _under_lock(connection, lambda: _write_place(connection, path))
    finally:
        connection.close()


def moved(path: Path) -> None:
    """The owner's word that the ledger was moved, not copied; not taken while the other is still there."""
    if not path.is_file():
        raise PrivacyError(f"there is no ledger {path}")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        kept = connection.execute("SELECT value FROM meta WHERE name = 'place'").fetchone()
    except sqlite3.DatabaseError as error:
        raise PrivacyError(f"{path} is not a ledger of this version: {error}") from error
    finally:
        connection.close()
    where, inode = json.loads(kept[0]) if kept else ("", 0)
    if Path(where).is_file() and (where, inode) != _here(path):
        raise PrivacyError(
            f"the ledger is still at {where}: {path} is a copy",
            hint="use that one, or remove it first if this one is newer",
        )
    remember_place(path)


# ---- earlier versions ----


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """All budgets and debits stay; identities that are one data set become one account.

    Where two budgets meet, the smaller stays. A debit of an earlier version was for all stages, and made.
    """
    if (version := read_version(connection, path)) == VERSION:  # another process was faster
        return
    run = connection.execute
    if version == 3:
        run("ALTER TABLE debit ADD COLUMN epsilon REAL")
        run("ALTER TABLE debit ADD COLUMN delta REAL")
        run(f"PRAGMA user_version = {VERSION}")
        return
    run(_META)
    run("INSERT OR IGNORE INTO meta VALUES ('secret', ?)", (fresh_seed(),))
    budgets = run("SELECT identity, epsilon, delta FROM data_set ORDER BY epsilon").fetchall()
    debits = run(
        "SELECT release_id, identity, fingerprint, study, neighbours, mu, pure, made_at FROM debit "
        "ORDER BY number"
    ).fetchall()
    run("DROP TABLE data_set")
    run("DROP TABLE debit")
    _write_tables(connection)
    for identity, epsilon, delta in budgets:
        run(
            "INSERT OR IGNORE INTO data_set (identity, name, epsilon, delta) VALUES (?, ?, ?, ?)",
            (lenient(identity), identity, epsilon, delta),
        )
    for release_id, identity, fingerprint, study, neighbours, mu, pure, made_at in debits:
        run("INSERT OR IGNORE INTO data_set (identity, name) VALUES (?, ?)", (lenient(identity), identity))
        keyed = under_secret(connection, fingerprint) if version == 1 else fingerprint
        run(
            "INSERT INTO debit (release_id, stage, identity, kind, state, fingerprint, study, neighbours, "
            "mu, pure, made_at) VALUES (?, '', ?, 'private', 'settled', ?, ?, ?, ?, ?, ?)",
            (release_id, lenient(identity), keyed, study, neighbours, mu, pure, made_at),
        )
    run(
        "UPDATE data_set SET method = CASE WHEN delta > 0 OR EXISTS (SELECT 1 FROM debit "
        "WHERE debit.identity = data_set.identity AND mu > 0) THEN 'gdp' ELSE 'pure' END "
        "WHERE EXISTS (SELECT 1 FROM debit WHERE debit.identity = data_set.identity)"
    )
    run(f"PRAGMA user_version = {VERSION}")


def under_secret(connection: sqlite3.Connection, fingerprint: str) -> str:
    """What is written of a fingerprint: equal for equal rows in this ledger, and no more."""
    if not fingerprint:
        return ""
    (secret,) = connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
    return hmac.digest(secret, fingerprint.encode(), "sha256").hex()
