"""Which adapter serves which protocol; packages add theirs as entry points of ``atoll.estimators.pca``."""

from __future__ import annotations

from atoll.errors import ParameterError
from atoll.estimators.pca.adapter import Adapter
from atoll.registry import Registry

ADAPTERS: Registry[type[Adapter]] = Registry(
    "atoll.estimators.pca",
    "an adapter of atoll.PCA",
    Adapter,
    {
        "pppca": "atoll.estimators.pca.pppca:PPPCA",
        "dpdpca": "atoll.estimators.pca.dpdpca:DPDPCA",
        "sfpca": "atoll.estimators.pca.sfpca:SFPCA",
        "meta": "atoll.estimators.pca.baselines:Meta",
        "separate": "atoll.estimators.pca.baselines:Separate",
        "privatelocal": "atoll.estimators.pca.privatelocal:PrivateLocal",
    },
)
"""By the name of the protocol."""


def adapter_of(protocol: str, variant: str = "fast") -> Adapter:
    """The adapter of the protocol called ``protocol``, in one of its variants."""
    if protocol not in ADAPTERS:
        known = ", ".join(map(repr, ADAPTERS.names()))
        raise ParameterError(f"there is no protocol {protocol!r}", hint=f"one of {known}")
    return ADAPTERS[protocol]().of_variant(variant)
