"""``atoll.PCA(protocol="dpdpca")``: differential privacy, with a proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from atoll.data.island import Island
from atoll.estimators.base import parties
from atoll.estimators.constraints import ANY, FLAG, Constraints, given, plain_number
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.joint import JointModel
from atoll.estimators.privacy_options import PRIVACY_OPTIONS, pair_parameters, privacy_parameters
from atoll.estimators.sum_options import sum_options
from atoll.study.model import Study


class DPDPCA(JointModel):
    """Islands as owners, a proxy that adds, and the caller as data user."""

    protocol = "dpdpca"
    prepares = True
    options: ClassVar[Constraints] = {
        "secure_sum": ANY,
        "calibration": ANY,
        "whiten": FLAG,
        **PRIVACY_OPTIONS,
        "epsilon": given("protocol='dpdpca' needs an epsilon", "epsilon=1.0, delta=1e-5, row_norm=..."),
    }

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        return Study(
            name="PCA",
            protocol=self.protocol,
            secure_sum=estimator.secure_sum,
            partition=estimator.partition,
            parties=parties(islands, "owner", "proxy", "data_user"),
            sum_options=sum_options(estimator),
            parameters={
                "n_components": plain_number(estimator.n_components),
                **column_parameters(estimator, islands),
                "calibration": estimator.calibration,
                **privacy_parameters(estimator),
                **pair_parameters(estimator, islands),
            },
            release={
                "components": ("owner", "data_user"),
                "explained_variance": ("data_user",),
                "n_samples": ("data_user",),
            },
        )
