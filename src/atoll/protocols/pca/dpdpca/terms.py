"""What both forms of DPDPCA share: roles, parameters, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from atoll.protocols.base import Output
from atoll.protocols.pca.released import OUTPUTS as PCA_OUTPUTS
from atoll.protocols.private_options import Noise, Privacy, PrivateParameters

OWNER, PROXY, DATA_USER = "owner", "proxy", "data_user"

# Never the proxy: where it made the noise, it could take it away again from the components.
_RECEIVERS = (OWNER, DATA_USER)

OUTPUTS = {
    "components": Output(
        PCA_OUTPUTS["components"].values,
        _RECEIVERS,
        "the principal components, with the column names and, unless rows are taken in pairs, the private "
        "centre that project new rows",
    ),
    "explained_variance": Output(
        PCA_OUTPUTS["explained_variance"].values,
        _RECEIVERS,
        "how much variance each component explains, and the total: of rows normalised to length one, "
        "or of rows cut at a radius, as the study says; or of differences of rows, where these are in pairs",
    ),
    "n_samples": Output(
        ("n_samples",), _RECEIVERS, "the number of rows of all islands together, noisy if private"
    ),
}


class DPDPCAParameters(PrivateParameters, frozen=True):
    """``calibration``: "paper" is the published form, with ``noise`` of a mechanism that the proxy draws from
    ("gaussian" unless said otherwise). ``mask`` (paper only): how the proxy hides v, by a multiple of N as
    printed, or "free"."""

    needs = ("epsilon",)
    noises = get_args(Noise)

    privacy: Privacy
    n_components: int | float | None = 2
    columns: tuple[str, ...] | None = None
    calibration: Literal["analytic", "paper"] = "analytic"
    mask: Literal["multiple", "free"] = "multiple"

    @classmethod
    def default_noise(cls, stated: Mapping[str, Any]) -> Noise:
        return "gaussian" if stated.get("calibration") == "paper" else "distributed"
