"""What both forms of DPDPCA share: roles, parameters, outputs."""

from __future__ import annotations

from typing import Literal

from atoll.privacy.dp_moments import CentreChoice, Rows
from atoll.privacy.sensitivity import Neighbours
from atoll.protocols.base import Output
from atoll.protocols.pca.released import OUTPUTS as PCA_OUTPUTS
from atoll.study.model import Parameters

OWNER, PROXY, DATA_USER = "owner", "proxy", "data_user"

# Never the proxy: where it made the noise, it could take it away again from the components.
_RECEIVERS = (OWNER, DATA_USER)

OUTPUTS = {
    "components": Output(
        PCA_OUTPUTS["components"].values,
        _RECEIVERS,
        DATA_USER,
        "the principal components, with the column names and, unless rows are taken in pairs, the private "
        "centre that project new rows",
    ),
    "explained_variance": Output(
        PCA_OUTPUTS["explained_variance"].values,
        _RECEIVERS,
        DATA_USER,
        "how much variance each component explains, and the total: of rows normalised to length one, "
        "or of rows cut at a radius, as the study's `rows` says; or of differences of rows (`centre`)",
    ),
    "n_samples": Output(
        ("n_samples",), _RECEIVERS, DATA_USER, "the number of rows of all islands together, noisy if private"
    ),
}


class DPDPCAParameters(Parameters, frozen=True):
    """``delta`` left out: pure epsilon. ``row_norm``: public bound on a row's norm.

    ``noise``: "distributed" or "local"; with calibration="paper" the mechanism that the proxy draws from,
    "gaussian" unless said otherwise. ``centre``: "pairs" takes rows in pairs, without a mean; ``padded``:
    owners then declare a capacity. ``mask`` (paper only): how the proxy hides v, by a multiple of N as
    printed, or "free".
    """

    epsilon: float
    delta: float | None = None
    row_norm: float | None = None
    n_components: int | float | None = 2
    columns: tuple[str, ...] | None = None
    rows: Rows = "normalise"
    neighbours: Neighbours = "add-remove"
    calibration: Literal["analytic", "paper"] = "analytic"
    noise: Literal["distributed", "local", "gaussian", "laplace", "wishart"] | None = None
    colluders: int = 1
    assume_centered: bool = False
    centre: CentreChoice = "mean"
    padded: bool = False
    mask: Literal["multiple", "free"] = "multiple"
