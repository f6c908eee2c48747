"""The Go shared library: loading it, calling it, its handles and its errors.

Hazardous material: byte buffers and raw handles. Use :mod:`atoll.crypto.hazmat.lattice` and what
stands above it.

cffi loads the library in ABI mode and releases the GIL during every call. A call returns a code and a
sentence, raised here as an exception of :mod:`atoll.errors`; no panic of Go reaches Python. Each part of
the library declares its own functions with :func:`declare` where it is used.

Go's runtime does not survive a fork: its threads stay behind and the first call hangs. So a forked
child that inherits the loaded library gets an error instead; a spawned one loads its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from atoll.errors import (
    AtollError,
    KeyMismatch,
    MessageError,
    MissingComponent,
    ParameterError,
    RangeOverflow,
    RunError,
)

ABI_VERSION: Final = 6
_PROBLEM_BYTES: Final = 512
_SUFFIX = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
LIBRARY_PATH: Final = Path(__file__).resolve().parents[2] / "_native" / f"libatoll.{_SUFFIX}"

Buffer = bytes | bytearray | memoryview
Room = tuple[npt.NDArray[np.uint8], Any, int]

# The kinds of go/fault; 1 is a recovered panic.
_EXCEPTIONS: Final[dict[int, type[AtollError]]] = {
    1: RunError,
    2: ParameterError,
    3: MessageError,
    4: KeyMismatch,
    5: RangeOverflow,
    6: ParameterError,
}

_lock = threading.RLock()


class _ForeignFunctions:
    """cffi's FFI, made when first used: a run that never calls Go need not wait for a parser of C."""

    def __init__(self) -> None:
        self._declared: list[str] = []
        self._made: Any = None

    def declare(self, signatures: str) -> None:
        with _lock:
            if self._made is None:
                self._declared.append(signatures)
            else:
                self._made.cdef(signatures)

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if self._made is None:
                import cffi

                made = cffi.FFI()
                made.cdef("\n".join(self._declared))
                self._made = made
        value = getattr(self._made, name)
        setattr(self, name, value)  # the next use does not come here
        return value


ffi: Final = _ForeignFunctions()
ffi.declare("""
int32_t atoll_abi_version(void);
int32_t atoll_release(uint64_t id, char* problem, uint64_t capacity);
uint64_t atoll_live_handles(void);
""")

_bytes_without_contents = ctypes.pythonapi.PyBytes_FromStringAndSize
_bytes_without_contents.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)
_bytes_without_contents.restype = ctypes.py_object

_library: Any = None
_forked = False


def _after_fork_in_child() -> None:
    global _forked, _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    _forked = _library is not None


os.register_at_fork(after_in_child=_after_fork_in_child)


def declare(signatures: str) -> None:
    """Make more of the library's functions callable; called where a part of it is wrapped."""
    ffi.declare(signatures)


def library() -> Any:
    """The loaded library, or one clear error why there is none."""
    if _forked:
        raise RunError(
            "the Go library cannot be used in a forked process",
            hint='start workers with multiprocessing.get_context("spawn")',
        )
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _load(LIBRARY_PATH)
    return _library


def available() -> bool:
    """Whether the library is here and loads."""
    try:
        library()
    except MissingComponent:
        return False
    return True


def _load(path: Path) -> Any:
    rebuild = "install Go (1.24 or later) and a C compiler, and then Atoll again"
    if not path.exists():
        raise MissingComponent("Atoll's Go library is not installed", hint=rebuild)
    try:
        loaded = ffi.dlopen(str(path))
        found = loaded.atoll_abi_version()
    except (OSError, AttributeError) as problem:
        raise MissingComponent(f"Atoll's Go library does not load: {problem}", hint=rebuild) from problem
    if found != ABI_VERSION:
        raise MissingComponent(
            f"Atoll's Go library has interface {found}, this Atoll needs {ABI_VERSION}", hint=rebuild
        )
    return loaded


def call(name: str, *arguments: Any) -> None:
    """Call an exported function; its error, if any, is raised."""
    function = getattr(library(), name)
    problem = ffi.new("char[]", _PROBLEM_BYTES)
    code = function(*arguments, problem, _PROBLEM_BYTES)
    if code != 0:
        sentence = ffi.string(problem).decode("utf-8", "replace")
        raise _EXCEPTIONS.get(code, RunError)(sentence)


