"""Private set intersection: two islands of 100,000 ids, beside openmined-psi where it is installed.

    python -m benchmarks.alignment [ROWS]

The peer's protocol is for two, shows the result to one of them only, and has no order for later runs; it is
run here as its documentation has it: client and server in one process, raw intersection, no false positives.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

import atoll

ROWS = 100_000


def tables(rows: int) -> dict[str, pd.DataFrame]:
    """Half of the ids are common."""
    draw = np.random.default_rng(1)
    return {
        name: pd.DataFrame(
            {"id": draw.permutation(np.arange(start, start + rows)), name: draw.normal(size=rows)}
        )
        for name, start in (("north", 0), ("south", rows // 2))
    }


def ours(data: dict[str, pd.DataFrame]) -> tuple[float, float, int]:
    wall, processor = time.perf_counter(), time.process_time()
    common = atoll.align(data, on="id").common
    return time.perf_counter() - wall, time.process_time() - processor, common


def peer(ids: Sequence[Sequence[str]]) -> tuple[float, int] | None:
    """openmined-psi: elliptic-curve Diffie and Hellman over P-256, on one core."""
    try:
        import private_set_intersection.python as psi
    except ImportError:
        return None
    start = time.perf_counter()
    client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
    theirs, mine = ids
    setup = server.CreateSetupMessage(0.0, len(mine), list(theirs), psi.DataStructure.RAW)
    response = server.ProcessRequest(client.CreateRequest(list(mine)))
    common = len(client.GetIntersection(setup, response))
    return time.perf_counter() - start, common


def main(rows: int) -> None:
    data = tables(rows)
    wall, processor, common = ours(data)
    print(
        f"atoll          {rows:,} ids at each of 2: {wall:6.1f} s, {processor:6.1f} s CPU, {common:,} common"
    )
    other = peer([[str(one) for one in table["id"]] for table in data.values()])
    if other is None:
        print("openmined-psi  not installed")
    else:
        print(f"openmined-psi  {rows:,} ids at each of 2: {other[0]:6.1f} s, {other[1]:,} common")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
