"""Small counts are left out of what is released, and so are others that would give them back.

A count from 1 to ``least`` - 1 is small. A single one left out of a list (or of a row or column of a table)
could be had from the total, so the next smallest count there is left out with it. Zeros stay: they say that
nobody is there, not who is.

Which cells of a table follow from the others is a question about a graph: rows and columns are its nodes,
cells that were left out its edges, and a cell follows from the totals exactly if its edge is a bridge
(Gusfield, A Graph Theoretic Approach to Statistical Data Security, 1988). Totals that a list of levels leaves
out are edges as well, to one node more on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]


def suppressed_list(counts: Sequence[int], least: int) -> list[int | None]:
    """Counts of one list, whose total is known; None for what is left out."""
    values = np.array(counts, dtype=np.int64)
    out = (values > 0) & (values < least)
    _complement(values, out, least)
    return [None if hidden else int(value) for value, hidden in zip(values, out, strict=True)]


def suppressed_table(
    counts: Counts,
    least: int,
    hidden_rows: Sequence[bool] | None = None,
    hidden_columns: Sequence[bool] | None = None,
) -> list[list[int | None]]:
    """Counts of a two-way table; None for what is left out.

    Totals of rows and columns are known from the lists of levels, but for those that a list leaves out
    (``hidden_rows``, ``hidden_columns``), which the table must not give back either.
    """
    values = np.array(counts, dtype=np.int64)
    rows, columns = values.shape
    out = np.zeros((rows + 1, columns + 1), dtype=np.bool_)
    out[:rows, :columns] = (values > 0) & (values < least)
    out[:rows, columns] = False if hidden_rows is None else hidden_rows
    out[rows, :columns] = False if hidden_columns is None else hidden_columns
    while True:
        before = int(out.sum())
        for i in range(rows):
            _complement(values[i], out[i, :columns], least)
        for j in range(columns):
            _complement(values[:, j], out[:rows, j], least)
        _break_bridges(values, out)
        if int(out.sum()) == before:
            break
    return [
        [None if hidden else int(value) for value, hidden in zip(row, flags, strict=True)]
        for row, flags in zip(values, out[:rows, :columns], strict=True)
    ]


def _complement(values: Counts, out: Flags, least: int) -> None:
    """Leave out the next smallest count too, while those left out together would be told by the total.

    One alone is the total less the others; two or more whose sum is below ``least`` are still small.
    """
    while out.any() and (out.sum() == 1 or values[out].sum() < least):
        if not _hide_smallest(values, out):
            return


def _hide_smallest(values: Counts, out: Flags) -> bool:
    candidates: Any = np.flatnonzero(~out & (values > 0))
    if len(candidates) == 0:
        candidates = np.flatnonzero(~out)  # a zero hides it as well: nobody knows which is which
    if len(candidates) == 0:
        return False
    out[candidates[np.argmin(values[candidates])]] = True
    return True


def _break_bridges(values: Counts, out: Flags) -> None:
    """Beside every cell or total that follows from the rest, leave out one cell more."""
    rows, columns = values.shape
    for i, j in bridges(out):
        in_row = i < rows and _hide_smallest(values[i], out[i, :columns])
        if not in_row and j < columns:
            _hide_smallest(values[:, j], out[:rows, j])


def bridges(out: Flags) -> list[tuple[int, int]]:
    """The edges (row, column) that lie on no cycle."""
    rows, columns = out.shape
    near = [[rows + int(j) for j in np.flatnonzero(out[i])] for i in range(rows)]
    near += [[int(i) for i in np.flatnonzero(out[:, j])] for j in range(columns)]
    order, low = [-1] * len(near), [0] * len(near)
    found: list[tuple[int, int]] = []
    seen = 0
    for root in range(len(near)):
        if order[root] >= 0:
            continue
        path = [(root, -1, iter(near[root]))]
        order[root] = low[root] = seen = seen + 1
        while path:
            node, parent, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[parent] = min(low[parent], low[node])
                    if low[node] > order[parent]:
                        found.append((min(node, parent), max(node, parent) - rows))
            elif following != parent and order[following] >= 0:
                low[node] = min(low[node], order[following])
            elif following != parent:
                order[following] = low[following] = seen = seen + 1
                path.append((following, node, iter(near[following])))
    return sorted(found)
