"""``atoll.PCA(protocol="privatelocal")``: every island adds noise of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from atoll.data.island import Island
from atoll.estimators.base import parties
from atoll.estimators.constraints import ANY, FLAG, Constraints, given, plain_number
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.joint import JointModel
from atoll.study.model import Study

_NEEDED = given(
    "protocol='privatelocal' adds Gaussian noise: it needs both epsilon and delta",
    "for example epsilon=1.0, delta=1e-6",
)
_PARAMETERS = {
    "epsilon": _NEEDED,
    "delta": _NEEDED,
    "row_norm": ANY,
    "rows": ANY,
    "neighbours": ANY,
    "calibration": ANY,
}


class PrivateLocal(JointModel):
    """Islands as owners, one after the other, and the caller as data user."""

    protocol = "privatelocal"
    options: ClassVar[Constraints] = {**_PARAMETERS, "ledger": ANY, "whiten": FLAG}

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        return Study(
            name="PCA",
            protocol=self.protocol,
            partition=estimator.partition,
            parties=parties(islands, "owner", "data_user"),
            parameters={
                "n_components": plain_number(estimator.n_components),
                **{name: getattr(estimator, name) for name in _PARAMETERS},
                **column_parameters(estimator, islands),
            },
            release=dict.fromkeys(("components", "explained_variance", "n_samples"), ("data_user",)),
        )
