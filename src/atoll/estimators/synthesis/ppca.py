"""``atoll.PPCASynthesizer``: synthetic data by probabilistic PCA over many owners."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from atoll.data.island import as_islands
from atoll.errors import ParameterError, PrivacyWarning
from atoll.estimators.base import parties, run
from atoll.estimators.constraints import plain_number, refuse_meaningless
from atoll.estimators.privacy_options import number_option
from atoll.estimators.synthesis.base import Synthesizer, at_least_two
from atoll.estimators.synthesis.columns import as_frame, schema_of
from atoll.protocols.own import owned
from atoll.protocols.synthesis.schema import anything, decode, sizes_of
from atoll.runtime.result import Result
from atoll.study.model import Study

if TYPE_CHECKING:
    import pandas as pd

NOT_PRIVATE = (
    "calibration='paper' is the published protocol: not differentially private as stated (one row moves the "
    "second moments p times as far as the noise is made for, and each published row is an image of a record)"
)


class PPCASynthesizer(Synthesizer):
    """A table that looks like the islands' rows together, and holds none of them.

    Every island adds noise to the moments of its rows; only the noisy total is opened, once, and a model is
    fitted to it. The whole fit is (``epsilon``, ``delta``)-private for every row, and rows drawn from the
    model, any number of them, cost nothing more.

    ``columns``: what is public of each column, in the order of the synthetic table: ``(low, high)`` in whole
    or decimal numbers, a list of levels, or ``bool``. ``edges``: where cells of a number begin, by column;
    else it has ``bins`` cells of equal width. ``outside``: "refuse" a number beyond its bounds, or "clip" it.

    ``contribution`` (or ``n_components``): how many components the probabilistic PCA of the release keeps;
    ``components_`` and ``noise_variance_`` are its W and sigma^2, in orthonormal coordinates of the cells.
    ``decoder``: what rows are drawn from: "maximum-entropy" (small tables only) or "latent-classes", both
    fitted to all released moments, or "gaussian", the probabilistic PCA itself. "auto" is the largest entropy
    where the joint table has at most 131,072 cells, and latent classes else.
    ``calibration="paper"``: the published protocol, not differentially private as stated; it says so.

    >>> import atoll, numpy as np, pandas as pd
    >>> n = np.arange(6000)
    >>> age, smokes = 18 + n % 73, n % 10 < 3
    >>> rows = pd.DataFrame({"age": age, "smokes": smokes, "ill": n % 120 < age})
    >>> islands = {"north": rows[:2000], "south": rows[2000:4000], "west": rows[4000:]}
    >>> columns = {"age": (18, 90), "smokes": bool, "ill": bool}
    >>> synthesizer = atoll.PPCASynthesizer(epsilon=2.0, delta=1e-5, columns=columns, random_state=0)
    >>> table = synthesizer.fit(islands).sample(5)
    >>> list(table.columns), len(table)
    (['age', 'smokes', 'ill'], 5)
    """

    protocol = "ppca-synthesis"

    def __init__(
        self,
        epsilon: float,
        delta: float | None = None,
        contribution: float = 0.9,
        n_components: int | None = None,
        *,
        columns: Any = None,
        edges: Any = None,
        bins: int = 16,
        outside: str = "refuse",
        decoder: str = "auto",
        noise: str = "distributed",
        colluders: int = 1,
        calibration: str = "analytic",
        secure_sum: str = "shares",
        key: str = "collective",
        mix: Any = None,
        random_state: Any = None,
        ledger: Any = None,
        engine: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.decoder, self.calibration = epsilon, delta, decoder, calibration
        self.contribution, self.n_components = contribution, n_components
        self.columns, self.edges, self.bins, self.outside = columns, edges, bins, outside
        self.noise, self.colluders = noise, colluders
        self.secure_sum, self.key, self.mix = secure_sum, key, mix
        self.random_state, self.ledger, self.engine = random_state, ledger, engine

    def fit(self, islands: Any, y: None = None) -> Self:
        """Fit to one table per island: a list, or a mapping of names to frames, paths or islands."""
        if self.calibration == "analytic":
            return super().fit(islands, y)
        if self.calibration != "paper":
            raise ParameterError(f"calibration={self.calibration!r} must be 'analytic' or 'paper'")
        used = ("epsilon", "contribution", "n_components", "columns", "edges", "bins", "outside", "engine")
        refuse_meaningless(self, (*used, "calibration", "random_state"), "calibration='paper'")
        warnings.warn(NOT_PRIVATE, PrivacyWarning, stacklevel=2)
        tables = at_least_two(as_islands(islands))
        study = Study(
            name=type(self).__name__,
            analysis="synthesis",
            protocol="ppca-dp-mh",
            parties=parties(tables, "owner", "curator"),
            parameters={
                "epsilon": number_option(self, "epsilon"),
                "schema": schema_of(self.columns, self.edges, tables),
                "bins": self.bins,
                "outside": self.outside,
                "contribution": plain_number(self.contribution),
                "n_components": plain_number(self.n_components),
            },
            release={"rows": ("curator",)},
        )
        finished = run(study, owned(tables), self.engine)
        self.learned_ = finished.learned
        return self._take(finished.result)

    def sample(
        self, n: int | None = None, *, where: Mapping[str, Any] | None = None, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw so many synthetic rows (as many as there were, by the noisy count, unless said).

        ``where`` sets conditions: ``{"sex": "F", "age": (40, 60)}``, a level, several levels in a list, or
        the ends of a range. ``random_state`` (else the estimator's) makes the draw repeatable. The published
        form has one row for every row that there was, no more and no other.
        """
        check_is_fitted(self, "schema_")
        if not hasattr(self, "rows_"):
            return super().sample(n, where=where, random_state=random_state)
        if where is not None or n not in (None, len(self.rows_)):
            raise ParameterError("calibration='paper' publishes one row for every row, and draws no others")
        rng, drawn = self._generator(random_state), {}
        for a, (column, size) in enumerate(
            zip(self.schema_, sizes_of(self.schema_, self.bins_), strict=True)
        ):
            drawn[column.name] = decode(self.rows_[:, a], column, self.bins_, anything(column, size), rng)
        return as_frame(drawn, self.schema_)

    def _parameters(self) -> dict[str, Any]:
        return {
            "contribution": plain_number(self.contribution),
            "n_components": plain_number(self.n_components),
            "decoder": self.decoder,
        }

    def _take(self, result: Result) -> Self:
        if "rows" in result:
            self._take_schema(result)
            self.rows_ = np.asarray(result["rows"])
            self.n_samples_ = len(self.rows_)
            return self
        super()._take(result)
        self.components_ = self.model_["components"].T
        self.noise_variance_ = float(self.model_["noise_variance"])
        self.explained_variance_ = self.model_["explained_variance"]
        self.explained_variance_ratio_ = self.explained_variance_ / float(self.model_["total_variance"])
        self.n_components_ = len(self.components_)
        return self
