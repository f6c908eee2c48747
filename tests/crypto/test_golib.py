"""The C surface: loading, errors, handles, processes, the GIL."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atoll import errors
from atoll.crypto.hazmat import golib, lattice
from atoll.crypto.hazmat.parameters import INSECURE_TEST_SINGLE

SOURCE = Path(golib.__file__).parents[3]


def run_script(script: str) -> str:
    """Run a script in a fresh interpreter; a hang or a crash is a failure."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestProcesses:
    def test_a_forked_child_gets_a_clear_error(self) -> None:
        out = run_script("""
            import os
            from atoll import errors
            from atoll.crypto.hazmat import lattice
            key = lattice.PublicKey(lattice.keygen().public)
            child = os.fork()
            if child == 0:
                try:
                    lattice.keygen()
                except errors.RunError as problem:
                    key.close()  # the parent's handle: nothing happens, nothing hangs
                    os._exit(7 if "spawn" in problem.hint else 8)
                os._exit(9)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), len(lattice.table()))
        """)
        assert out == "7 8"

    def test_a_child_forked_before_the_library_was_loaded_may_use_it(self) -> None:
        out = run_script("""
            import os
            from atoll.crypto.hazmat import lattice
            child = os.fork()
            if child == 0:
                os._exit(len(lattice.table()))
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status))
        """)
        assert out == "8"

    def test_a_spawned_child_may_use_it(self) -> None:
        assert golib.available()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(lattice.table) == lattice.table()
            pool.close()
            pool.join()


class TestMissing:
    def test_no_library_is_one_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(errors.MissingComponent, match="not installed") as caught:
            golib._load(tmp_path / "libatoll.so")
        assert caught.value.hint is not None

    def test_what_is_no_library_is_one_clear_error(self, tmp_path: Path) -> None:
        path = tmp_path / "libatoll.so"
        path.write_bytes(b"not a library")
        with pytest.raises(errors.MissingComponent, match="does not load"):
            golib._load(path)

    def test_an_older_library_is_one_clear_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(golib, "ABI_VERSION", 99)
        with pytest.raises(errors.MissingComponent, match="needs 99"):
            golib._load(golib.LIBRARY_PATH)

    def test_everything_imports_without_it(self) -> None:
        out = run_script("""
            from pathlib import Path
            from atoll.crypto.hazmat import golib
            golib.LIBRARY_PATH = Path("/nowhere/libatoll.so")
            from atoll import errors
            from atoll.crypto.hazmat import lattice
            print(golib.available())
            try:
                lattice.keygen()
            except errors.MissingComponent as problem:
                print(problem.exit_code)
        """)
        assert out == "False\n7"


class TestSurface:
    def test_a_closed_handle(self) -> None:
        handle = golib.Handle("atoll_additive_adder", 0)
        number = handle.number
        handle.close()
        with pytest.raises(errors.ParameterError, match="closed"):
            _ = handle.number
        with pytest.raises(errors.ParameterError, match=f"handle {number} is closed"):
            golib.call("atoll_release", number)

    @pytest.mark.parametrize("number", [0, 2**64 - 1])
    def test_a_handle_that_never_was(self, number: int) -> None:
        place = golib.ffi.new("uint64_t*")
        with pytest.raises(errors.ParameterError, match="is closed"):
            golib.call("atoll_additive_adder_size", number, place)

    def test_a_handle_of_another_kind(self) -> None:
        place = golib.ffi.new("uint64_t*")
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        key = lattice.PublicKey(pair.public, for_tests=True)
        with pytest.raises(errors.ParameterError, match="not to a"):
            golib.call("atoll_additive_adder_size", key._handle.number, place)

    def test_null_pointers(self) -> None:
        null = golib.ffi.NULL
        with pytest.raises(errors.ParameterError):
            golib.call("atoll_additive_adder", 0, null)
        with pytest.raises(errors.ParameterError):
            golib.call("atoll_additive_size", null, 0, null)
        with pytest.raises(errors.MessageError):
            golib.call("atoll_additive_open_public", null, 0, 0, null)
        with pytest.raises(errors.ParameterError):
            golib.call("atoll_additive_aggregate", null, null, 0, 0, null, 0)

    def test_a_panic_is_an_exception(self) -> None:
        # No slice is that long: Go panics, and the process lives on.
        data = golib.ffi.new("uint8_t[8]")
        place = golib.ffi.new("uint64_t*")
        with pytest.raises(errors.RunError, match="internal error"):
            golib.call("atoll_additive_open_public", data, 2**63 + 8, 0, place)
        assert len(lattice.table()) == 8

    def test_the_gil_is_free_during_a_call(self) -> None:
        pair = lattice.keygen()
        key = lattice.PublicKey(pair.public)
        vector = np.zeros((3, 400_000), np.uint64)
        span: list[float] = []

        def encrypt() -> None:
            span.append(time.perf_counter())
            key.encrypt(vector)
            span.append(time.perf_counter())

        thread = threading.Thread(target=encrypt)
        thread.start()
        ticks = []
        while thread.is_alive():
            ticks.append(time.perf_counter())
        thread.join()
        begin, end = span
        quarter = (end - begin) / 4
        assert sum(begin + quarter < tick < end - quarter for tick in ticks) > 10

    def test_threads_share_one_key(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        key = lattice.PublicKey(pair.public, for_tests=True)
        secret = lattice.SecretKey(pair.secret, for_tests=True)
        adder = lattice.Adder(for_tests=True)
        vector = np.arange(3 * 2000, dtype=np.uint64).reshape(3, 2000)
        failures: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(10):
                    ciphertext = key.encrypt(vector)
                    assert np.array_equal(secret.decrypt(ciphertext), vector)
                    adder.add(ciphertext)
            except BaseException as problem:
                failures.append(problem)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert np.array_equal(secret.decrypt(adder.finish()), 60 * vector)


def test_a_view_that_the_library_reads_is_kept_and_its_buffer_is_not_held() -> None:
    """The garbage collector of Python up to 3.12.3 crashes on a view in a cycle while a buffer of it is held.

    An error of the library makes such a cycle: a message that it refuses could end the receiver's process.
    """
    view = memoryview(b"from somebody else")
    pointer, size = golib.bytes_in(view)
    assert bytes(golib.ffi.buffer(pointer, size)) == b"from somebody else"
    kept = weakref.ref(view)
    del view
    assert kept() is not None
    del pointer
    assert kept() is None
    view = memoryview(b"from somebody else")
    again = golib.bytes_in(view)
    view.release()  # a BufferError while somebody holds a buffer
    del again


def test_a_forked_child_frees_nothing_of_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go's runtime does not survive a fork: a call would hang, when Python collects what it inherited."""
    freed: list[int] = []

    class Library:
        def atoll_release(self, number: int, *_: Any) -> None:
            freed.append(number)

    monkeypatch.setattr(golib, "_library", Library())
    golib._release(1)
    monkeypatch.setattr(golib, "_forked", True)
    golib._release(2)
    assert freed == [1]


def test_what_the_library_has_filled_nobody_writes_to() -> None:
    """It travels without a copy: what is sent again must be what was sent."""
    room = golib.bytes_out(8)
    view = golib.frozen(room)
    assert view.readonly
    with pytest.raises(ValueError, match="read-only"):
        room[0][0] = 1
