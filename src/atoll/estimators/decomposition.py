"""``atoll.PCA``: principal components across islands, with scikit-learn's names."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from atoll.data.island import Island, as_islands
from atoll.errors import NotReleased, ParameterError, PrivacyWarning
from atoll.estimators.base import beside_islands, parties, refuse_meaningless, run, warn_of_missing
from atoll.estimators.encrypted import (
    SFPCA_OPTIONS,
    check_alignment,
    check_sfpca,
    common_scores,
    sfpca_study,
    take_sfpca,
    warn_of_small_islands,
)
from atoll.estimators.privacy_options import (
    PRIVACY_OPTIONS,
    accounts,
    booked,
    pair_parameters,
    privacy_parameters,
    variances_of,
)
from atoll.estimators.sklearn_twin import twin_of
from atoll.protocols.base import MIN_ISLANDS, Learned
from atoll.protocols.pca.sfpca.parameters import VERTICAL
from atoll.runtime.execute import Run
from atoll.study.model import Study

# scikit-learn's tools set random_state wherever it exists, so it is never an error.
_ALWAYS = ("n_components", "protocol", "partition", "engine", "random_state")
_USED = {
    "pppca": (*_ALWAYS, "secure_sum", "standardize", "epsilon", "accept_determined", "ledger"),
    "dpdpca": (*_ALWAYS, "secure_sum", "calibration", *PRIVACY_OPTIONS),
    "sfpca": (*_ALWAYS, *SFPCA_OPTIONS, "standardize", "epsilon", "accept_determined", "ledger"),
    "meta": (*_ALWAYS, "ledger"),
    "separate": (*_ALWAYS, "standardize"),
    "privatelocal": (*_ALWAYS, "epsilon", "delta", "row_norm", "rows", "neighbours", "calibration", "ledger"),
}
"""The options that mean something to each protocol."""

_NOT_IN_THE_PAPERS = ("ledger", "assume_centered", "centre")
"""What ``calibration="paper"`` has no place for."""

_SUM_OPTIONS = {"masks": ("dropouts",), "lattice": ("key",), "mix": ("mix",)}
"""The options that belong to a secure sum."""


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal component analysis of a table whose rows (or columns) lie on several islands.

    Parameters
    ----------
    n_components : int, float or None
        How many components; a share of the variance between 0 and 1; or None for all.
    protocol : "pppca", "dpdpca", "sfpca", "privatelocal", "meta" or "separate"
        How the islands work together: by secure sums (PPPCA); the same with differential privacy and a
        proxy (DPDPCA); on encrypted data (SF-PCA); or one of three baselines, of which "privatelocal" is
        private too.
    secure_sum : "shares", "masks", "paillier", "lattice" or "mix"
        How sums are hidden: additive shares; pairwise masks that survive ``dropouts``; Paillier
        encryption under the server's key; lattice encryption under a ``key`` that is "collective"
        (shared by all islands) or the "server"'s; segments under layers of encryption that every island
        strips and shuffles, with the options ``mix``.
    partition : "horizontal" or "vertical"
        Islands hold rows, or (with "sfpca") different columns of the same rows, in the same order.
    standardize : bool
        Divide every column by its joint standard deviation.
    epsilon, delta : float, optional
        Differential privacy, with "dpdpca", "pppca" or "sfpca": everything released is made from noisy
        sums. Without delta the privacy is pure.
    row_norm : float
        With epsilon: a public bound on the Euclidean norm of a row; longer rows are cut to it. With
        "sfpca", ``bounds`` may take its place.
    rows : "normalise" or "clip"
        With epsilon: around the private centre every row counts with length one, or is cut at a
        privately chosen radius. "clip" keeps a little more from some 5,000 rows on, and less below 2,000.
    neighbours : "add-remove" or "replace"
        With epsilon: whether the presence of a row is hidden, or only its content. Numbers of rows are
        public in "sfpca", where it is always "replace".
    calibration : "analytic" or "paper"
        With "dpdpca": noise whose guarantee holds, or the published form, which is not private as stated.
    noise : "distributed" or "local"
        Every owner adds a share of the noise, or the whole of it. With ``calibration="paper"``: "gaussian",
        "laplace" or "wishart", made by the proxy.
    colluders : int
        How many owners may use their own noise shares against the others.
    assume_centered : bool
        With epsilon: the mean is known to be zero (with "sfpca", the middle of ``bounds``). Nothing is spent
        on it, and the components are those of rows as they are.
    centre : "mean" or "pairs"
        With epsilon and "dpdpca" or "pppca": part of the budget buys a private mean, around which rows
        count; or every island draws its rows into pairs, whose differences of length one count, and nothing
        is spent on a mean. "pairs" needs no ``row_norm``. It suits small tables, small epsilons and a
        ``row_norm`` that is far wider than the rows. Declare ``Island.from_array(X, capacity=...)`` for less
        noise with "add-remove" neighbours.
    ledger : path, Ledger or True, optional
        Where each island's releases are booked under its identity: a ledger that is there, or True for the
        site's (``atoll ledger init`` makes it, ``atoll ledger set-budget`` says what may be spent). Without
        it nothing is booked, and ``result_.booked`` says so; ``privacy_spent_`` is then this fit's alone.
    dropouts : int
        How many islands may leave during the first sum (``secure_sum="masks"``).
    mix : mapping, optional
        Options of ``secure_sum="mix"``: ``form`` ("onion", "elgamal"), ``segments``, ``parallel``, ``blind``.
    recipe : "auto", "direct", "strict", "fast" or "accurate"
        How SF-PCA finds the components: "direct" for few columns (all eigenvalues are learned), "strict"
        for many; "fast" and "accurate" are strict with fewer or more power iterations. "auto" chooses, and
        "auto", "strict" and "fast" try once more accurately where the certificate refuses.
    release : "components", "scores" or "encrypted"
        SF-PCA: components to all islands and the caller; or only each island's own projections to it; or
        nothing: every role keeps a share, and ``encrypted_`` projects rows or opens the components later.
    bounds : number, (low, high), one such pair for each column, or a mapping from columns to pairs
        SF-PCA: the public range of the data. Without it, the power of two that no value exceeds is opened.
        With epsilon, rows outside the ball around this box are cut to it.
    digits : int or "full", optional
        SF-PCA: bits of components, offset and scores that are released (26); noise covers what is finer.
    accept_determined : bool
        Release outputs also where they say all second moments, as nearly all components do, and fewer
        where columns hold whole numbers. Refused otherwise; ``atoll review`` says where the line is.
    engine : Engine, optional
        Where the roles run.

    With ``centre="pairs"`` there is no ``mean_``: nobody knows it. ``transform`` then projects rows as they
    are: all scores are shifted by the same unknown amounts, and distances between them are right.

    With ``protocol="sfpca"`` there is no ``mean_``: it is not released. ``offset_`` (components times mean)
    takes its place, and gives it where there are as many components as columns. ``certificate_`` says how
    accurate the components are, and with ``release="scores"`` ``scores_`` holds each island's projections and
    there are no components. With ``standardize=True`` nobody learns the columns' standard deviations:
    ``components_`` are those of the standardised columns, without ``offset_`` and ``transform``;
    ``release="scores"`` gives projections.

    The remaining options belong to protocols that are chosen by name; one that means nothing to the
    chosen protocol is an error.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_wine
    >>> X = load_wine().data
    >>> pca = atoll.PCA(n_components=2, standardize=True).fit({"north": X[:50], "south": X[50:]})
    >>> pca.explained_variance_ratio_.round(3)
    array([0.362, 0.192])
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        protocol: str = "pppca",
        secure_sum: str = "shares",
        partition: str = "horizontal",
        standardize: bool = False,
        epsilon: float | None = None,
        delta: float | None = None,
        row_norm: float | None = None,
        rows: str = "normalise",
        neighbours: str = "add-remove",
        calibration: str = "analytic",
        noise: str = "distributed",
        colluders: int = 1,
        assume_centered: bool = False,
        centre: str = "mean",
        dropouts: int = 0,
        ledger: Any = None,
        variant: str = "fast",
        recipe: str = "auto",
        eigen: str = "masked",
        release: str = "components",
        key: str = "collective",
        bounds: Any = None,
        mix: Any = None,
        digits: int | str | None = None,
        accept_determined: bool = False,
        random_state: Any = None,
        engine: Any = None,
    ) -> None:
        self.n_components = n_components
        self.protocol = protocol
        self.secure_sum = secure_sum
        self.partition = partition
        self.standardize = standardize
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.rows = rows
        self.neighbours = neighbours
        self.calibration = calibration
        self.noise = noise
        self.colluders = colluders
        self.assume_centered = assume_centered
        self.centre = centre
        self.dropouts = dropouts
        self.ledger = ledger
        self.variant = variant
        self.recipe = recipe
        self.eigen = eigen
        self.release = release
        self.key = key
        self.bounds = bounds
        self.mix = mix
        self.digits = digits
        self.accept_determined = accept_determined
        self.random_state = random_state
        self.engine = engine

    def _sum_options(self) -> dict[str, Any]:
        if self.secure_sum == "mix":
            return dict(self.mix or {})
        return {name: getattr(self, name) for name in _SUM_OPTIONS.get(self.secure_sum, ())}

    # ---- fitting ----

    def fit(self, islands: Any, y: Any = None) -> PCA:
        """Compute the joint components of ``islands``: a list or mapping of tables."""
        del y
        if self.protocol not in _USED:
            raise ParameterError(
                f"there is no protocol {self.protocol!r}", hint=f"one of {', '.join(map(repr, _USED))}"
            )
        used = (*_USED[self.protocol], *_SUM_OPTIONS.get(self.secure_sum, ()))
        if self.protocol in ("pppca", "sfpca") and self.epsilon is not None:
            used = (*used, *PRIVACY_OPTIONS)
        if self.protocol == "sfpca":  # whose offset needs a mean
            used = tuple(name for name in used if name != "centre")
        if self._is_the_papers():
            used = tuple(name for name in used if name not in _NOT_IN_THE_PAPERS)
        refuse_meaningless(self, used, f"protocol={self.protocol!r} with secure_sum={self.secure_sum!r}")
        for name in ("standardize", "accept_determined"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ParameterError(f"{name}={getattr(self, name)!r} must be True or False")
        if self.protocol == "sfpca":
            check_sfpca(self)
        islands, brought = beside_islands(islands)
        tables = as_islands(islands)
        if len(tables) < MIN_ISLANDS:
            raise ParameterError(
                f"fit needs at least {MIN_ISLANDS} islands, got {len(tables)}",
                hint="fit([X1, X2, ...]); for one table use scikit-learn's PCA",
            )
        if self.partition == VERTICAL:
            check_alignment(tables)
        study = self._study(tables)
        with booked(tables, self.ledger, named=isinstance(islands, Mapping), brought=brought) as own:
            self._take(run(study, own, self.engine))
            if self._is_private():
                self.privacy_spent_ = accounts(study, own)
        self._warn()
        if hasattr(self, "islands_"):
            warn_of_missing(tables, self.islands_)
        return self

    def _is_the_papers(self) -> bool:
        return bool(self.protocol in ("dpdpca", "privatelocal") and self.calibration == "paper")

    def _is_private(self) -> bool:
        """Whether the fit makes differentially private releases, which a ledger has to book."""
        private = self.protocol in ("pppca", "dpdpca", "privatelocal", "sfpca")
        return private and self.epsilon is not None and not self._is_the_papers()

    def _warn(self) -> None:
        if self._is_the_papers():
            warnings.warn(
                "calibration='paper' is the published protocol: not differentially private as stated",
                PrivacyWarning,
                stacklevel=3,
            )
        if self.protocol == "sfpca" and self.epsilon is None:
            warn_of_small_islands(self)
        if self.protocol == "pppca" and self.epsilon is None and self.n_samples_ <= self.n_features_in_:
            warnings.warn(
                f"the joint table has {self.n_samples_} rows for {self.n_features_in_} columns: its mean and "
                "covariance, which the server learns, then say much about single rows",
                PrivacyWarning,
                stacklevel=3,
            )

    def _study(self, islands: dict[str, Island]) -> Study:
        if self.protocol == "dpdpca":
            return self._proxy_study(islands)
        if self.protocol == "privatelocal":
            return self._private_local_study(islands)
        if self.protocol == "sfpca":
            return sfpca_study(self, islands)
        joint = self.protocol != "separate"
        release = {"components": ("provider", "consumer"), "explained_variance": ("consumer",)}
        release |= {"n_samples": ("consumer",)}
        return Study(
            name="PCA",
            protocol=self.protocol,
            secure_sum=self.secure_sum,
            partition=self.partition,
            parties=parties(islands, "provider", *(("server", "consumer") if joint else ())),
            sum_options=self._sum_options(),
            parameters={
                "n_components": _plain(self.n_components),
                "standardize": bool(self.standardize),
                **({"accept_determined": True} if self.accept_determined else {}),
                **(privacy_parameters(self) | pair_parameters(self, islands) if self._is_private() else {}),
            },
            release=release if joint else {"models": ("provider",)},
        )

    def _proxy_study(self, islands: dict[str, Island]) -> Study:
        """DPDPCA's roles."""
        return Study(
            name="PCA",
            protocol="dpdpca",
            secure_sum=self.secure_sum,
            partition=self.partition,
            parties=parties(islands, "owner", "proxy", "data_user"),
            sum_options=self._sum_options(),
            parameters={
                "n_components": _plain(self.n_components),
                "calibration": self.calibration,
                **privacy_parameters(self),
                **pair_parameters(self, islands),
            },
            release={
                "components": ("owner", "data_user"),
                "explained_variance": ("data_user",),
                "n_samples": ("data_user",),
            },
        )

    def _private_local_study(self, islands: dict[str, Island]) -> Study:
        options = ("epsilon", "delta", "row_norm", "rows", "neighbours", "calibration")
        if self.epsilon is None or self.delta is None:
            raise ParameterError(
                "protocol='privatelocal' adds Gaussian noise: it needs both epsilon and delta",
                hint="for example epsilon=1.0, delta=1e-6",
            )
        return Study(
            name="PCA",
            protocol=self.protocol,
            partition=self.partition,
            parties=parties(islands, "owner", "data_user"),
            parameters={"n_components": _plain(self.n_components)}
            | {name: getattr(self, name) for name in options},
            release=dict.fromkeys(("components", "explained_variance", "n_samples"), ("data_user",)),
        )

    def _take(self, finished: Run) -> None:
        """The fitted attributes, from what was released; nothing is left of an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        result = finished.result
        self.result_ = result
        self.transcript_ = result.transcript
        self.learned_ = finished.learned
        if self.protocol == "separate":
            self.models_ = result["models"]
            return
        if self.protocol == "sfpca":
            take_sfpca(self)
            return
        self.components_ = np.array(result["components"])
        if result["mean"] is not None:
            self.mean_ = np.array(result["mean"])
        self.scale_ = None if result["scale"] is None else np.array(result["scale"])
        self.explained_variance_ = np.array(result["explained_variance"])
        self.total_variance_ = float(result["total_variance"])
        self.noise_variance_ = float(result["noise_variance"])
        self.n_samples_ = int(result["n_samples"])
        if "islands" in result:
            self.islands_ = list(result["islands"])
        if self._is_private() or self._is_the_papers():
            self.variances_of_ = variances_of(self)
        total = self.total_variance_ or 1.0
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.singular_values_ = np.sqrt(self.explained_variance_ * (self.n_samples_ - 1))
        self.n_components_, self.n_features_in_ = self.components_.shape
        if result["columns"] is not None:
            self.feature_names_in_ = np.array(result["columns"], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __getstate__(self) -> dict[str, Any]:
        """What a stored estimator holds: released outputs, not what a role saw by the protocol's nature."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "learned_" in state:
            state["learned_"] = {a: Learned(learned.outputs) for a, learned in state["learned_"].items()}
        return state

    # ---- using the model ----

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Project rows on the joint components."""
        self._check_joint_model()
        self._check_scales("transform")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.protocol == "sfpca":
            return np.asarray(X @ self.components_.T - self.offset_)
        return self._projected(X)

    def fit_transform(self, islands: Any, y: Any = None) -> list[npt.NDArray[np.float64]]:
        """Fit, and project each island's own rows: a list, island by island (the same for all islands
        where they hold columns of the same rows)."""
        if self.release != "scores":
            self._check_scales("fit_transform")
        self.fit(islands, y)
        tables = as_islands(islands)
        if self.protocol == "sfpca" and self.release == "encrypted":
            return list(self.encrypted_.project(tables).values())
        if self.protocol == "separate":
            return [_project(table, self.models_[name]) for name, table in tables.items()]
        if self.protocol == "sfpca" and self.partition == VERTICAL:
            return [common_scores(self, tables)] * len(tables)
        if self.protocol == "sfpca":
            return [self.scores_[name] for name in tables]
        columns = getattr(self, "feature_names_in_", None)
        return [
            self._projected(table.features(table.columns if columns is None else tuple(columns)))
            for table in tables.values()
        ]

    def inverse_transform(self, Z: Any) -> npt.NDArray[np.float64]:
        """Back to the original columns, as far as the components reach."""
        self._check_joint_model()
        self._check_mean("inverse_transform")
        Z = check_array(Z, dtype=np.float64)
        rows = Z @ self.components_
        return np.asarray((rows if self.scale_ is None else rows * self.scale_) + self.mean_)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn PCA; standardised, a pipeline of StandardScaler and PCA."""
        self._check_joint_model()
        self._check_mean("to_sklearn")
        return twin_of(self)

    def _projected(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Scores; not centred where the mean is unknown (``centre="pairs"``)."""
        return np.asarray((X - self.mean_ if hasattr(self, "mean_") else X) @ self._weights().T)

    def _weights(self) -> npt.NDArray[np.float64]:
        return self.components_ if self.scale_ is None else self.components_ / self.scale_

    def _check_mean(self, what: str) -> None:
        if self.centre == "pairs":
            raise NotReleased(
                f"{what} needs the mean of each column, which centre='pairs' spends nothing on",
                hint="transform works without it; centre='mean' gives a private mean",
            )
        if self.protocol == "sfpca":
            raise NotReleased(
                f"{what} needs the mean of each column, which protocol='sfpca' does not release",
                hint=("" if self.standardize else "transform works without it; ")
                + "protocol='pppca' gives the mean",
            )

    def _check_scales(self, what: str) -> None:
        if self.protocol == "sfpca" and self.standardize:
            raise NotReleased(
                f"{what} needs the standard deviation of each column, which protocol='sfpca' shows to nobody",
                hint="release='scores' gives each island the projections of its own rows",
            )

    def _check_joint_model(self) -> None:
        check_is_fitted(self, "result_")
        if self.protocol == "sfpca" and self.release == "encrypted":
            raise NotReleased(
                "the components stay encrypted (release='encrypted')",
                hint="encrypted_.project(islands) projects rows, encrypted_.open() opens the components",
            )
        if self.protocol == "sfpca" and self.release == "scores":
            raise NotReleased(
                "the components were released to nobody (release='scores')",
                hint="scores_ holds each island's own projections; release='components' gives the components",
            )
        if self.protocol == "separate":
            raise ParameterError(
                "protocol='separate' has one model per island and no joint one",
                hint="models_ holds them; fit_transform projects each island with its own",
            )


def _plain(n_components: Any) -> int | float | None:
    """n_components as a study can hold it."""
    if n_components is None:
        return None
    if isinstance(n_components, numbers.Integral) and not isinstance(n_components, bool):
        return int(n_components)
    if isinstance(n_components, numbers.Real) and not isinstance(n_components, bool):
        return float(n_components)
    raise ParameterError(
        f"n_components={n_components!r} must be a whole number, a share between 0 and 1, or None"
    )


def _project(table: Island, model: dict[str, Any]) -> npt.NDArray[np.float64]:
    X = table.features(model["columns"] or table.columns)
    weights = model["components"] if model["scale"] is None else model["components"] / model["scale"]
    return np.asarray((X - model["mean"]) @ weights.T)
