"""The core library, the processor's vectors, and the calibration of forecasts."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from atoll.crypto.products import vector_path, vector_paths
from atoll.errors import AtollError, DataError, MissingComponent
from atoll.runtime.doctor.finding import Finding
from atoll.secret_matrices.costs import rates

_BUILD = (
    "install a C compiler (gcc or clang), then install Atoll again: ATOLL_REQUIRE_GO=1 pip install "
    "--force-reinstall --no-deps . says what is missing"
)
_WORDS = {
    "ifma": "AVX-512 IFMA",
    "avx2": "AVX2 and FMA",
    "neon": "NEON",
    "scalar": "no vector instructions",
}


def core_library() -> Iterator[Finding]:
    """The Go library: without it encrypted PCA and some secure sums do not run."""
    name = "core library"
    try:
        vector_paths()
    except MissingComponent as error:
        what = "encrypted PCA and sums under lattice keys do not run without it"
        yield Finding(name, "problem", f"{error.message}; {what}", _BUILD)
    except AtollError as error:
        yield Finding(name, "problem", error.message, error.hint or _BUILD)
    else:
        yield Finding(name, "ok", "it is there and loads")


def processor() -> Iterator[Finding]:
    """Which vector instructions encrypted PCA computes with."""
    model = f"{processor_name()}, {os.cpu_count() or 1} cores"
    try:
        used, known = vector_path(), vector_paths()
    except MissingComponent:
        yield Finding("processor", "note", f"{model}; its vectors are known to the core library only", _BUILD)
        return
    except AtollError as error:  # ATOLL_VECTOR names one that this machine lacks
        yield Finding("processor", "problem", error.message, error.hint or "unset ATOLL_VECTOR")
        return
    said = f"{model}; encrypted PCA computes with {_WORDS.get(used, used)}"
    if used != known[0]:
        yield Finding(
            "processor",
            "note",
            f"{said}, though {_WORDS.get(known[0], known[0])} is there",
            "unset ATOLL_VECTOR",
        )
    elif used == "scalar":
        faster = "a processor with AVX2 or NEON takes about half the time; results are the same"
        yield Finding("processor", "note", said, faster)
    else:
        yield Finding("processor", "ok", said)


def processor_name() -> str:
    """As the system calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def calibration() -> Iterator[Finding]:
    """Whether forecasts of time are made from this machine's own speed."""
    name, remedy = "calibration", "atoll bench calibrate, while nothing else runs"
    try:
        table = rates.current()
    except DataError as error:
        yield Finding(name, "problem", error.message, remedy)
    except AtollError:
        yield Finding(name, "note", "nothing can be measured without the core library", _BUILD)
    else:
        measured = rates.file().is_file() and table.origin == rates.MEASURED
        said = (
            "forecasts of time use this machine's own speed" if measured else f"forecasts use {table.origin}"
        )
        yield Finding(name, "ok" if measured else "note", said, None if measured else remedy)
