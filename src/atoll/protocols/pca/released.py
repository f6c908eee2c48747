"""What PCA protocols release, and how it reaches those to whom the study releases it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import structs

from atoll.codec import Message
from atoll.data.island import Island, Matrix
from atoll.errors import MessageError, SchemaError
from atoll.network import Network
from atoll.privacy.noise_statement import MOST_LEADING, NoiseStatement
from atoll.protocols import checked
from atoll.protocols.base import Output, Outputs
from atoll.study.address import Address
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"


class Model(Message, frozen=True):
    """Server -> consumer: components, mean and divisors, which project new rows."""

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
    noise: NoiseStatement | None = None
    """How much of the components is noise, where the study is private."""


class SampleCount(Message, frozen=True):
    """Server -> consumer: the number of rows n, and the islands whose rows these are."""

    n_samples: int
    islands: tuple[str, ...]


class Projection(Message, frozen=True):
    """Provider -> consumer: the projections X'_i of its rows; labels and row ids where the study says."""

    scores: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any] | None
    classes: tuple[str, ...]
    ids: tuple[str, ...] = ()


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
        "the principal components, with the column names, means and divisors that project new rows",
    ),
    "explained_variance": Output(
        ("explained_variance", "total_variance", "noise_variance", "noise"),
        _EVERYONE,
        "how much variance each component explains, and the total",
    ),
    "n_samples": Output(
        ("n_samples", "islands"),
        _EVERYONE,
        "the number of rows of all islands together, and which islands they are",
    ),
    "scores": Output(
        ("scores", "labels", "ids"),
        (CONSUMER,),
        "every row's projection onto the components, with the label column and the row ids where the study "
        "names them",
    ),
}


VARIANCES = OUTPUTS["explained_variance"].values
ROW_COUNT = OUTPUTS["n_samples"].values
MODEL_VALUES = (*OUTPUTS["components"].values, *VARIANCES, *ROW_COUNT)
"""What whoever has the covariance, the mean and the number of rows can compute."""


def named(message: Message) -> Outputs:
    """A message's fields as outputs: plain data. A run without noise has no statement of it."""
    outputs = {field: getattr(message, field) for field in message.__struct_fields__}
    if isinstance(message, Variances):
        said = outputs.pop("noise")
        outputs |= {} if said is None else {"noise": structs.asdict(said)}
    return outputs


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


async def receive_released(
    net: Network, study: Study, sender: Address, columns: tuple[str, ...] | None = None
) -> Outputs:
    """The other end of :func:`send_released`; ``columns``: the agreed ones, for a role that knows them."""
    known: Outputs = {}
    for output, kind in MESSAGES.items():
        if study.releases(output, net.me):
            message = await net.receive(kind, sender)
            check_released(message, study, sender, columns)
            known |= named(message)
    return known


def check_released(
    message: Message, study: Study, sender: Address, columns: tuple[str, ...] | None = None
) -> None:
    """Refuse what cannot be an output of this study."""
    k = study.parameters.get("n_components")
    if isinstance(message, Model):
        d = len(columns) if columns is not None else _width(message.components)
        checked.check_components(message.components, k, d, sender)
        _check_mean(message.mean, study, d, sender)
        if message.scale is not None:
            checked.check_scale(message.scale, d, sender)
        _check_columns(message.columns, study, d, columns, sender)
    elif isinstance(message, Variances):
        if isinstance(k, int) and message.explained_variance.shape != (k,):
            raise checked.refuse(sender, f"{message.explained_variance.shape} variances of {k} components")
        checked.check_variances(
            message.explained_variance, message.total_variance, message.noise_variance, sender
        )
        if message.noise is not None:
            _check_noise(message.noise, len(message.explained_variance), sender)
    elif isinstance(message, SampleCount):
        checked.check_number(message.n_samples, "a number of rows", sender, least=1)
        checked.check_islands(message.islands, study.addresses(), 1, sender)


def _check_noise(said: NoiseStatement, k: int, sender: Address) -> None:
    """Angles, for 1 to k components; a centre's noise is a length, and a part of the whole."""
    leading = tuple(j for j in range(1, k + 1) if j <= MOST_LEADING or j == k)
    for angles in (said.angles, said.typical):
        checked.check_floats(angles, (len(leading),), "angles", sender)
        if said.leading != leading or (angles < 0).any() or (angles > 90).any():
            raise checked.refuse(sender, "angles that are none, or of other components")
    checked.check_number(said.centre, "the length of a centre's noise", sender, least=0.0)
    checked.check_number(said.centre_share, "the share of a centre's noise", sender, least=0.0)
    if said.rows not in ("normalise", "clip", "pairs") or said.centre_share > 1.0:
        raise checked.refuse(sender, "a statement of the noise that cannot be")


def _width(components: np.ndarray[Any, Any]) -> int:
    return components.shape[1] if components.ndim == 2 else 0


def _check_mean(mean: np.ndarray[Any, Any] | None, study: Study, d: int, sender: Address) -> None:
    """Differences of rows have no mean; everything else has one."""
    if (mean is None) != (study.parameters.get("centre") == "pairs"):
        raise checked.refuse(sender, "a mean where there is none, or none where there is one")
    if mean is not None:
        checked.check_floats(mean, (d,), "a mean", sender)


def _check_columns(
    names: tuple[str, ...] | None, study: Study, d: int, agreed: tuple[str, ...] | None, sender: Address
) -> None:
    wanted = study.parameters.get("columns")
    due = tuple(wanted) if wanted is not None else agreed
    if names is not None and (len(names) != d or (due is not None and names != due)):
        raise checked.refuse(sender, "a model of other columns than those of the study")


def labelled(scores: Matrix, island: Island, label: str | None, row_ids: str | None = None) -> Projection:
    """An island's projection, with its labels and row ids where the study names them."""
    labels, classes = island.labels(label) if label is not None else (None, ())
    return Projection(scores, labels, classes, () if row_ids is None else island.row_ids(row_ids))


def joined_scores(arrived: dict[str, Projection]) -> Outputs:
    """The consumer's view of all projections, island by island."""
    _check_projections(arrived)
    _check_label_kinds(arrived)
    scores = {party: message.scores for party, message in arrived.items()}
    labels = {
        party: _plain_labels(message) for party, message in arrived.items() if message.labels is not None
    }
    ids = {party: list(message.ids) for party, message in arrived.items() if message.ids}
    return {"scores": scores, "labels": labels or None, "ids": ids or None}


def _check_projections(arrived: dict[str, Projection]) -> None:
    """Finite scores of as many components everywhere, and a label for every row."""
    widths = {message.scores.shape[1:] for message in arrived.values()}
    for party, message in arrived.items():
        rows = len(message.scores) if message.scores.ndim else 0
        if len(widths) > 1 or message.scores.ndim != 2 or not np.isfinite(message.scores).all():
            raise MessageError(f"{party} sent projections that are not those of the study's components")
        if len(message.ids) not in (0, rows):
            raise MessageError(f"{party} sent {len(message.ids)} row ids for its {rows} rows")
        if message.labels is None:
            continue
        codes = message.labels if message.classes else np.zeros(rows, np.int64)
        kind = codes.dtype.kind == "i" and ((codes >= 0) & (codes < max(1, len(message.classes)))).all()
        if message.labels.shape != (rows,) or not kind:
            raise MessageError(f"{party} sent labels that are not those of its {rows} rows")


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
