"""Protocols: one file per paper."""

from __future__ import annotations

from atoll.errors import StudyError, one_of
from atoll.protocols import base, summation
from atoll.protocols.base import Learned, Protocol, check_study
from atoll.protocols.pca import baselines, privatelocal
from atoll.protocols.pca.dpdpca import protocol as dpdpca
from atoll.protocols.pca.pppca import protocol as pppca
from atoll.protocols.pca.sfpca import protocol as sfpca
from atoll.study.model import Study

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

__all__ = ["PROTOCOLS", "Learned", "Protocol", "check_study", "protocol_of", "resolve"]


def protocol_of(name: str) -> Protocol:
    """The protocol called ``name``."""
    if name not in PROTOCOLS:
        raise StudyError(
            f"there is no protocol called {name!r}",
            hint=one_of(name, PROTOCOLS),
            path=("study", "protocol"),
        )
    return PROTOCOLS[name]


def resolve(study: Study) -> Study:
    """The study, checked, with all options of its protocol filled in: what is reviewed, approved and run."""
    return base.resolve(protocol_of(study.protocol), study)
