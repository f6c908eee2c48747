"""``atoll.PCA(protocol="meta")`` and ``"separate"``: what the papers compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from atoll.data.island import Island
from atoll.errors import ParameterError
from atoll.estimators.base import parties
from atoll.estimators.constraints import ANY, FLAG, Constraints, plain_number
from atoll.estimators.pca.adapter import Adapter, Matrix
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.joint import JointModel, projected
from atoll.runtime.execute import Run
from atoll.study.model import Study


class Meta(JointModel):
    """Each island's leading components, merged by a server that sees them."""

    protocol = "meta"
    options: ClassVar[Constraints] = {"ledger": ANY, "whiten": FLAG, "between_means": FLAG}

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        return Study(
            name="PCA",
            protocol=self.protocol,
            partition=estimator.partition,
            parties=parties(islands, "provider", "server", "consumer"),
            parameters={
                "n_components": plain_number(estimator.n_components),
                "standardize": False,
                "between_means": bool(estimator.between_means),
                **column_parameters(estimator, islands, labels=True),
            },
            release={
                "components": ("provider", "consumer"),
                "explained_variance": ("consumer",),
                "n_samples": ("consumer",),
            },
        )


class Separate(Adapter):
    """Every island for itself: as many models as islands, and no joint one."""

    protocol = "separate"
    options: ClassVar[Constraints] = {"standardize": FLAG}

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        return Study(
            name="PCA",
            protocol=self.protocol,
            partition=estimator.partition,
            parties=parties(islands, "provider"),
            parameters={
                "n_components": plain_number(estimator.n_components),
                "standardize": bool(estimator.standardize),
                **column_parameters(estimator, islands, labels=True),
            },
            release={"models": ("provider",)},
        )

    def take(self, estimator: Any, run: Run) -> None:
        estimator.models_ = run.result["models"]

    def check_use(self, estimator: Any, what: str) -> None:
        del estimator
        if what != "fit_transform":
            raise self._no_joint_model()

    def transform(self, estimator: Any, X: Matrix) -> Matrix:
        del estimator, X
        raise self._no_joint_model()

    def transform_islands(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        return [_own_scores(table, estimator.models_[name]) for name, table in islands.items()]

    def _no_joint_model(self) -> ParameterError:
        return ParameterError(
            "protocol='separate' has one model per island and no joint one",
            hint="models_ holds them; fit_transform projects each island with its own",
        )


def _own_scores(table: Island, model: Mapping[str, Any]) -> Matrix:
    X = table.features(model["columns"] or table.columns)
    return projected(X, model["components"], model["mean"], model["scale"])
