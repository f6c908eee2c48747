"""Tables whose rows an earlier alignment put in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from atoll.data.ids import fingerprint, normalised
from atoll.data.island import Island
from atoll.errors import DataError
from atoll.runtime.result import load_result


def aligned(island: Island, path: str | Path) -> Island:
    """The island's common rows in the order that all islands have, from its own result of the alignment.

    The table must still have these ids at these rows: a row that came or went since would move all others.
    """
    result = load_result(path)
    rows = result.outputs.get("rows")
    if not isinstance(rows, dict) or island.name not in rows or "fingerprint" not in result:
        raise DataError(
            f"{island.name}: {path} is not this island's result of an alignment",
            hint="name the .atoll file that the alignment wrote for this island",
        )
    on, rules = str(result.study.parameters["on"]), tuple(result.study.parameters["normalise"])
    ids, places = normalised(island, on, rules), np.asarray(rows[island.name], dtype=np.int64)
    there = [ids[row] for row in places] if len(places) and places.max() < len(ids) else []
    if not there or fingerprint(there) != result["fingerprint"][island.name]:
        raise DataError(
            f"{island.name}: the table has changed since its rows were aligned",
            hint="run the alignment again, at all islands",
        )
    return island.aligned(places, str(result["order"]), on)
