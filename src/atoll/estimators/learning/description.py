"""``atoll.describe``: the joint "Table 1" of tables on several islands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.data.island import as_islands
from atoll.errors import ParameterError
from atoll.estimators.base import parties, run
from atoll.lazy import lazy
from atoll.protocols.base import MIN_ISLANDS
from atoll.protocols.learning.describe import QUANTILES
from atoll.protocols.own import owned
from atoll.study.model import Study

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


class Description:
    """A joint description in frames: ``numbers``, ``correlation``, ``levels`` and ``tables``."""

    def __init__(self, values: Mapping[str, Any], result: Any) -> None:
        self.result_ = result
        self.n_rows = int(values["rows"])
        names = list(values["numbers"])
        columns = {key: np.asarray(values[key]) for key in ("count", "missing", "mean", "std")}
        self.numbers = pd.DataFrame(columns, index=names)
        for i, q in enumerate(QUANTILES):
            told = {name: found[i] for name, found in values["quantiles"].items()}
            if told:
                self.numbers[f"{q:.0%}"] = np.array([told.get(name) for name in names], dtype=np.float64)
        self.correlation = pd.DataFrame(np.asarray(values["correlation"]), index=names, columns=names)
        self.levels = {name: _levels(found) for name, found in values["levels"].items()}
        self.tables = {
            name: pd.DataFrame(found["counts"], index=found["rows"], columns=found["columns"])
            for name, found in values["tables"].items()
        }

    def __repr__(self) -> str:
        parts = [f"{self.n_rows:,} rows", str(self.numbers.round(4))]
        parts += [f"{name}\n{frame}" for name, frame in {**self.levels, **self.tables}.items()]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        frames = [self.numbers, *self.levels.values(), *self.tables.values()]
        return f"<p>{self.n_rows:,} rows</p>" + "".join(frame.to_html() for frame in frames)


def _levels(found: Mapping[str, Any]) -> pd.DataFrame:
    index = [*found["levels"], "(missing)"]
    return pd.DataFrame({"count": [*found["counts"], found["missing"]]}, index=index)


def describe(
    islands: Any,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float]] | None = None,
    bins: int = 1000,
    tables: Sequence[tuple[str, str]] = (),
    min_count: int = 5,
    secure_sum: str = "shares",
    engine: Any = None,
) -> Description:
    """Counts, means, deviations, quantiles, levels, correlations and two-way tables over all islands.

    Quantiles are of columns with a public range, to one of ``bins`` parts of it. Cells with fewer than
    ``min_count`` rows are left out, with others that would give them back.

    >>> import atoll
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data[["alcohol", "ash"]]
    >>> told = atoll.describe([wine[:60], wine[60:]], ranges={"alcohol": (10, 16)})
    >>> told.numbers.loc["alcohol", "50%"].round(2)
    np.float64(13.05)
    """
    held = as_islands(islands)
    if len(held) < MIN_ISLANDS:
        raise ParameterError(f"describe needs at least {MIN_ISLANDS} islands, got {len(held)}")
    said: dict[str, Any] = {"bins": int(bins), "min_count": int(min_count)}
    said |= {"columns": tuple(columns)} if columns is not None else {}
    said |= {"categorical": tuple(categorical)} if categorical else {}
    said |= {"ranges": {k: tuple(map(float, v)) for k, v in ranges.items()}} if ranges else {}
    said |= {"tables": tuple(map(tuple, tables))} if tables else {}
    study = Study(
        name="description",
        analysis="description",
        protocol="describe",
        secure_sum=secure_sum,
        parties=parties(held, "provider", "server", "consumer"),
        parameters=said,
        release={"description": ("consumer",)},
    )
    result = run(study, owned(held), engine).result
    return Description(result["description"], result)
