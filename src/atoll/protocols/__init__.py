"""Protocols: what the roles of a study do, by analysis.

- :mod:`own`: what is one party's alone in a run: its table, its ledger, the shares it kept
- :mod:`base`: what a protocol is, and the checks of a study against it
- :mod:`checked`: what can be checked of numbers that another role sends
- :mod:`handshake`: islands agree on columns and their order
- :mod:`fields`: the same with the levels of columns that hold categories
- :mod:`agreement`: islands compare what they were told
- :mod:`private_options`: the options of a differentially private release, declared once
- :mod:`noise_shares`: noise in shares of owners, and what the secure sum must withstand
- :mod:`booking`: one owner's ledger during one run
- :mod:`preparation`: what a study does to tables before its protocol reads them
- :mod:`guards`: guard rails that every island keeps for itself
- :mod:`summation`: the secure sum alone
- :mod:`pca`: principal component analysis
- :mod:`learning`: regression, classification and clustering
- :mod:`synthesis`: synthetic data
- :mod:`alignment`: the rows that all islands have, where each holds columns
"""

from __future__ import annotations

from atoll.errors import StudyError, one_of
from atoll.protocols import base
from atoll.protocols.base import Learned, Protocol, check_study
from atoll.registry import Registry
from atoll.study.model import Study

PROTOCOLS: Registry[Protocol] = Registry(
    "atoll.protocols",
    "a protocol",
    Protocol,
    {
        "pppca": "atoll.protocols.pca.pppca.protocol:PROTOCOL",
        "dpdpca": "atoll.protocols.pca.dpdpca.protocol:PROTOCOL",
        "sfpca": "atoll.protocols.pca.sfpca.protocol:PROTOCOL",
        "sfpca-paper": "atoll.protocols.pca.sfpca.paper.protocol:PROTOCOL",
        "sfpca-later": "atoll.protocols.pca.sfpca.later:PROTOCOL",
        "privatelocal": "atoll.protocols.pca.privatelocal:PROTOCOL",
        "meta": "atoll.protocols.pca.baselines:META",
        "separate": "atoll.protocols.pca.baselines:SEPARATE",
        "sum": "atoll.protocols.summation:PROTOCOL",
        "glm": "atoll.protocols.learning.glm:PROTOCOL",
        "least-squares": "atoll.protocols.learning.least_squares:PROTOCOL",
        "classifier": "atoll.protocols.learning.classifier:PROTOCOL",
        "kmeans": "atoll.protocols.learning.kmeans:PROTOCOL",
        "least-squares-columns": "atoll.protocols.learning.columns.kinds:LEAST_SQUARES_PROTOCOL",
        "classifier-columns": "atoll.protocols.learning.columns.kinds:CLASSIFIER_PROTOCOL",
        "kmeans-columns": "atoll.protocols.learning.columns.kinds:KMEANS_PROTOCOL",
        "least-squares-encrypted": "atoll.protocols.learning.encrypted.protocol:PROTOCOL",
        "least-squares-encrypted-rows": "atoll.protocols.learning.encrypted.rows:PROTOCOL",
        "gradient-descent": "atoll.protocols.learning.descent.protocol:PROTOCOL",
        "describe": "atoll.protocols.learning.describe:PROTOCOL",
        "ppca-synthesis": "atoll.protocols.synthesis.protocol:PROTOCOL",
        "ppca-dp-mh": "atoll.protocols.synthesis.paper:PROTOCOL",
        "marginal-synthesis": "atoll.protocols.synthesis.marginal:PROTOCOL",
        "align": "atoll.protocols.alignment.protocol:PROTOCOL",
    },
)
"""Every protocol by name; packages add theirs as entry points of this group."""

__all__ = ["PROTOCOLS", "Learned", "Protocol", "check_study", "protocol_of", "resolve"]


def protocol_of(name: str) -> Protocol:
    """The protocol called ``name``."""
    if name not in PROTOCOLS:
        raise StudyError(
            f"there is no protocol called {name!r}",
            hint=one_of(name, PROTOCOLS.names()),
            path=("study", "protocol"),
        )
    return PROTOCOLS[name]


def resolve(study: Study) -> Study:
    """The study, checked, with all options of its protocol filled in: what is reviewed, approved and run."""
    return base.resolve(protocol_of(study.protocol), study)
