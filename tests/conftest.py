"""Shared set-up: a fixed, quick hypothesis profile, and no warning unseen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Where Python keeps no bytecode, every one of the many processes that tests start would compile all its
# libraries again: it is kept beside pytest's own cache, for workers and processes of this run as well.
if sys.dont_write_bytecode:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    sys.dont_write_bytecode = False

import pytest
from hypothesis import HealthCheck, settings

# A table measured by whoever runs the tests must not decide what they see.
os.environ["ATOLL_CALIBRATION"] = os.devnull + "/none"
# Nor must their ledger be read, and above all not written.
os.environ["ATOLL_HOME"] = os.devnull + "/none"

settings.register_profile(
    "atoll",
    deadline=None,
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("atoll")


@pytest.fixture(scope="session", autouse=True)
def forced_path() -> None:
    """A path of the processor that is forced is the one that is taken: ``make paths`` rests on it."""
    forced = os.environ.get("ATOLL_VECTOR", "auto")
    if forced != "auto":
        from atoll.crypto.products import vector_path

        assert vector_path() == forced


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, which are forgotten afterwards."""
    from tests.support.packages import forget_strangers

    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield folder
    forget_strangers()
    for module in [
        name for name, it in sys.modules.items() if str(folder) in str(getattr(it, "__file__", ""))
    ]:
        del sys.modules[module]
