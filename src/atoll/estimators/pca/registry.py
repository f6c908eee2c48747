"""Which adapter serves which protocol; packages add theirs as entry points of ``atoll.estimators.pca``."""

from __future__ import annotations

from atoll.errors import ParameterError
from atoll.estimators.pca.adapter import Adapter
from atoll.estimators.pca.baselines import Meta, Separate
from atoll.estimators.pca.dpdpca import DPDPCA
from atoll.estimators.pca.pppca import PPPCA
from atoll.estimators.pca.privatelocal import PrivateLocal
from atoll.estimators.pca.sfpca import SFPCA
from atoll.plugins import brought, brought_names

GROUP = "atoll.estimators.pca"

ADAPTERS: dict[str, Adapter] = {
    adapter.protocol: adapter for adapter in (PPPCA(), DPDPCA(), SFPCA(), Meta(), Separate(), PrivateLocal())
}


def adapter_of(protocol: str) -> Adapter:
    """The adapter of the protocol called ``protocol``; Atoll's own come first."""
    if protocol in ADAPTERS:
        return ADAPTERS[protocol]
    adapter: type[Adapter] | None = brought(GROUP, protocol)
    if adapter is None:
        known = (*ADAPTERS, *brought_names(GROUP))
        raise ParameterError(
            f"there is no protocol {protocol!r}", hint=f"one of {', '.join(map(repr, known))}"
        )
    return adapter()
