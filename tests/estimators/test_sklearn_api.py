"""scikit-learn's own checks, through an adapter that cuts X into three islands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import atoll


class PooledPCA(atoll.PCA):
    """Takes one X as scikit-learn's checks hand it in, and cuts it into three islands."""

    def fit(self, X: Any, y: Any = None) -> PooledPCA:
        from sklearn.utils.validation import validate_data

        named = isinstance(X, pd.DataFrame)
        checked = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rows = pd.DataFrame(checked, columns=X.columns) if named else checked
        cut = np.array_split(np.arange(len(checked)), 3)
        islands = [rows.iloc[part] if named else rows[part] for part in cut if len(part)]
        return super().fit(islands, y)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:  # type: ignore[override]
        return self.fit(X, y).transform(X)


EXPECTED_FAILURES: dict[str, str] = {}
"""Check -> why it cannot hold for a table cut into islands."""


# The checks hand in tables of a few rows, of which the estimator rightly warns.
@pytest.mark.filterwarnings("ignore::atoll.errors.PrivacyWarning")
@parametrize_with_checks(
    [PooledPCA(n_components=1, accept_determined=True)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_clone_and_parameters() -> None:
    pca = atoll.PCA(3, secure_sum="masks", dropouts=1)
    assert clone(pca).get_params() == pca.get_params()
    assert pca.set_params(n_components=5).n_components == 5


def test_frames_keep_their_names_whatever_the_order() -> None:
    wine = load_wine(as_frame=True).data
    shuffled = wine[wine.columns[::-1]]
    mine = atoll.PCA(2).fit([wine[:60], shuffled[60:]])
    assert list(mine.feature_names_in_) == list(wine.columns)
    assert list(mine.get_feature_names_out()) == ["pca0", "pca1"]
    both = atoll.PCA(2).fit([pl.from_pandas(wine[:60]), wine[60:]])
    np.testing.assert_allclose(mine.components_, both.components_, atol=1e-12)


def test_fits_from_csv_parquet_and_npz(tmp_path: Any) -> None:
    wine = load_wine(as_frame=True).data
    wine[:60].to_csv(tmp_path / "a.csv", index=False)
    wine[60:100].to_parquet(tmp_path / "b.parquet")
    np.savez(tmp_path / "c.npz", X=wine[100:].to_numpy(), feature_names=np.array(wine.columns, dtype=str))
    mine = atoll.PCA(2).fit({name.stem: name for name in sorted(tmp_path.iterdir())})
    pooled = atoll.PCA(2).fit([wine[:90], wine[90:]])
    np.testing.assert_allclose(mine.components_, pooled.components_, atol=1e-9)


def test_the_scikit_learn_twin_projects_alike() -> None:
    wine = load_wine(as_frame=True).data
    for standardize in (False, True):
        mine = atoll.PCA(2, standardize=standardize).fit([wine[:60], wine[60:]])
        twin = mine.to_sklearn()
        np.testing.assert_allclose(twin.transform(wine), mine.transform(wine), atol=1e-10)
        back = mine.inverse_transform(mine.transform(wine))
        np.testing.assert_allclose(twin.inverse_transform(twin.transform(wine)), back, atol=1e-8)


def test_a_fitted_model_works_in_a_pipeline() -> None:
    from sklearn.preprocessing import StandardScaler

    wine = load_wine().data
    twin = atoll.PCA(2).fit([wine[:60], wine[60:]]).to_sklearn()
    assert make_pipeline(StandardScaler(), twin.__class__(2)).fit_transform(wine).shape == (178, 2)


def test_results_survive_their_file(tmp_path: Any) -> None:
    wine = load_wine(as_frame=True).data
    mine = atoll.PCA(2, standardize=True).fit([wine[:60], wine[60:]])
    path = mine.result_.save(tmp_path / "wine.atoll")
    assert path.stat().st_mode & 0o777 == 0o600
    again = atoll.load_result(path)
    assert again.study == mine.result_.study
    assert again["columns"] == tuple(wine.columns)
    np.testing.assert_array_equal(again["components"], mine.components_)
    assert again.transcript.bytes == mine.transcript_.bytes
    with pytest.raises(atoll.errors.NotReleased, match=r"scores was not released to you"):
        again["scores"]


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-3], lambda b: b"x" + b, lambda b: b[:60] + b"\xff" + b[61:]]
)
def test_a_damaged_result_is_refused(tmp_path: Any, damage: Any) -> None:
    wine = load_wine().data
    path = atoll.PCA(2).fit([wine[:60], wine[60:]]).result_.save(tmp_path / "wine.atoll")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(atoll.errors.DataError):
        atoll.load_result(path)


def test_a_stored_estimator_holds_what_was_released_and_no_more() -> None:
    import pickle

    wine = load_wine().data
    mine = atoll.PCA(2).fit([wine[:60], wine[60:]])
    server = next(address for address in mine.learned_ if address.role == "server")
    assert "covariance" in mine.learned_[server].inherent
    again = pickle.loads(pickle.dumps(mine))  # noqa: S301
    assert not again.learned_[server].inherent
    np.testing.assert_array_equal(again.components_, mine.components_)


def test_a_second_fit_leaves_nothing_of_the_first() -> None:
    wine = load_wine(as_frame=True).data
    mine = atoll.PCA(2).fit([wine[:60], wine[60:]])
    mine.fit([wine[:60].to_numpy(), wine[60:].to_numpy()])
    assert not hasattr(mine, "feature_names_in_")
    mine.set_params(protocol="separate").fit([wine[:60], wine[60:]])
    assert not hasattr(mine, "components_")
