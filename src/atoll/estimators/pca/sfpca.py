"""``atoll.PCA(protocol="sfpca")``: on encrypted data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from atoll.data.island import Island
from atoll.errors import NotReleased, ParameterError, PrivacyWarning, SchemaError
from atoll.estimators.base import parties
from atoll.estimators.constraints import (
    ANY,
    FLAG,
    Constraint,
    Constraints,
    among,
    is_real,
    is_whole,
    plain_number,
)
from atoll.estimators.encrypted_model import EncryptedModel
from atoll.estimators.pca.adapter import NEED_MEAN, Adapter, Matrix
from atoll.estimators.pca.columns import column_parameters
from atoll.estimators.pca.joint import take_names, take_variances
from atoll.estimators.privacy_options import PRIVACY_OPTIONS, privacy_parameters, variances_of
from atoll.protocols.pca.sfpca.parameters import RECIPES, VERTICAL, small_islands
from atoll.runtime.execute import Run
from atoll.study.model import Study

_RELEASES: dict[str, dict[str, tuple[str, ...]]] = {
    "components": {"components": ("provider", "consumer"), "scores": ("provider",)},
    "scores": {"scores": ("provider",)},
    "encrypted": {"encrypted": ("provider", "coordinator")},
}


_PUBLIC = ("explained_variance", "n_samples", "certificate")


def hides(estimator: Any) -> bool:
    """Whether no variance is ever opened."""
    return bool(estimator.eigen == "encrypted")


class SFPCA(Adapter):
    """Islands as providers, a keyless coordinator, and the caller as consumer."""

    protocol = "sfpca"
    prepares = True
    options: ClassVar[Constraints] = {
        "variant": among(("fast", "paper"), "{name}={value!r} is not possible"),
        "eigen": among(("masked", "encrypted"), "{name}={value!r} is not possible"),
        "release": among(_RELEASES, "{name}={value!r} is not available with protocol='sfpca'"),
        "recipe": among(RECIPES, "there is no recipe {value!r}"),
        "spectrum": among(("auto", "ritz"), "{name}={value!r} is not possible"),
        "n_components": Constraint(
            lambda n: n is None or is_whole(n),
            "{name}={value!r} must be a whole number or None with protocol='sfpca'",
            lambda _: (
                "how many components explain a share of the variance is not known while all is encrypted"
            ),
        ),
        "bounds": ANY,
        "digits": ANY,
        "threshold": Constraint(
            lambda t: t is None or (is_whole(t) and t >= 2),
            "{name}={value!r} must be None (all providers) or a whole number from 2",
        ),
        "standardize": FLAG,
        "least_deviation": ANY,
        "epsilon": ANY,
        "accept_determined": FLAG,
        "ledger": ANY,
        "whiten": FLAG,
    }
    # The offset needs a mean, so there is no choice of a centre.
    private_options: ClassVar[Constraints] = {
        name: constraint for name, constraint in PRIVACY_OPTIONS.items() if name != "centre"
    }

    def of_variant(self, variant: str) -> Adapter:
        from atoll.estimators.pca.sfpca_paper import SFPCAPaper  # which is made from this one

        return SFPCAPaper() if variant == "paper" else self

    def check(self, estimator: Any) -> None:
        super().check(estimator)
        if estimator.whiten and hides(estimator):
            _refuse_variances("whiten")

    # ---- fitting ----

    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        if estimator.partition == VERTICAL:
            check_alignment(islands)
        outputs = ("n_samples", "certificate") if hides(estimator) else _PUBLIC
        public = dict.fromkeys(outputs, ("provider", "consumer"))
        return Study(
            name="PCA",
            protocol=self.protocol,
            parties=parties(islands, "provider", "coordinator", "consumer"),
            parameters={
                "n_components": plain_number(estimator.n_components),
                **column_parameters(estimator, islands),
                "recipe": estimator.recipe,
                "spectrum": estimator.spectrum,
                "standardize": bool(estimator.standardize),
                "bounds": plain_bounds(estimator.bounds),
                **({"eigen": estimator.eigen} if hides(estimator) else {}),
                **_digits(estimator),
                **({} if estimator.threshold is None else {"threshold": int(estimator.threshold)}),
                **_privacy(estimator),
            },
            partition=estimator.partition,
            release=_releases(estimator) | public,
        )

    def take(self, estimator: Any, run: Run) -> None:
        result = run.result
        if hides(estimator):
            estimator.n_samples_ = int(result["n_samples"])
            estimator.n_components_ = int(estimator.n_components)
        else:
            take_variances(estimator, run)
            estimator.n_components_ = len(estimator.explained_variance_)
        estimator.rows_ = dict(result["rows"])
        if estimator.epsilon is not None:
            estimator.variances_of_ = variances_of(estimator)
        estimator.certificate_ = dict(result["certificate"])
        if estimator.release == "encrypted":
            estimator.encrypted_ = EncryptedModel.of_run(result.study, run.learned, estimator.engine)
            return
        if "scores" in result:
            estimator.scores_ = {name: np.array(scores) for name, scores in result["scores"].items()}
        if estimator.release == "scores":
            estimator.scores_ = with_signs(estimator.scores_)
            return
        estimator.components_ = np.array(result["components"])
        if not estimator.standardize:
            estimator.offset_ = np.array(result["offset"])
        estimator.n_features_in_ = estimator.components_.shape[1]
        take_names(estimator, run)

    def warn(self, estimator: Any) -> None:
        """Report islands of which the outputs may say too much; noise hides single rows."""
        words = small_islands(estimator.rows_, estimator.n_components_)
        if words and estimator.epsilon is None:
            warnings.warn(words, PrivacyWarning, stacklevel=3)

    # ---- using the model ----

    def check_use(self, estimator: Any, what: str) -> None:
        super().check_use(estimator, what)
        if hides(estimator) and what in ("plot_scree", "get_covariance"):
            _refuse_variances(what)
        if what not in ("fit_transform", "plot_scree", "plot_projection"):
            _check_released(estimator)
        if what in NEED_MEAN:
            raise NotReleased(
                f"{what} needs the mean of each column, which protocol='sfpca' does not release",
                hint=("" if estimator.standardize else "transform works without it; ")
                + "protocol='pppca' gives the mean",
            )
        if what == "plot_projection" and estimator.release == "encrypted":
            _check_released(estimator)
        without_scale = ("get_covariance", "plot_scree", "plot_loadings")
        own = what in ("fit_transform", "plot_projection") and estimator.release == "scores"
        if estimator.standardize and what not in without_scale and not own:
            raise NotReleased(
                f"{what} needs the standard deviation of each column, which protocol='sfpca' shows to nobody",
                hint="release='scores' gives each island the projections of its own rows",
            )

    def transform(self, estimator: Any, X: Matrix) -> Matrix:
        return np.asarray(X @ estimator.components_.T - estimator.offset_)

    def transform_islands(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        if estimator.release == "encrypted":
            return list(estimator.encrypted_.project(islands).values())
        if estimator.partition == VERTICAL:
            return [self._common_scores(estimator, islands)] * len(islands)
        return [estimator.scores_[name] for name in islands]

    def _common_scores(self, estimator: Any, islands: Mapping[str, Island]) -> Matrix:
        """Where islands hold columns: the projections of the common rows."""
        if hasattr(estimator, "scores_"):
            scores: Matrix = next(iter(estimator.scores_.values()))
            return scores
        return self.project(estimator, islands)[0]

    def project(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        """Where islands hold columns: their rows side by side, in the columns' order at the fit."""
        if estimator.partition != VERTICAL:
            return super().project(estimator, islands)
        names = getattr(estimator, "feature_names_in_", None)
        of = {column: table for table in islands.values() for column in table.columns}
        if names is None:
            X = np.hstack([table.features(table.columns) for table in islands.values()])
        else:
            missing = [column for column in names if column not in of]
            if missing:
                raise SchemaError(f"no island has {', '.join(map(repr, missing[:5]))}, which the fit had")
            X = np.hstack([of[column].features([column]) for column in names])
        return [self.transform(estimator, X)] * len(islands)


