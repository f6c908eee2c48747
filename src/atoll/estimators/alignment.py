"""``atoll.align``: the rows that all islands have, in one order, by private set intersection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island, as_islands
from atoll.errors import DataError, ParameterError
from atoll.estimators.base import named_elsewhere, parties, run
from atoll.protocols.own import owned
from atoll.runtime.execute import Run
from atoll.study.model import Study


class Alignment(Mapping[str, Island]):
    """Every island's common rows, in one order for all: what a fit on split columns takes.

    ``rows``: which rows of each table these are; ``order``: the name of the order, which later fits compare;
    ``result_``, ``learned_`` and ``transcript_`` as with estimators.
    """

    def __init__(self, islands: Mapping[str, Island], finished: Run) -> None:
        self._islands = dict(islands)
        self._names = [a.party for a in finished.result.study.who("provider")]
        self.result_ = finished.result
        self.learned_ = finished.learned
        self.transcript_ = finished.result.transcript
        self.rows: dict[str, npt.NDArray[np.int64]] = dict(self.result_.outputs.get("rows", {}))
        self.order = str(self.result_["order"])
        self.common = int(self.result_["common"])

    def __getitem__(self, name: str) -> Island:
        return self._islands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._islands)

    def __len__(self) -> int:
        return len(self._islands)

    def __repr__(self) -> str:
        return f"<Alignment: {self.common:,} common rows of {', '.join(self._names)}>"


def align(tables: Any, on: str, *, normalise: str | Sequence[str] = "trim", engine: Any = None) -> Alignment:
    """Find the rows that all islands have, by the column of ids ``on``, and put them in one order.

    ``normalise``: rules by which ids are made alike: "trim" (white space at the ends), "spaces" (all white
    space), "case", "digits" (nothing but digits). Each island learns which of its own rows are common; no
    island learns of any other row of another. On an engine across machines islands are named, and each site
    keeps its own rows.

    >>> import atoll, pandas as pd
    >>> north = pd.DataFrame({"id": [3, 1, 2], "age": [33.0, 31.0, 32.0]})
    >>> south = pd.DataFrame({"id": ["2", "3", "9"], "pulse": [72.0, 73.0, 79.0]})
    >>> atoll.align({"north": north, "south": south}, on="id")
    <Alignment: 2 common rows of north, south>
    """
    if not isinstance(on, str):
        raise ParameterError(f"on={on!r} is not the name of a column", hint='on="patient"')
    rules = (normalise,) if isinstance(normalise, str) else tuple(normalise)
    unseen = named_elsewhere(tables, engine)
    islands = as_islands(tables) if unseen is None else unseen
    study = Study(
        name="alignment",
        analysis="alignment",
        protocol="align",
        partition="vertical",
        parties=parties(islands, "provider", "matcher"),
        parameters={"on": on, "normalise": rules},
        release={"rows": ("provider",), "order": ("provider", "matcher")},
    )
    finished = run(study, owned({} if unseen is not None else islands), engine)
    if not finished.result["common"]:
        raise DataError(
            f"the islands have no row in common by the column {on!r}",
            hint="are ids written alike everywhere? normalise=['trim', 'case'] makes them so",
        )
    if unseen is not None:
        return Alignment({}, finished)
    rows, order = finished.result["rows"], str(finished.result["order"])
    return Alignment(
        {name: island.aligned(rows[name], order, on) for name, island in islands.items()}, finished
    )
