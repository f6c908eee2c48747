"""A fitted estimator as scikit-learn knows it."""

from __future__ import annotations

from typing import Any

import numpy as np


def twin_of(fitted: Any, *, named: bool = True) -> Any:
    """The scikit-learn twin of a fitted estimator; ``named``: it knows the columns' names."""
    import sklearn.decomposition
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    twin = sklearn.decomposition.PCA(
        n_components=fitted.n_components_, svd_solver="covariance_eigh", whiten=bool(fitted.whiten)
    )
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        setattr(twin, name, getattr(fitted, name).copy())
    twin.mean_ = fitted.mean_.copy() if fitted.scale_ is None else np.zeros_like(fitted.mean_)
    twin.n_components_, twin.n_samples_ = fitted.n_components_, fitted.n_samples_
    twin.n_features_in_, twin.noise_variance_ = fitted.n_features_in_, fitted.noise_variance_
    names = getattr(fitted, "feature_names_in_", None) if named else None
    if fitted.scale_ is None:
        if names is not None:
            twin.feature_names_in_ = names
        return twin
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = fitted.mean_.copy(), fitted.scale_.copy(), fitted.scale_**2
    scaler.n_features_in_, scaler.n_samples_seen_ = fitted.n_features_in_, fitted.n_samples_
    if names is not None:
        scaler.feature_names_in_ = names
    return make_pipeline(scaler, twin)
