"""Private PCA and analytics across data islands."""

from __future__ import annotations

from atoll.data.island import Island
from atoll.errors import AtollError
from atoll.estimators.decomposition import PCA
from atoll.estimators.summation import secure_sum
from atoll.runtime.faults import Faults
from atoll.runtime.local import LocalEngine
from atoll.runtime.result import Result, load_result
from atoll.study.model import Study

__version__ = "0.1.0"

__all__ = [
    "PCA",
    "AtollError",
    "Faults",
    "Island",
    "LocalEngine",
    "Result",
    "Study",
    "load_result",
    "secure_sum",
]
