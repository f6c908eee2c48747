"""Slow packages are imported when first used, and then are what they always were."""

from __future__ import annotations

import subprocess
import sys

import pytest

from atoll.lazy import lazy


def test_a_module_is_imported_when_first_used() -> None:
    probe = (
        "import sys; from atoll.lazy import lazy\n"
        "assert 'wave' not in sys.modules\n"
        "wave = lazy('wave')\n"
        "assert 'wave' not in sys.modules\n"
        "assert wave.Error.__module__ == 'wave'\n"
        "assert 'wave' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_names_are_those_of_the_module() -> None:
    import math

    later = lazy("math")
    assert later.pi is math.pi
    assert vars(later)["pi"] is math.pi  # looked up once
    with pytest.raises(AttributeError, match="'math' has no attribute 'tau_squared'"):
        _ = later.tau_squared
    with pytest.raises(ModuleNotFoundError):
        _ = lazy("no_such_module").anything