def with_signs(scores: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """Scores whose largest number is positive, component by component over all islands.

    Without components a run's own signs are random, and no island can set them alone. Whoever has the scores
    of all islands can.
    """
    together = np.vstack(list(scores.values()))
    largest = together[np.abs(together).argmax(axis=0), np.arange(together.shape[1])]
    signs = np.where(largest < 0, -1.0, 1.0)
    return {name: rows * signs for name, rows in scores.items()}


def _check_released(estimator: Any) -> None:
    """Refuse to use components that stayed with nobody, or with all."""
    if estimator.release == "encrypted":
        raise NotReleased(
            "the components stay encrypted (release='encrypted')",
            hint="encrypted_.project(islands) projects rows, encrypted_.open() opens the components",
        )
    if estimator.release == "scores":
        raise NotReleased(
            "the components were released to nobody (release='scores')",
            hint="scores_ holds each island's own projections; release='components' gives the components",
        )


def _refuse_variances(what: str) -> None:
    raise NotReleased(
        f"{what} needs the components' variances, which eigen='encrypted' opens to nobody",
        hint="eigen='masked' opens them",
    )


def check_alignment(tables: Mapping[str, Island]) -> None:
    """Refuse frames of the same rows whose indexes say that they are not."""
    frames = [(name, table.index) for name, table in tables.items() if table.index is not None]
    for name, index in frames:
        first, reference = frames[0]
        if len(index) == len(reference) and not index.equals(reference):
            raise SchemaError(
                f"the rows of {name} have another index than those of {first}",
                hint="partition='vertical' takes the same rows in the same order; align the frames first",
            )


def _privacy(estimator: Any) -> dict[str, Any]:
    """The privacy part of the parameters; numbers of rows are public, so neighbours are replace-one."""
    if estimator.epsilon is None:
        return {}
    return {
        name: value
        for name, value in privacy_parameters(estimator, bounded=True).items()
        if name != "neighbours"
    }


def _digits(estimator: Any) -> dict[str, Any]:
    """What a study says only where it is not as usual."""
    digits = int(estimator.digits) if is_whole(estimator.digits) else estimator.digits
    said = {} if digits is None else {"digits": digits}
    if estimator.least_deviation is not None:
        said["least_deviation"] = plain_number(estimator.least_deviation)
    return said | ({"accept_determined": True} if estimator.accept_determined else {})


def _releases(estimator: Any) -> dict[str, tuple[str, ...]]:
    released = dict(_RELEASES[estimator.release])
    if (estimator.partition == VERTICAL or estimator.standardize) and "components" in released:
        # A row's scores are made of all islands' columns: with the components, they would say others' parts.
        # Of standardised columns, they would say the scales.
        del released["scores"]
    return released


def plain_bounds(bounds: Any) -> Any:
    """Bounds as a study holds them: a number, pairs, or pairs by column."""
    if bounds is None or is_real(bounds):
        return None if bounds is None else float(bounds)
    try:
        if isinstance(bounds, Mapping):
            return {str(name): _pair(value) for name, value in bounds.items()}
        array = np.asarray(bounds, dtype=np.float64)
        if array.shape == (2,):
            return (_pair(array),)
        if array.ndim == 2 and array.shape[1] == 2:
            return tuple(_pair(row) for row in array)
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        "bounds must be a number, a pair (low, high), one pair for each column, or a mapping to pairs"
    )


def _pair(value: Any) -> tuple[float, float]:
    low, high = (float(side) for side in value)
    return low, high
