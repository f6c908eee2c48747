"""Trees of two-way tables: which pairs to measure, and rows drawn along the tree.

Selection only looks at released numbers: a pair's score is the squared length of its second moments beyond
what margins say, less what noise alone would show; the tree of largest total score is taken (Chow and Liu).
Tables are made of released moments: singular values of the measured dependence are shrunk as is best against
noise of known width (Gavish and Donoho), negative cells are put to zero, and margins are made right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll import randomness
from atoll.errors import DataError
from atoll.protocols.synthesis.latent_classes import drawn
from atoll.protocols.synthesis.moments import Codes, Floats, Moments, helmert

_ROUNDS = 50
_SMALLEST = 1e-12

Edges = tuple[tuple[int, int], ...]


# ---- selection ----


def selected(moments: Moments) -> Edges:
    """The tree of largest total score, as (parent, child), parents first."""
    m = len(moments.sizes)
    score = np.full((m, m), -np.inf)
    for a in range(m):
        for b in range(a + 1, m):
            beyond = dependence(moments, a, b)
            score[a, b] = score[b, a] = (beyond**2).sum() - beyond.size * moments.second_noise[a, b] ** 2
    inside, found = [int(np.argmax(score.max(axis=1)))], []
    while len(inside) < m:
        outside = [a for a in range(m) if a not in inside]
        part = score[np.ix_(inside, outside)]
        i, j = np.unravel_index(int(np.argmax(part)), part.shape)
        found.append((inside[i], outside[j]))
        inside.append(outside[j])
    return tuple(found)


def dependence(moments: Moments, a: int, b: int) -> Floats:
    """Second moments of two columns beyond what their margins say, in orthonormal coordinates."""
    u, v = (helmert(moments.sizes[c]).T @ moments.margins[c] for c in (a, b))
    return np.asarray(moments.second[np.ix_(moments.owner == a, moments.owner == b)] - np.outer(u, v))


def is_tree(edges: Sequence[tuple[int, int]], columns: int) -> bool:
    """Whether every column but the first parent is the child of one that came before."""
    if len(edges) != columns - 1 or not edges:
        return False
    seen = {edges[0][0]}
    for parent, child in edges:
        if parent not in seen or child in seen or not 0 <= child < columns or not 0 <= parent < columns:
            return False
        seen.add(child)
    return True


# ---- tables ----


def fit(moments: Moments, edges: Edges) -> dict[str, Any]:
    """The model of a release: a two-way table for every edge, one after the other."""
    tables = [_table(moments, *edge).ravel() for edge in edges]
    return {"edges": [list(edge) for edge in edges], "tables": np.concatenate(tables)}


def tables_of(values: dict[str, Any], sizes: Sequence[int]) -> list[Floats]:
    """The tables of a model, edge by edge."""
    shapes = [(sizes[int(a)], sizes[int(b)]) for a, b in values["edges"]]
    ends = np.cumsum([a * b for a, b in shapes])[:-1]
    parts = np.split(np.asarray(values["tables"]), ends)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _table(moments: Moments, a: int, b: int) -> Floats:
    p, q = moments.margins[a], moments.margins[b]
    kept = _shrunk(dependence(moments, a, b), float(moments.second_noise[a, b]))
    table = np.outer(p, q) + helmert(len(p)) @ kept @ helmert(len(q)).T
    table = np.maximum(table, _SMALLEST)
    for _ in range(_ROUNDS):
        table *= (p / table.sum(axis=1))[:, None]
        table *= q / table.sum(axis=0)
    return np.asarray(table)


def _shrunk(matrix: Floats, noise: float) -> Floats:
    """The best shrinkage of singular values in the squared error, for noise of this width in every entry."""
    if not matrix.size:
        return matrix
    rows, columns = sorted(matrix.shape)
    beta = rows / columns
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    y = values / (noise * math.sqrt(columns))
    inside = np.maximum((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0)
    kept = np.where(y > 1.0 + math.sqrt(beta), np.sqrt(inside) / np.maximum(y, 1e-300), 0.0)
    return np.asarray((left * (kept * noise * math.sqrt(columns))) @ right)


# ---- rows ----


def sample(
    values: dict[str, Any], sizes: Sequence[int], weights: Sequence[Floats], n: int, rng: randomness.Public
) -> Codes:
    """Rows of cells, under the conditions: what lies below a column tells it how likely its cells are."""
    edges = [(int(a), int(b)) for a, b in values["edges"]]
    tables, below = tables_of(values, sizes), [np.array(weight) for weight in weights]
    given = []
    for (parent, child), table in zip(reversed(edges), reversed(tables), strict=True):
        share = table / np.maximum(table.sum(axis=1, keepdims=True), _SMALLEST) * below[child]
        given.append(share)
        below[parent] = below[parent] * share.sum(axis=1)
    root = edges[0][0]
    margin = tables[0].sum(axis=1) * below[root]
    if not margin.sum() > 0.0:
        raise DataError("no row of the model fits the conditions", hint="a wider condition")
    codes = np.zeros((n, len(sizes)), dtype=np.int64)
    codes[:, root] = drawn(margin[None], np.zeros(n, dtype=np.int64), rng)
    for (parent, child), share in zip(edges, reversed(given), strict=True):
        codes[:, child] = drawn(share, codes[:, parent], rng)
    return codes
