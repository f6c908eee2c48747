"""Readers of tables, and the disk that keeps ledgers and journals."""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from atoll.data.readers import READERS
from atoll.privacy.ledger import site_ledger
from atoll.runtime.doctor.finding import Finding

_NEEDS = {"parquet": "pyarrow"}
"""What a reader needs that an installation may lack."""
_EXTRAS = {"bed": "bed_reader", "h5ad": "h5py"}
"""What a reader needs beside Atoll's own dependencies: without it, there is nothing to mend."""
_FRAMES = ("polars",)

SLOW_SECONDS = 0.02
"""Every debit and every step of a journal waits for the disk once."""
UNREAL_SECONDS = 2e-5
"""No disk is so fast: nothing was written to one."""
_TRIES = 9


def readers() -> Iterator[Finding]:
    """Which files can be read as tables, and which frames are taken."""
    broken = []
    absent = [ending for ending, package in _EXTRAS.items() if importlib.util.find_spec(package) is None]
    offered = [ending for ending in READERS.names() if ending not in absent]
    for ending in offered:
        needed = _NEEDS.get(ending)
        try:
            if needed is not None and importlib.util.find_spec(needed) is None:
                raise ImportError(needed)
            READERS[ending]
        except Exception:  # a package's own reader may fail in any way
            broken.append(ending)
            remedy = (
                f"pip install {needed}" if needed else "mend or remove the package that brings this reader"
            )
            yield Finding("readers", "problem", f"files that end in .{ending} cannot be read here", remedy)
    known = ", ".join(f".{ending}" for ending in offered if ending not in broken)
    missing = [name for name in _FRAMES if importlib.util.find_spec(name) is None]
    if missing:
        said = f"{known}; frames of {', '.join(missing)} are not taken, for it is not installed"
        yield Finding("readers", "note", said, f"pip install {' '.join(missing)}, if you use it")
    else:
        yield Finding("readers", "ok", f"{known}; frames of pandas and {', '.join(_FRAMES)}")


def disk_sync() -> Iterator[Finding]:
    """How long it takes until a small write is safe: a ledger waits for that at every debit."""
    wanted = site_ledger().parent
    place = next(folder for folder in (wanted, *wanted.absolute().parents) if folder.is_dir())
    try:
        seconds = sync_seconds(place)
    except OSError as error:
        yield Finding(
            "disk",
            "problem",
            f"nothing can be written to {place}: {error.strerror}",
            "set ATOLL_HOME to a folder of yours on a local disk",
        )
        return
    said = f"a write to {place} is safe after {1000 * seconds:.2g} ms"
    if seconds > SLOW_SECONDS:
        yield Finding("disk", "note", said, "set ATOLL_HOME to a folder on a faster, local disk")
    elif seconds < UNREAL_SECONDS:
        remedy = "set ATOLL_HOME to a folder on a disk, or a power cut forgets what was spent"
        yield Finding("disk", "note", f"{said}: that is memory, not a disk", remedy)
    else:
        yield Finding("disk", "ok", said)


def sync_seconds(folder: Path) -> float:
    """The median over some writes of one page, each brought to the disk; the file does not stay."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_TRIES):
            start = time.perf_counter()
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)
