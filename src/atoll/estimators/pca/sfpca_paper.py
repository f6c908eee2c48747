"""``atoll.PCA(protocol="sfpca", variant="paper")``: on encrypted data, with the paper's own routines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from atoll.data.island import Island
from atoll.errors import ParameterError
from atoll.estimators.base import parties
from atoll.estimators.constraints import ANY, FLAG, Constraint, Constraints, among, is_whole
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.sfpca import SFPCA, check_alignment, plain_bounds
from atoll.protocols.pca.sfpca.parameters import VERTICAL
from atoll.study.model import Study

_RELEASES: dict[str, dict[str, tuple[str, ...]]] = {
    "components": {"components": ("provider", "consumer"), "scores": ("provider",)},
    "scores": {"scores": ("provider",)},
}


class SFPCAPaper(SFPCA):
    """Islands as providers, a keyless coordinator that runs QR^T and Eigen, and the caller as consumer."""

    options: ClassVar[Constraints] = {
        "variant": ANY,
        "paper": Constraint(
            lambda given: given is None or isinstance(given, Mapping),
            "{name}={value!r} must be a mapping",
            lambda _: "paper={'p': 10, 'alpha': 4, 'w': 5}",
        ),
        "release": among(_RELEASES, "{name}={value!r} is not available with variant='paper'"),
        "n_components": Constraint(
            lambda n: is_whole(n) and n > 0, "{name}={value!r} must be a whole number with variant='paper'"
        ),
        "bounds": ANY,
        "accept_determined": FLAG,
        "threshold": SFPCA.options["threshold"],
        "whiten": FLAG,
    }
    private_options: ClassVar[Constraints] = {}

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        if estimator.partition == VERTICAL:
            check_alignment(islands)
        released = dict(_RELEASES[estimator.release])
        if estimator.partition == VERTICAL:
            released.pop("scores")
        public = dict.fromkeys(("explained_variance", "n_samples", "certificate"), ("provider", "consumer"))
        return Study(
            name="PCA",
            protocol="sfpca-paper",
            parties=parties(islands, "provider", "coordinator", "consumer"),
            parameters={
                "n_components": int(estimator.n_components),
                **column_parameters(estimator, islands),
                "bounds": plain_bounds(estimator.bounds),
                "paper": _algorithm(estimator),
                **({"accept_determined": True} if estimator.accept_determined else {}),
                **({} if estimator.threshold is None else {"threshold": int(estimator.threshold)}),
            },
            partition=estimator.partition,
            release=released | public,
        )


def _algorithm(estimator: Any) -> dict[str, Any]:
    """The paper's letters as given; ``random_state`` seeds the public sketch where they do not."""
    given = {str(name): value for name, value in (estimator.paper or {}).items()}
    seed = estimator.random_state
    if seed is None or "seed" in given:
        return given
    if not is_whole(seed) or seed < 0:
        raise ParameterError(
            f"random_state={seed!r} seeds the public sketch of variant='paper': a whole number from 0"
        )
    return given | {"seed": int(seed)}
