"""What is released of a split model: each part to its owner, the whole to whom the study names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import MessageError
from atoll.network import Network
from atoll.protocols import checked
from atoll.protocols.base import Output
from atoll.protocols.learning.columns.table import Joint
from atoll.study.address import Address
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"
EVERYONE = (PROVIDER, SERVER, CONSUMER)
OFFSETS = "offsets"
"""The round in which owners add what belongs to no column."""

Made = Callable[[Joint, Matrix, Matrix], dict[str, Any]]
"""A model from the table, everybody's columns side by side, and what belongs to no column."""


class OwnPart(Message, frozen=True):
    """Provider -> whom the model is released to: its own columns' part of it."""

    names: tuple[str, ...]
    values: np.ndarray[Any, Any]


class Rest(Message, frozen=True):
    """Server -> whom the model is released to: what belongs to no column, summed over all owners."""

    intercept: np.ndarray[Any, Any]
    classes: tuple[str, ...]


class CommonRows(Message, frozen=True):
    """Server -> consumer: the number of rows, and whose columns they have."""

    n_samples: int
    islands: tuple[str, ...]


OUTPUTS = {
    "part": Output(("part",), (PROVIDER,), "each island's own part of the model, to that island"),
    "model": Output(("model",), EVERYONE, "the whole model, of all islands' columns"),
    "n_samples": Output(
        ("n_samples", "islands"), EVERYONE, "the number of rows, and which islands hold their columns"
    ),
}


def own_part(net: Network, study: Study, joint: Joint, w: Matrix, offset: Matrix) -> dict[str, Any]:
    """What a provider has at the end: its part of the model, and what everybody knows."""
    place = study.who(PROVIDER).index(net.me)
    start = sum(joint.widths[:place])
    names = joint.names[start : start + joint.widths[place]]
    mine = {"names": names, "coefficients": np.ascontiguousarray(w), "offset": offset}
    return {"part": {net.me.party: mine}, **common(study, joint)}


def common(study: Study, joint: Joint) -> dict[str, Any]:
    """The number of rows, and whose columns they have."""
    return {"n_samples": joint.rows, "islands": tuple(a.party for a in study.who(PROVIDER))}


async def tell_part(net: Network, study: Study, known: Mapping[str, Any]) -> None:
    """A provider's side: its part goes to whom the model is released to."""
    mine = known["part"][net.me.party]
    told = OwnPart(mine["names"], mine["coefficients"])
    await net.broadcast([a for a in study.receivers("model") if a != net.me], told)


async def tell_rest(net: Network, study: Study, joint: Joint, intercept: Matrix) -> None:
    """The server's side: what belongs to no column, and the number of rows."""
    receivers = [a for a in study.receivers("model") if a != net.me]
    await net.broadcast(receivers, Rest(intercept, joint.classes))
    consumers = [a for a in study.receivers("n_samples") if a.role == CONSUMER]
    await net.broadcast(consumers, CommonRows(joint.rows, common(study, joint)["islands"]))


async def counted_rows(net: Network, study: Study) -> dict[str, Any]:
    """A consumer's side of the number of rows."""
    server, islands = study.the(SERVER), study.who(PROVIDER)
    count = await net.receive(CommonRows, server)
    checked.check_islands(count.islands, islands, len(islands), server)
    if not 0 < count.n_samples < checked.MAX_ROWS:
        raise checked.refuse(server, "a number of rows that cannot be")
    return {"n_samples": count.n_samples, "islands": count.islands}


async def whole(
    net: Network,
    study: Study,
    made: Made,
    own: Mapping[Address, OwnPart],
    known: tuple[Matrix, tuple[str, ...]] | None = None,
    classes: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """The model, from everybody's parts. ``known``: intercept and classes, where this role has them;
    ``classes``: where it was told of these before."""
    group, server = study.who(PROVIDER), study.the(SERVER)
    if known is None:
        rest = await net.receive(Rest, server)
        known = np.asarray(rest.intercept), rest.classes
        checked.check_floats(known[0], (len(known[0]),), "an intercept", server)
        if rest.classes != (rest.classes if classes is None else classes):
            raise checked.refuse(server, "other classes at the end than at the start")
        if len(set(rest.classes)) < len(rest.classes):
            raise checked.refuse(server, "a class twice")
    intercept, classes = known
    parts = dict(own)
    parts |= await net.gather(OwnPart, [a for a in group if a not in own])
    names: list[str] = []
    for address in group:
        part = parts[address]
        checked.check_floats(part.values, (len(intercept), len(part.names)), "a part of a model", address)
        names.extend(part.names)
    W = np.hstack([np.asarray(parts[a].values) for a in group])
    if len(set(names)) < len(names):
        raise MessageError("the parts of the model name a column twice", hint="start a new run")
    return made(Joint(tuple(names), (), True, 0, classes), W, intercept)
