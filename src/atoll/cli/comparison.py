"""The demo's yardsticks: the PCA of the pooled table, and each hospital's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn.decomposition
from sklearn.preprocessing import StandardScaler

from atoll.cli.hospitals import LABEL
from atoll.estimators.pca.estimator import PCA
from atoll.report.agreement import cosines, largest_angle
from atoll.runtime.result import Result


@dataclass(frozen=True)
class Agreement:
    """One model against the pooled one."""

    cosines: npt.NDArray[np.float64]
    angle: float
    """The largest principal angle, in degrees."""

    def to_plain(self) -> dict[str, Any]:
        return {"cosines": self.cosines.tolist(), "largest_angle_degrees": self.angle}


@dataclass(frozen=True)
class Comparison:
    """The private result and every hospital's own, against the pooled one."""

    joint: Agreement
    separate: dict[str, Agreement]
    projections: float
    """The largest difference of a projection, relative to the largest projection."""
    table_bytes: int

    def to_plain(self) -> dict[str, Any]:
        return {
            "joint": self.joint.to_plain(),
            "separate": {name: agreement.to_plain() for name, agreement in self.separate.items()},
            "projections_relative_difference": self.projections,
        }


def compare(result: Result, tables: dict[str, pd.DataFrame]) -> Comparison:
    """Pool the tables, as nobody may in earnest, and measure."""
    features = {name: table.drop(columns=LABEL) for name, table in tables.items()}
    pooled = pd.concat(features.values())
    k = len(result["components"])
    scaled = StandardScaler().fit_transform(pooled)
    reference = sklearn.decomposition.PCA(k, svd_solver="full").fit(scaled)
    alone = PCA(k, protocol="separate", standardize=True).fit(features).models_
    return Comparison(
        _agreement(result["components"], reference.components_),
        {name: _agreement(model["components"], reference.components_) for name, model in alone.items()},
        _difference(_projected(result, pooled), reference.transform(scaled)),
        int(pooled.size * 8),
    )


def _agreement(components: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> Agreement:
    return Agreement(cosines(components, reference), largest_angle(components, reference))


def _projected(result: Result, pooled: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Every row by the released model, as whoever has both could."""
    rows = (pooled[list(result["columns"])].to_numpy() - result["mean"]) / result["scale"]
    return np.asarray(rows @ result["components"].T)


def _difference(scores: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> float:
    """Signs of components are free; they are turned to agree before anything is compared."""
    signs = np.where(np.sum(scores * reference, axis=0) < 0, -1.0, 1.0)
    return float(np.abs(scores * signs - reference).max() / np.abs(reference).max())
