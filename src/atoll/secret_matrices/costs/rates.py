"""What the steps of the primitive cost on a machine: processor seconds per polynomial, entry and byte.

``atoll bench calibrate`` measures them, on the vector path in use; tables that come with the package, one for
each path that was at hand, serve until then.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec

from atoll.crypto.products import rings, vector_path
from atoll.errors import DataError
from atoll.secret_matrices.slots import rates as slot_rates
from atoll.secret_matrices.slots.rates import SlotRates

FILE_VARIABLE = "ATOLL_CALIBRATION"
SHIPPED = (
    "a table that came with the package (vector path {path}); 'atoll bench calibrate' measures this machine"
)
NEAREST = ("avx2", "scalar")
"""Whose shipped table serves a path that has none of its own, the first that there is."""


class Rate(NamedTuple):
    """Seconds for one thing, and for each of its parts."""

    each: float
    part: float

    def seconds(self, count: float, parts: float) -> float:
        """So many things with so many parts in all."""
        return self.each * count + self.part * parts

    @classmethod
    def through(cls, few: tuple[float, float, float], many: tuple[float, float, float]) -> Rate:
        """The rate through two measurements (count, parts, seconds)."""
        (n1, p1, t1), (n2, p2, t2) = few, many
        part = max(0.0, (t2 / n2 - t1 / n1) / (p2 / n2 - p1 / n1))
        return cls(max(0.0, t1 / n1 - part * p1 / n1), part)


class RingRates(msgspec.Struct, frozen=True):
    """The Go library in one ring; a thing is a polynomial, its parts are the entries of the matrix."""

    encrypt: Rate
    public: Rate
    """A share in the clear, added to an encryption."""
    gather: float
    """Adding up one party's polynomial of an encryption."""
    read: float
    encode: Rate
    stream: Rate
    """Encoding a polynomial in the course of a product."""
    multiply: float
    """One polynomial times both halves of another, added up."""
    zero: Rate
    """Re-randomising one output polynomial, and packing it."""
    add: Rate
    second: float
    refresh: Rate
    share: float
    """Adding one entry of a masked share."""
    clear: float


class PythonRates(msgspec.Struct, frozen=True):
    """Everything else; per entry of a matrix where nothing else is said."""

    to_integers: float
    from_integers: float
    from_words: float
    combine: float
    """One entry times one coefficient, on shares."""
    times_public: float
    """One multiply-add of Python integers."""
    weigh: float
    smudge: float
    floats: float
    rotation: Rate
    """One row of a secret rotation, and one multiply-add of its orthonormalisation."""
    gaussian: float
    table: float
    """Reading and checking one value of a table."""
    quick_moments: Rate
    """One value of a table, and one multiply-add of its Gram matrix in doubles."""
    exact_moments: Rate
    """The same exactly; the part is one entry of a Gram matrix for each piece of the table."""
    message: float
    byte: float
    """Sending and reading one byte."""
    hash_byte: float
    fingerprint_byte: float
    """Both fingerprints of one byte of a message."""
    fresh_byte: float
    """Touching one byte of memory for the first time: the system clears it."""
    linear: float
    """One linear step on shares, however small."""
    step: float
    """Handing one step to a thread and back."""
    keys: float
    """A provider's keys, and reading the collective ones."""


MEASURED = "measured on this machine"


class Rates(msgspec.Struct, frozen=True):
    """A machine, as the planner sees it."""

    cores: int
    path: str
    """The vector path of the Go library (see go/vector)."""
    rings: dict[str, RingRates]
    python: PythonRates
    origin: str = MEASURED
    slots: SlotRates | None = None
    """Of vectors in slots; None in a table that says nothing of them."""

    def of_slots(self) -> SlotRates:
        """Those measured with the others, or those that came with the package."""
        return self.slots or slot_rates.shipped()


Tables = dict[str, Rates]
"""One for each path."""

VERSION = 3
"""Of the file; it changes with the steps and rings that rates are measured of."""


class Calibration(msgspec.Struct, frozen=True):
    """The file of measured tables, and the one that comes with the package."""

    version: int
    tables: Tables


class _Versioned(msgspec.Struct):
    version: int = 1  # files of the first version did not say it


def file() -> Path:
    """The file of measured tables."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "atoll" / "calibration.json"


def store(rates: Rates) -> Path:
    """Keep a measured table for the planner, beside those of other paths."""
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        others = _read(path.read_bytes()) if path.is_file() else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        others = None  # broken: written anew, as one of another version is
    tables = {**(others or {}), rates.path: rates}
    file_ = Calibration(VERSION, dict(sorted(tables.items())))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(file_)))
    return path


def current() -> Rates:
    """The table measured on this machine for the path in use, or one that came with the package.

    A table measured by another version, of other steps or rings, is left alone; the origin then says so.
    """
    path = file()
    if not path.is_file():
        return shipped()
    try:
        measured = _read(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(
            f"{path} is not a table of rates", hint="atoll bench calibrate writes it anew"
        ) from problem
    if measured is None:
        return _instead(path)
    table = measured.get(vector_path())
    if table is not None and rings().keys() - table.rings.keys():
        return _instead(path)
    return table or shipped()


def _instead(path: Path) -> Rates:
    """The shipped table, in place of a measured one of another version."""
    came = shipped()
    return msgspec.structs.replace(came, origin=f"{came.origin}; {path} is of another version of Atoll")


def shipped() -> Rates:
    """The table that came with the package, for the path in use or the nearest to it."""
    return _shipped(vector_path())


def reference() -> Rates:
    """The same table on every machine, for what all parties of a study have to decide alike."""
    return _shipped(NEAREST[0])


@lru_cache(maxsize=4)
def _shipped(path: str) -> Rates:
    tables = _read(resources.files("atoll.secret_matrices.costs").joinpath("rates.json").read_bytes())
    assert tables is not None, "the package's table is of the package's version"
    found = tables[next(name for name in (path, *NEAREST) if name in tables)]
    return msgspec.structs.replace(found, origin=SHIPPED.format(path=found.path))


def _read(text: bytes) -> Tables | None:
    """The tables of a file; None if it is of another version."""
    if msgspec.json.decode(text, type=_Versioned).version != VERSION:
        return None
    return msgspec.json.decode(text, type=Calibration).tables
