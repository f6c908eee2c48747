"""What PCA protocols release, and how it reaches those to whom the study releases it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.data.island import Island, Matrix
from atoll.errors import SchemaError
from atoll.network import Address, Network
from atoll.protocols.base import Output, Outputs
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"


class Model(Message, frozen=True):
    """Server -> consumer: what projects new rows."""

    components: np.ndarray[Any, Any]
    mean: np.ndarray[Any, Any] | None
    """None where nobody knows it: a private study that takes rows in pairs."""
    scale: np.ndarray[Any, Any] | None
    columns: tuple[str, ...] | None


class Variances(Message, frozen=True):
    """Server -> provider, consumer: explained and total variance."""

    explained_variance: np.ndarray[Any, Any]
    total_variance: float
    noise_variance: float


class SampleCount(Message, frozen=True):
    """Server -> consumer: n, and the islands whose rows these are."""

    n_samples: int
    islands: tuple[str, ...]


class Projection(Message, frozen=True):
    """Provider -> consumer: X'_i, with labels where the study names them."""

    scores: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any] | None
    classes: tuple[str, ...]


MESSAGES: dict[str, type[Message]] = {
    "components": Model,
    "explained_variance": Variances,
    "n_samples": SampleCount,
}
"""Which message brings which output."""

PCA_MESSAGES = (*MESSAGES.values(), Projection)

_EVERYONE = (PROVIDER, SERVER, CONSUMER)

OUTPUTS = {
    "components": Output(
        ("components", "mean", "scale", "columns"),
        _EVERYONE,
        SERVER,
        "the principal components, with the column names, means and divisors that project new rows",
    ),
    "explained_variance": Output(
        ("explained_variance", "total_variance", "noise_variance"),
        _EVERYONE,
        SERVER,
        "how much variance each component explains, and the total",
    ),
    "n_samples": Output(
        ("n_samples", "islands"),
        _EVERYONE,
        SERVER,
        "the number of rows of all islands together, and which islands they are",
    ),
    "scores": Output(
        ("scores", "labels"),
        (CONSUMER,),
        PROVIDER,
        "every row's projection onto the components, with the label column where the study names one",
    ),
}


def named(message: Message) -> Outputs:
    """A message's fields as outputs."""
    return {field: getattr(message, field) for field in message.__struct_fields__}


async def send_released(
    net: Network,
    study: Study,
    addresses: Iterable[Address],
    model: Model,
    variances: Variances,
    count: SampleCount,
) -> None:
    """Hand every role what the study releases to it."""
    for address in addresses:
        if study.releases("components", address):
            await net.send(address, model)
        if study.releases("explained_variance", address):
            await net.send(address, variances)
        if study.releases("n_samples", address):
            await net.send(address, count)


async def receive_released(net: Network, study: Study, sender: Address) -> Outputs:
    """The other end of :func:`send_released`."""
    known: Outputs = {}
    for output, kind in MESSAGES.items():
        if study.releases(output, net.me):
            known |= named(await net.receive(kind, sender))
    return known


def labelled(scores: Matrix, island: Island, label: str | None) -> Projection:
    """An island's projection, with its labels where the study names them."""
    labels, classes = island.labels(label) if label is not None else (None, ())
    return Projection(scores, labels, classes)


def joined_scores(arrived: dict[str, Projection]) -> Outputs:
    """The consumer's view of all projections, island by island."""
    _check_label_kinds(arrived)
    scores = {party: message.scores for party, message in arrived.items()}
    labels = {
        party: _plain_labels(message) for party, message in arrived.items() if message.labels is not None
    }
    return {"scores": scores, "labels": labels or None}


def _check_label_kinds(arrived: dict[str, Projection]) -> None:
    kinds = {party: _label_kind(message) for party, message in arrived.items()}
    first, kind = next(iter(kinds.items()))
    for party, other in kinds.items():
        if other != kind:
            raise SchemaError(
                f"the labels of {party} are {other}, those of {first} are {kind}",
                hint="give the label column the same type everywhere",
            )


def _label_kind(message: Projection) -> str:
    if message.labels is None:
        return "missing"
    if message.classes:
        return "text"
    return {"b": "true or false", "i": "whole numbers"}.get(message.labels.dtype.kind, "numbers")


def _plain_labels(message: Projection) -> list[Any]:
    assert message.labels is not None
    if not message.classes:
        return list(message.labels.tolist())
    return [message.classes[code] for code in message.labels]
