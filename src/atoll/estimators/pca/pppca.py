"""``atoll.PCA(protocol="pppca")``: two secure sums, with or without an epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

from atoll.data.island import Island
from atoll.errors import PrivacyWarning
from atoll.estimators.base import parties
from atoll.estimators.constraints import ANY, FLAG, Constraints, plain_number
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.joint import JointModel
from atoll.estimators.privacy_options import PRIVACY_OPTIONS, pair_parameters, privacy_parameters
from atoll.estimators.sum_options import sum_options
from atoll.study.model import Study


class PPPCA(JointModel):
    """Providers, a server that decomposes, and the caller as consumer."""

    protocol = "pppca"
    prepares = True
    options: ClassVar[Constraints] = {
        "secure_sum": ANY,
        "standardize": FLAG,
        "epsilon": ANY,
        "accept_determined": FLAG,
        "ledger": ANY,
        "whiten": FLAG,
    }
    private_options: ClassVar[Constraints] = PRIVACY_OPTIONS

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        private = (
            privacy_parameters(estimator) | pair_parameters(estimator, islands)
            if self.is_private(estimator)
            else {}
        )
        return Study(
            name="PCA",
            protocol=self.protocol,
            secure_sum=estimator.secure_sum,
            partition=estimator.partition,
            parties=parties(islands, "provider", "server", "consumer"),
            sum_options=sum_options(estimator),
            parameters={
                "n_components": plain_number(estimator.n_components),
                **column_parameters(estimator, islands, labels=True),
                "standardize": bool(estimator.standardize),
                **({"accept_determined": True} if estimator.accept_determined else {}),
                **private,
            },
            release={
                "components": ("provider", "consumer"),
                "explained_variance": ("consumer",),
                "n_samples": ("consumer",),
            },
        )

    def warn(self, estimator: Any) -> None:
        rows, columns = estimator.n_samples_, estimator.n_features_in_
        if estimator.epsilon is None and rows <= columns:
            warnings.warn(
                f"the joint table has {rows} rows for {columns} columns: its mean and covariance, which the "
                "server learns, then say much about single rows",
                PrivacyWarning,
                stacklevel=3,
            )
