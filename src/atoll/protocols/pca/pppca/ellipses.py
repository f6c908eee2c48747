"""Ellipses: where each island's rows lie along the components, and how far they spread.

An output of its own, for pictures in which an island sees the others without seeing their rows. Every island
computes its own ellipse from its own projections and sends it to those whom the study names; the server is no
part of it.

Reveals, of every island, its mean and covariance along the first components, at most five, rounded: means and
deviations to three digits, means also to a hundredth of the deviation, correlations to a hundredth. With the
components, that is the island's own mean and covariance as far as those components reach. Rounding is not
for the eye alone: a mean in doubles along a few components says the mean of every column, where columns hold
whole numbers (as in :mod:`determined`). An island with fewer rows than the study says refuses it before
anything leaves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import UNSET

from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import DataError
from atoll.network import Network
from atoll.protocols import checked
from atoll.protocols.base import Disclosure, Output, Outputs
from atoll.protocols.pca.pppca.parameters import ELLIPSE_ROWS, PPPCAParameters
from atoll.protocols.pca.released import CONSUMER, PROVIDER
from atoll.study.address import Address
from atoll.study.model import Study

MOST_COMPONENTS: Final = 5
"""Pictures show no more, so no more is sent."""
BYTES: Final = 8 * (2 * MOST_COMPONENTS + MOST_COMPONENTS * (MOST_COMPONENTS - 1) // 2) + 60
"""Of one message, at most."""

NAME: Final = "ellipses"
OUTPUT: Final = Output(
    (NAME,),
    (PROVIDER, CONSUMER),
    "each island's mean and spread along the first components (at most five), rounded, for pictures",
)


class Ellipse(Message, frozen=True):
    """Provider -> provider, consumer: mean, deviations and correlations of its projections, rounded."""

    mean: np.ndarray[Any, Any]
    deviation: np.ndarray[Any, Any]
    correlation: np.ndarray[Any, Any]
    """Of every two components: the triangle above the diagonal, row by row."""


def receivers(study: Study) -> tuple[Address, ...]:
    """To whom the study releases them."""
    return tuple(a for a in study.receivers(NAME) if a.role in OUTPUT.roles)


def check_rows(study: Study, island: str, n: int) -> None:
    """Refuse, before anything leaves, to say where so few rows lie."""
    least = least_rows(study)
    if receivers(study) and n < least:
        raise DataError(
            f"{island}: the table has {n} rows, and the study releases ellipses of islands with at least "
            f"{least}",
            hint="leave ellipses out of the study's [release], or take part with more rows",
        )


def least_rows(study: Study) -> int:
    stated = study.read_parameters(PPPCAParameters).ellipse_rows
    return ELLIPSE_ROWS if stated is UNSET else stated


def ellipse_of(scores: Matrix) -> Ellipse:
    """Of an island's own projections. Rows that do not vary along a component have no correlations there."""
    rows = scores[:, :MOST_COMPONENTS]
    covariance = np.atleast_2d(np.cov(rows.T))
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    deviation = _digits(spread)
    products = np.outer(spread, spread)
    correlation = np.divide(covariance, products, out=np.zeros_like(covariance), where=products > 0)
    above = np.triu_indices(len(spread), 1)
    return Ellipse(
        _on_grid(rows.mean(axis=0), deviation), deviation, np.clip(np.round(correlation[above], 2), -1.0, 1.0)
    )


def _on_grid(mean: Matrix, deviation: Matrix) -> Matrix:
    """Hundredths of the deviation, of a mean of three digits: alone, hundredths of a tiny deviation would say
    all of it."""
    step = np.where(deviation > 0, deviation / 100, 1.0)
    short = _digits(mean)
    return np.where(deviation > 0, np.round(short / step) * step, short)


def _digits(values: Matrix) -> Matrix:
    """The first three digits."""
    return np.array([float(f"{value:.2e}") for value in values])


async def exchange(net: Network, study: Study, scores: Matrix, staying: tuple[str, ...]) -> Outputs:
    """Send one's own, and receive those of the islands that stayed, where the study releases them here."""
    mine, k = ellipse_of(scores), min(scores.shape[1], MOST_COMPONENTS)
    for address in receivers(study):
        if address != net.me and (address.role != PROVIDER or address.party in staying):
            await net.send(address, mine)
    if not study.releases(NAME, net.me):
        return {}
    others = [a for a in study.who(PROVIDER) if a.party in staying and a != net.me]
    arrived = await net.gather(Ellipse, others)
    return joined({**arrived, net.me: mine}, k, staying)


async def receive(net: Network, study: Study, providers: list[Address]) -> Outputs:
    """What a consumer is sent, of as many components everywhere."""
    arrived = await net.gather(Ellipse, providers)
    first = next(iter(arrived.values()))
    stated = study.read_parameters(PPPCAParameters).n_components
    k = min(stated, MOST_COMPONENTS) if isinstance(stated, int) else _length(first)
    return joined(arrived, k, tuple(address.party for address in providers))


def _length(told: Ellipse) -> int:
    return len(told.deviation) if told.deviation.ndim == 1 else 0


def joined(arrived: dict[Address, Ellipse], k: int, order: tuple[str, ...]) -> Outputs:
    """By island: mean, deviations and the matrix of correlations, of k components."""
    found = {}
    for address, told in arrived.items():
        _check(told, k, address)
        correlation = np.eye(k)
        correlation[np.triu_indices(k, 1)] = told.correlation
        correlation = correlation + correlation.T - np.eye(k)
        found[address.party] = {
            "mean": told.mean,
            "deviation": told.deviation,
            "correlation": correlation,
        }
    return {NAME: {party: found[party] for party in order}}


def _check(told: Ellipse, k: int, sender: Address) -> None:
    if not 1 <= k <= MOST_COMPONENTS:
        raise checked.refuse(sender, f"an ellipse along {k} components")
    checked.check_floats(told.mean, (k,), "the mean of an ellipse", sender)
    checked.check_floats(told.deviation, (k,), "the deviations of an ellipse", sender)
    checked.check_floats(told.correlation, (k * (k - 1) // 2,), "the correlations of an ellipse", sender)
    if (told.deviation < 0).any() or (np.abs(told.correlation) > 1).any():
        raise checked.refuse(sender, "an ellipse with deviations below zero, or correlations beyond one")


def learns(study: Study) -> list[Disclosure]:
    """What ellipses reveal, and to whom."""
    said = []
    for role in OUTPUT.roles:
        parties = tuple(address.party for address in receivers(study) if address.role == role)
        if parties:
            words = (
                "the ellipse of every island: its own mean and covariance along the first components (at "
                f"most {MOST_COMPONENTS}), to about one part in a hundred"
            )
            said.append(Disclosure(role, words, (Ellipse,), (NAME,), parties))
            words = (
                "ellipses are about islands, not about all rows together: they say in what an island's rows "
                f"differ from the others', and that it has at least {least_rows(study)} of them; with the "
                "components they give the island's own mean and covariance as far as those reach"
            )
            said.append(Disclosure(role, words, (), (), parties))
    return said


def messages(study: Study) -> int:
    """How many are sent, where everybody stays."""
    providers = len(study.who(PROVIDER))
    return sum(providers - (address.role == PROVIDER) for address in receivers(study))
