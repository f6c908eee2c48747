"""``atoll.secure_sum``: add vectors of several islands so that only the total is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island
from atoll.errors import DataError, ParameterError
from atoll.estimators.base import named_elsewhere, parties, run, warn_of_missing
from atoll.protocols.own import owned
from atoll.study.model import Study


def secure_sum(
    vectors: Sequence[npt.ArrayLike] | Sequence[str] | Mapping[str, npt.ArrayLike],
    method: str = "shares",
    *,
    engine: Any = None,
    length: int | None = None,
    **options: Any,
) -> npt.NDArray[np.float64]:
    """The sum of arrays of one shape, one per island; ``options`` are those of the method.

    On an engine across machines islands are named: each has a table of one row, of ``length`` columns.

    >>> import atoll
    >>> atoll.secure_sum([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    array([111., 222.])
    """
    unseen = named_elsewhere(vectors, engine)
    if unseen is not None:
        if length is None:
            raise ParameterError("length is missing: vectors of named islands are not here", hint="length=3")
        study = _study(unseen, method, options, length)
        result = run(study, {}, engine).result
        warn_of_missing(unseen, result["islands"])
        return np.array(result["total"])
    arrays = _checked(vectors)
    shape = next(iter(arrays.values())).shape
    islands = {name: Island(array.reshape(1, -1), name=name) for name, array in arrays.items()}
    study = _study(islands, method, options, int(np.prod(shape)))
    result = run(study, owned(islands), engine).result
    warn_of_missing(islands, result["islands"])
    total: npt.NDArray[np.float64] = result["total"]
    return total.reshape(shape)


def _checked(
    vectors: Sequence[npt.ArrayLike] | Sequence[str] | Mapping[str, npt.ArrayLike],
) -> dict[str, npt.NDArray[np.float64]]:
    if not isinstance(vectors, Mapping):
        vectors = {f"island-{i}": vector for i, vector in enumerate(vectors)}
    arrays = {str(name): _numbers(str(name), vector) for name, vector in vectors.items()}
    if len(arrays) < 2:
        raise ParameterError(f"a secure sum needs at least 2 islands, got {len(arrays)}")
    shape = next(iter(arrays.values())).shape
    if 0 in shape:
        raise DataError(f"there is nothing to add in arrays of shape {shape}")
    for name, array in arrays.items():
        if array.shape != shape:
            raise DataError(f"{name} adds an array of shape {array.shape}, the first island one of {shape}")
        if not np.isfinite(array).all():
            place = int(np.argmax(~np.isfinite(array.ravel())))
            raise DataError(f"{name}: entry {place} is missing or infinite")
    return arrays


def _numbers(name: str, vector: npt.ArrayLike) -> npt.NDArray[np.float64]:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return np.asarray(vector, dtype=np.float64)
    # Raised here rather than where the conversion failed, whose error quotes a value.
    raise DataError(
        f"{name} adds something that is no array of numbers",
        hint="arrays of numbers, of one shape everywhere",
    )


def _study(islands: Mapping[str, Island], method: str, options: Mapping[str, Any], length: int) -> Study:
    return Study(
        name="secure sum",
        analysis="sum",
        protocol="sum",
        secure_sum=method,
        sum_options=options,
        parties=parties(islands, "contributor", "receiver"),
        parameters={"length": length},
        release={"total": ("receiver",)},
    )
