"""What a protocol needs to serve ``atoll.PCA``: options, a study, fitted attributes, projections."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island
from atoll.errors import NotReleased, PrivacyWarning
from atoll.estimators.constraints import ANY, FLAG, Constraint, Constraints, is_real, refuse_meaningless
from atoll.estimators.pca.by_island import features_of
from atoll.estimators.pca.columns import COLUMNS, LABEL
from atoll.estimators.pca.tables import TABLE_OPTIONS, prepared_islands
from atoll.estimators.privacy_options import CUT_ROWS, variances_of
from atoll.estimators.sum_options import options_of
from atoll.runtime.execute import Run
from atoll.study.model import Study

Matrix = npt.NDArray[np.float64]

COMPONENTS = Constraint(
    lambda n: n is None or is_real(n),
    "{name}={value!r} must be a whole number, a share between 0 and 1, or None",
)

# scikit-learn's tools set random_state wherever it exists, so it is never an error.
_ALWAYS: Constraints = {"n_components": COMPONENTS, "columns": COLUMNS, "label": LABEL} | dict.fromkeys(
    ("protocol", "partition", "engine", "random_state"), ANY
)

_KINDS: Constraints = dict.fromkeys(("standardize", "accept_determined", "whiten"), FLAG)
"""Checked with every protocol: 0 equals False, and would pass for a default."""

_NOT_IN_THE_PAPERS = ("ledger", "assume_centered", "centre")
"""What ``calibration="paper"`` has no place for."""


NEED_MEAN = ("inverse_transform", "to_sklearn", "score", "score_samples")
"""Methods that need the mean of each column."""
NEED_VARIANCES = ("score", "score_samples", "get_covariance")
"""Methods that need variances of the rows themselves."""


def _check_variances(what: str, whose: str | None) -> None:
    """Refuse variances of something else: normalised rows have others than the rows. Cut rows nearly have."""
    if whose is not None and whose != CUT_ROWS:
        raise NotReleased(
            f"{what} needs variances of the rows, and those of a private fit are of {whose}",
            hint="rows='clip' with centre='mean' gives variances of cut rows",
        )


class Adapter(ABC):
    """How one protocol serves :class:`atoll.PCA`. It holds nothing: what was fitted is the estimator's."""

    protocol: ClassVar[str]
    options: ClassVar[Constraints]
    """The options that mean something to the protocol, and what they may be."""
    prepares: ClassVar[bool] = False
    """Whether the protocol can prepare tables: categories, missing values, flat columns."""
    private_options: ClassVar[Constraints] = {}
    """Those that mean something as soon as there is an epsilon."""

    # ---- options ----

    def of_variant(self, variant: str) -> Adapter:
        """The adapter of one of the protocol's variants, where it has several."""
        del variant
        return self

    def meaningful(self, estimator: Any) -> dict[str, Constraint]:
        """The options that mean something together with the others as they are."""
        known = {**_ALWAYS, **self.options}
        if "secure_sum" in known:
            known |= dict.fromkeys(options_of(estimator.secure_sum), ANY)
        if self.prepares:
            known |= TABLE_OPTIONS
        if estimator.epsilon is not None:
            known |= self.private_options
        left_out = _NOT_IN_THE_PAPERS if self.is_the_papers(estimator) else ()
        return {name: constraint for name, constraint in known.items() if name not in left_out}

    def check(self, estimator: Any) -> None:
        """Refuse options that mean nothing here, or that are not what they may be."""
        meaningful = self.meaningful(estimator)
        where = f"protocol={estimator.protocol!r} with secure_sum={estimator.secure_sum!r}"
        refuse_meaningless(estimator, meaningful, where)
        for name, constraint in {**_KINDS, **meaningful}.items():
            constraint.check(name, getattr(estimator, name))
        if estimator.whiten and (self.is_private(estimator) or self.is_the_papers(estimator)):
            _check_variances("whiten", variances_of(estimator))

    def is_the_papers(self, estimator: Any) -> bool:
        """Whether this is the published form, which promises no privacy that holds."""
        return "calibration" in self.options and bool(estimator.calibration == "paper")

    def is_private(self, estimator: Any) -> bool:
        """Whether the fit makes differentially private releases, which a ledger has to book."""
        asked = "epsilon" in self.options and estimator.epsilon is not None
        return asked and not self.is_the_papers(estimator)

    # ---- fitting ----

    @abstractmethod
    def study(self, estimator: Any, islands: Mapping[str, Island]) -> Study:
        """The study that a fit on these islands runs."""

    @abstractmethod
    def take(self, estimator: Any, run: Run) -> None:
        """Set the fitted attributes, from what was released."""

    def warn(self, estimator: Any) -> None:
        """Say what a fitted model's owner should know."""
        if self.is_the_papers(estimator):
            warnings.warn(
                "calibration='paper' is the published protocol: not differentially private as stated",
                PrivacyWarning,
                stacklevel=3,
            )

    # ---- using the model ----

    def check_use(self, estimator: Any, what: str) -> None:
        """Refuse the method ``what`` where nobody released what it needs."""
        if what in NEED_VARIANCES:
            _check_variances(what, getattr(estimator, "variances_of_", None))

    @abstractmethod
    def transform(self, estimator: Any, X: Matrix) -> Matrix:
        """Project rows on the components."""

    def project(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        """Project the rows of any islands."""
        names = getattr(estimator, "feature_names_in_", None)
        rows = features_of(prepared_islands(estimator, islands), names, estimator.n_features_in_)
        return [self.transform(estimator, X) for X in rows.values()]

    @abstractmethod
    def transform_islands(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        """Project each island's own rows, right after a fit on these islands."""
