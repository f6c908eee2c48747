"""Protocols: what the roles of a study do, by analysis.

- :mod:`base`: what a protocol is, and the checks of a study against it
- :mod:`checked`: what can be checked of numbers that another role sends
- :mod:`handshake`: islands agree on columns and their order
- :mod:`agreement`: islands compare what they were told
- :mod:`booking`: one owner's ledger during one run
- :mod:`summation`: the secure sum alone
- :mod:`pca`: principal component analysis
"""

from __future__ import annotations

from atoll.errors import StudyError, one_of
from atoll.protocols import summation
from atoll.protocols.base import Learned, Protocol, check_study
from atoll.protocols.pca import baselines, privatelocal
from atoll.protocols.pca.dpdpca import protocol as dpdpca
from atoll.protocols.pca.pppca import protocol as pppca
from atoll.protocols.pca.sfpca import protocol as sfpca

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        pppca.PROTOCOL,
        dpdpca.PROTOCOL,
        sfpca.PROTOCOL,
        privatelocal.PROTOCOL,
        baselines.META,
        baselines.SEPARATE,
        summation.PROTOCOL,
    )
}

__all__ = ["PROTOCOLS", "Learned", "Protocol", "check_study", "protocol_of"]


def protocol_of(name: str) -> Protocol:
    """The protocol called ``name``."""
    if name not in PROTOCOLS:
        raise StudyError(
            f"there is no protocol called {name!r}",
            hint=one_of(name, PROTOCOLS),
            path=("study", "protocol"),
        )
    return PROTOCOLS[name]
