"""When PPPCA's outputs say the second moments to those who are not the server.

The server learns mean and covariance by the protocol's nature. Everybody else has the mean, components in
doubles and, where the study releases them, variances; :mod:`determined` counts what these say together. No
range of the columns is known here: a run refuses what is determined for whole numbers within 2^16, the
review also names narrower ranges.
"""

from __future__ import annotations

from typing import Protocol

from atoll.protocols.base import Circumstances
from atoll.protocols.pca import determined
from atoll.protocols.pca.decompose import Decomposition
from atoll.protocols.pca.determined import Given, Table
from atoll.protocols.pca.released import CONSUMER, PROVIDER, SERVER
from atoll.study.address import Address
from atoll.study.model import Study


class Options(Protocol):
    """What of PPPCA's parameters matters here."""

    @property
    def n_components(self) -> int | float | None: ...
    @property
    def standardize(self) -> bool: ...
    @property
    def accept_determined(self) -> bool: ...
    @property
    def epsilon(self) -> float | None: ...


def outsiders(study: Study) -> list[Address]:
    """Roles that are given components and play no server."""
    server = study.the(SERVER).party
    projects = any(address.role == CONSUMER for address in study.receivers("scores"))
    projects = projects or bool(study.receivers("ellipses"))
    holders = set(study.receivers("components")) | set(study.who(PROVIDER) if projects else ())
    return [address for address in study.addresses() if address in holders and address.party != server]


def given(study: Study, p: Options) -> Given:
    """What outsiders have."""
    # Ellipses of all islands together say, roughly, the variances along the components.
    telling = ("explained_variance", "ellipses")
    variances = any(study.releases(output, address) for address in outsiders(study) for output in telling)
    return Given(mean=True, variances=variances, scales=p.standardize)


def check_outputs(study: Study, p: Options, n: int, d: int) -> None:
    """Refuse components that would say the covariance to somebody else than the server."""
    if not p.accept_determined and not isinstance(p.n_components, float) and outsiders(study):
        determined.check(Table(d, n), p.n_components or min(n, d), given(study, p))


def check_found(study: Study, p: Options, n: int, T: Decomposition) -> None:
    """The same once the components are known, and how much variance they leave; before they are sent."""
    if p.accept_determined or not outsiders(study):
        return
    k, d = T.components.shape
    out = given(study, p)
    determined.check(Table(d, n), k, out)
    if out.variances:
        determined.check_spectrum(T.explained_variance.tolist(), T.total_variance, d)


def review_words(study: Study, known: Circumstances, p: Options) -> tuple[str, ...]:
    """Where the line is for tables of this size."""
    if p.epsilon is not None or not outsiders(study):
        return ()
    n, k = sum(known.rows) or determined.ASSUMED_ROWS * len(study.who(PROVIDER)), p.n_components
    return determined.review_words(
        [Table(known.columns, n, within) for within in determined.EXAMPLE_RANGES],
        k if isinstance(k, int) else None,
        given(study, p),
        accepted=p.accept_determined,
        refused_within=determined.WIDEST,
        asked=not isinstance(k, float),  # how many a share of the variance takes is not known yet
    )