def bytes_in(data: Buffer) -> tuple[Any, int]:
    """A buffer of ours as pointer and length; it is not copied and must outlive the call."""
    pointer = ffi.from_buffer("uint8_t[]", data)
    if not isinstance(data, memoryview):
        return pointer, len(pointer)
    # Up to Python 3.12.3 the garbage collector crashes on a view in a cycle of references while its buffer
    # is held, and the traceback of an error of the library makes such a cycle: whoever sent the message could
    # end the process. So the view is kept alive, and its buffer is not held.
    start, size = ffi.cast("uint8_t*", pointer), len(pointer)
    ffi.release(pointer)
    return ffi.gc(start, functools.partial(_kept_until_now, data)), size


def _kept_until_now(data: memoryview, pointer: Any) -> None:
    """Nothing is left to do: the pointer is gone, and with it what kept its memory."""


def bytes_out(size: int) -> Room:
    """An array for the library to fill, its pointer and its length."""
    room = np.empty(size, dtype=np.uint8)
    return room, ffi.from_buffer("uint8_t[]", room, require_writable=True), size


def frozen(room: Room) -> memoryview:
    """What the library has filled, for nobody to write to any more: it may travel without a copy."""
    room[0].flags.writeable = False
    return room[0].data


def bytes_new(size: int) -> tuple[bytes, Any, int]:
    """Bytes for the library to fill before anybody else has them, their pointer and their length.

    What Python's interface for C allows of bytes made without contents; an array would be copied.
    """
    room: bytes = _bytes_without_contents(None, size)
    return room, ffi.from_buffer("uint8_t[]", room), size


def words_in(words: npt.NDArray[np.uint64]) -> tuple[Any, int]:
    """A contiguous array of 64-bit words as pointer and count."""
    return ffi.from_buffer("uint64_t[]", words), words.size


def words_out(words: npt.NDArray[np.uint64]) -> tuple[Any, int]:
    """The same, for the library to write to."""
    return ffi.from_buffer("uint64_t[]", words, require_writable=True), words.size


class BufferList:
    """Many buffers as the two arrays that the library takes; keeps them alive."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._kept = [bytes_in(buffer) for buffer in buffers]
        self.pointers = ffi.new("uint8_t*[]", [pointer for pointer, _ in self._kept])
        self.sizes = ffi.new("uint64_t[]", [size for _, size in self._kept])

    @property
    def arguments(self) -> tuple[Any, Any, int]:
        """Pointers, sizes and count, in the order of the C signatures."""
        return self.pointers, self.sizes, len(self._kept)


class Handle:
    """An object on the Go side, freed when this one is closed or collected."""

    def __init__(self, opener: str, *arguments: Any) -> None:
        place = ffi.new("uint64_t*")
        call(opener, *arguments, place)
        self._keep(int(place[0]))

    def _keep(self, number: int) -> None:
        self._number = number
        self._free = weakref.finalize(self, _release, number)

    @property
    def number(self) -> int:
        """The handle's number, as the library takes it."""
        if not self._free.alive:
            raise ParameterError("this object of the Go library is closed")
        return self._number

    def close(self) -> None:
        """Free the Go object; more than once does no harm."""
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GoObject:
    """Something that lives on the Go side, and shows nothing of itself."""

    _handle: Handle

    @property
    def number(self) -> int:
        """Its handle, for calls into the library."""
        return self._handle.number

    def close(self) -> None:
        """Free it now rather than when it is collected."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


def handles_from(count: int, name: str, *arguments: Any) -> list[Handle]:
    """The objects that one call opens, as many as asked for."""
    places = ffi.new("uint64_t[]", max(count, 1))
    if count:
        call(name, *arguments, places)
    opened = [Handle.__new__(Handle) for _ in range(count)]
    for i, handle in enumerate(opened):
        handle._keep(int(places[i]))
    return opened


def _release(number: int) -> None:
    # A forked child holds copies of its parent's handles: they are not its to free.
    if _library is not None and not _forked:
        _library.atoll_release(number, ffi.NULL, 0)


def live_handles() -> int:
    """How many Go objects are alive."""
    return int(library().atoll_live_handles())
