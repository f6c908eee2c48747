"""Models that are made of released moments, by name, and rows drawn from any of them.

"maximum-entropy" where the joint table is small enough to be held, else "latent-classes";
"gaussian" is probabilistic PCA itself, "tree" what ``marginal`` measures. A model is plain data: arrays and
numbers, no row of anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from atoll import randomness
from atoll.errors import AtollError, DataError
from atoll.protocols.checked import MAX_ROWS, refuse
from atoll.protocols.synthesis import latent_classes, maximum_entropy, ppca, trees
from atoll.protocols.synthesis.moments import Codes, Floats, Moments
from atoll.protocols.synthesis.schema import Column, Wanted, anything, decode, wanted
from atoll.study.address import Address

Decoder = Literal["auto", "maximum-entropy", "latent-classes", "gaussian"]

Sampler = Callable[[dict[str, Any], Sequence[int], Sequence[Floats], int, randomness.Public], Codes]

SAMPLERS: dict[str, Sampler] = {
    "maximum-entropy": maximum_entropy.sample,
    "latent-classes": latent_classes.sample,
    "gaussian": ppca.sample,
    "tree": trees.sample,
}


def fitted(
    moments: Moments, decoder: Decoder, contribution: float, n_components: int | None
) -> dict[str, Any]:
    """Components of the release, and the model that its rows are drawn from."""
    components = ppca.fit(moments, contribution, n_components)
    small = maximum_entropy.fits(moments.sizes)
    kind = decoder if decoder != "auto" else "maximum-entropy" if small else "latent-classes"
    if kind == "maximum-entropy":
        values = maximum_entropy.fit(moments)
    elif kind == "latent-classes":
        values = latent_classes.fit(moments)
    else:
        values = ppca.model(moments, components)
    return {
        **_plain(kind, moments, values),
        "components": components.loadings,
        "noise_variance": components.noise_variance,
        "explained_variance": components.explained,
        "total_variance": components.total,
    }


def of_tables(moments: Moments, edges: trees.Edges, decoder: str) -> dict[str, Any]:
    """The model of a release in which the pairs of a tree were measured again."""
    values = trees.fit(moments, edges) if decoder == "tree" else latent_classes.fit(moments)
    return {**_plain(decoder, moments, values), "tree": [list(edge) for edge in edges]}


def _plain(kind: str, moments: Moments, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "sizes": list(moments.sizes),
        "count": moments.count,
        "margins": np.concatenate(moments.margins),
        "values": values,
    }


def check(model: Mapping[str, Any], sizes: Sequence[int], sender: Address) -> None:
    """Refuse a model of other columns, of more rows than anybody has, or that no row can be drawn from."""
    kind = model.get("kind")
    if kind not in SAMPLERS or tuple(model.get("sizes", ())) != tuple(sizes):
        raise refuse(sender, "a model that is not one of the study's columns")
    if not (isinstance(model.get("count"), float) and abs(model["count"]) < MAX_ROWS):
        raise refuse(sender, "a model of a number of rows that cannot be")
    try:
        # Whoever draws from it makes the whole table: an owner's memory is not the sender's to fill.
        possible = kind != "maximum-entropy" or maximum_entropy.fits(sizes)
        weights = [np.ones(size) for size in sizes]
        if possible:
            SAMPLERS[kind](dict(model["values"]), sizes, weights, 1, randomness.public(0))
    except (LookupError, TypeError, ValueError, AtollError):
        possible = False
    if not possible:
        raise refuse(sender, "a model that no row can be drawn from")


def sample(
    model: Mapping[str, Any],
    schema: Sequence[Column],
    bins: int,
    n: int,
    where: Mapping[str, Any],
    rng: randomness.Public,
) -> dict[str, Any]:
    """So many rows, by column; ``where`` says what some columns must be."""
    known = {column.name for column in schema}
    strange = [name for name in where if name not in known]
    if strange:
        raise DataError(
            f"there is no column {strange[0]!r} to set a condition on",
            hint=f"columns are {', '.join(map(repr, list(known)[:5]))}",
        )
    sizes = tuple(int(k) for k in model["sizes"])
    asked: list[Wanted] = [
        wanted(column, bins, where[column.name]) if column.name in where else anything(column, size)
        for column, size in zip(schema, sizes, strict=True)
    ]
    weights = [one.weights for one in asked]
    codes = SAMPLERS[model["kind"]](dict(model["values"]), sizes, weights, n, rng)
    return {column.name: decode(codes[:, a], column, bins, asked[a], rng) for a, column in enumerate(schema)}
