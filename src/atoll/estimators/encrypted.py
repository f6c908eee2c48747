"""``atoll.PCA(protocol="sfpca")``: its options, its study and its fitted attributes."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from atoll.data.island import Island
from atoll.errors import ParameterError, PrivacyWarning, SchemaError, one_of
from atoll.estimators.base import parties
from atoll.estimators.encrypted_model import EncryptedModel
from atoll.estimators.privacy_options import privacy_parameters, variances_of
from atoll.protocols.pca.sfpca.parameters import RECIPES, VERTICAL, small_islands
from atoll.study.model import Study

SFPCA_OPTIONS = ("recipe", "release", "bounds", "digits", "variant", "eigen")
"""What means something to SF-PCA alone."""
_RELEASES: dict[str, dict[str, tuple[str, ...]]] = {
    "components": {"components": ("provider", "consumer"), "scores": ("provider",)},
    "scores": {"scores": ("provider",)},
    "encrypted": {"encrypted": ("provider", "coordinator")},
}
_NOT_YET = {
    "variant": ("fast", "the paper's own routines are not implemented"),
    "eigen": ("masked", "the eigenproblem is solved in the clear after secret rotations"),
}


def check_sfpca(options: Any) -> None:
    """Refuse what does not exist (yet), before anything runs."""
    for name, (only, hint) in _NOT_YET.items():
        value = getattr(options, name)
        if value != only:
            raise ParameterError(
                f"{name}={value!r} is not available with protocol='sfpca'; {name}={only!r} is", hint=hint
            )
    if options.release not in _RELEASES:
        raise ParameterError(
            f"release={options.release!r} is not available with protocol='sfpca'",
            hint=one_of(str(options.release), _RELEASES),
        )
    if options.recipe not in RECIPES:
        raise ParameterError(
            f"there is no recipe {options.recipe!r}", hint=one_of(str(options.recipe), RECIPES)
        )
    _plain_components(options.n_components)


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


def common_scores(fitted: Any, tables: Mapping[str, Island]) -> Any:
    """Where islands hold columns: the projections of the common rows."""
    if hasattr(fitted, "scores_"):
        return next(iter(fitted.scores_.values()))
    X = np.hstack([table.features(table.columns) for table in tables.values()])
    return X @ fitted.components_.T - fitted.offset_


def sfpca_study(options: Any, islands: dict[str, Island]) -> Study:
    """Islands as providers, a keyless coordinator, and the caller as consumer."""
    public = dict.fromkeys(("explained_variance", "n_samples", "certificate"), ("provider", "consumer"))
    return Study(
        name="PCA",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator", "consumer"),
        parameters={
            "n_components": _plain_components(options.n_components),
            "recipe": options.recipe,
            "standardize": bool(options.standardize),
            "bounds": plain_bounds(options.bounds),
            **_digits(options),
            **_privacy(options),
        },
        partition=options.partition,
        release=_releases(options) | public,
    )


def _privacy(options: Any) -> dict[str, Any]:
    """The privacy part of the parameters; numbers of rows are public, so neighbours are replace-one."""
    if options.epsilon is None:
        return {}
    return {name: value for name, value in privacy_parameters(options).items() if name != "neighbours"}


def _digits(options: Any) -> dict[str, Any]:
    """What a study says only where it is not as usual."""
    digits = options.digits
    if isinstance(digits, numbers.Integral) and not isinstance(digits, bool):
        digits = int(digits)
    said = {} if digits is None else {"digits": digits}
    return said | ({"accept_determined": True} if options.accept_determined else {})


def _releases(options: Any) -> dict[str, tuple[str, ...]]:
    released = dict(_RELEASES[options.release])
    if (options.partition == VERTICAL or options.standardize) and "components" in released:
        # A row's scores are made of all islands' columns: with the components, they would say others' parts.
        # Of standardised columns, they would say the scales.
        del released["scores"]
    return released


def _plain_components(n_components: Any) -> int | None:
    if n_components is None:
        return None
    if isinstance(n_components, numbers.Integral) and not isinstance(n_components, bool):
        return int(n_components)
    raise ParameterError(
        f"n_components={n_components!r} must be a whole number or None with protocol='sfpca'",
        hint="how many components explain a share of the variance is not known while all is encrypted",
    )


def plain_bounds(bounds: Any) -> Any:
    """Bounds as a study holds them: a number, pairs, or pairs by column."""
    if bounds is None or isinstance(bounds, numbers.Real):
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


def take_sfpca(fitted: Any) -> None:
    """The fitted attributes, from what was released."""
    result = fitted.result_
    fitted.explained_variance_ = np.array(result["explained_variance"])
    fitted.total_variance_ = float(result["total_variance"])
    fitted.noise_variance_ = float(result["noise_variance"])
    fitted.explained_variance_ratio_ = fitted.explained_variance_ / (fitted.total_variance_ or 1.0)
    fitted.n_samples_, fitted.rows_ = int(result["n_samples"]), dict(result["rows"])
    fitted.singular_values_ = np.sqrt(fitted.explained_variance_ * (fitted.n_samples_ - 1))
    if fitted.epsilon is not None:
        fitted.variances_of_ = variances_of(fitted)
    fitted.certificate_ = dict(result["certificate"])
    fitted.n_components_ = len(fitted.explained_variance_)
    if fitted.release == "encrypted":
        fitted.encrypted_ = EncryptedModel.of_run(result.study, fitted.learned_, fitted.engine)
        return
    if "scores" in result:
        fitted.scores_ = {name: np.array(scores) for name, scores in result["scores"].items()}
    if fitted.release == "scores":
        return
    fitted.components_ = np.array(result["components"])
    if not fitted.standardize:
        fitted.offset_ = np.array(result["offset"])
    fitted.n_features_in_ = fitted.components_.shape[1]
    if result["columns"] is not None:
        fitted.feature_names_in_ = np.array(result["columns"], dtype=object)


def warn_of_small_islands(fitted: Any) -> None:
    """Report islands of which the outputs may say too much."""
    words = small_islands(fitted.rows_, fitted.n_components_)
    if words:
        warnings.warn(words, PrivacyWarning, stacklevel=4)
