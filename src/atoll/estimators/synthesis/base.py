"""What synthesizers share: the study of a fit, rows drawn from what it released, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from atoll import randomness
from atoll.data.island import Island, as_islands
from atoll.errors import DataError, ParameterError
from atoll.estimators.base import beside_islands, parties, run
from atoll.estimators.constraints import is_whole
from atoll.estimators.privacy_options import accounts, booked, number_option, whole_colluders
from atoll.estimators.sum_options import sum_options
from atoll.estimators.synthesis.columns import as_frame, schema_of
from atoll.protocols import protocol_of
from atoll.protocols.base import MIN_ISLANDS
from atoll.protocols.synthesis import models
from atoll.runtime.result import Result, load_result
from atoll.study.model import Study

if TYPE_CHECKING:
    import pandas as pd

    from atoll.report.synthetic import Comparison

MOST_ROWS = 100_000_000


def at_least_two(tables: dict[str, Island]) -> dict[str, Island]:
    """One table alone needs no secure sum, and its noise no shares."""
    if len(tables) < MIN_ISLANDS:
        raise ParameterError(
            f"fit needs at least {MIN_ISLANDS} islands, got {len(tables)}",
            hint="fit([X1, X2, ...]) or fit({'st-mary': X1, ...})",
        )
    return tables


class Synthesizer(BaseEstimator):  # type: ignore[misc]
    """Fits a model to islands that hold rows, by secure sums with noise in them, and draws rows from it."""

    protocol: ClassVar[str]

    epsilon: float
    delta: float | None
    columns: Any
    edges: Any
    bins: int
    outside: str
    noise: str
    colluders: int
    secure_sum: str
    key: str
    mix: Any
    random_state: Any
    ledger: Any
    engine: Any
    dropouts = 0

    def fit(self, islands: Any, y: None = None) -> Self:
        """Fit to one table per island: a list, or a mapping of names to frames, paths or islands."""
        del y
        given, brought = beside_islands(islands)
        tables = at_least_two(as_islands(given))
        study = Study(
            name=type(self).__name__,
            analysis="synthesis",
            protocol=self.protocol,
            secure_sum=self.secure_sum,
            sum_options=sum_options(self),
            parties=parties(tables, "owner", "curator"),
            parameters={
                "epsilon": number_option(self, "epsilon"),
                "delta": number_option(self, "delta"),
                "noise": self.noise,
                "colluders": whole_colluders(self),
                "schema": schema_of(self.columns, self.edges, tables),
                "bins": self.bins,
                "outside": self.outside,
                **self._parameters(),
            },
            release={"model": ("owner", "curator"), "moments": ("curator",)},
        )
        with booked(tables, self.ledger, named=isinstance(given, Mapping), brought=brought) as own:
            finished = run(study, own, self.engine)
            self.privacy_ = accounts(finished.result.study, own)
        self.learned_ = finished.learned
        return self._take(finished.result)

    def _parameters(self) -> dict[str, Any]:
        """Options of this synthesizer alone, as the study holds them."""
        raise NotImplementedError

    def _take(self, result: Result) -> Self:
        """Set the fitted attributes from what was released."""
        self._take_schema(result)
        self.model_ = result["model"]
        self.n_samples_ = max(1, round(float(self.model_["count"])))
        return self

    def _take_schema(self, result: Result) -> None:
        p: Any = result.study.read_parameters(protocol_of(result.study.protocol).parameters)
        self.result_, self.transcript_ = result, result.transcript
        self.schema_, self.bins_ = p.schema, p.bins
        self.feature_names_in_ = np.array([column.name for column in p.schema], dtype=object)
        self.n_features_in_ = len(p.schema)

    def sample(
        self, n: int | None = None, *, where: Mapping[str, Any] | None = None, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw so many synthetic rows (as many as there were, by the noisy count, unless said).

        ``where`` sets conditions: ``{"sex": "F", "age": (40, 60)}``, a level, several levels in a list, or
        the ends of a range. ``random_state`` (else the estimator's) makes the draw repeatable.
        """
        check_is_fitted(self, "model_")
        rows = self.n_samples_ if n is None else n
        if not is_whole(rows) or not 0 <= rows <= MOST_ROWS:
            raise ParameterError(f"n={n!r} must be a whole number of rows, up to {MOST_ROWS:,}")
        rng = self._generator(random_state)
        drawn = models.sample(self.model_, self.schema_, self.bins_, int(rows), dict(where or {}), rng)
        return as_frame(drawn, self.schema_)

    def report(self, real: Any, *, holdout: Any = None, target: str | None = None) -> Comparison:
        """Synthetic rows beside an owner's own: margins, dependence, and, with a ``target``, how well a model
        that learned from synthetic rows predicts real ones.

        ``holdout``: rows of the same kind that were in no island; with them it is also measured whether
        synthetic rows lie closer to rows that were used. ``save("report.html")`` writes it as one page, with
        exact figures of the real rows: for their owner alone.
        """
        from atoll.report.synthetic import compare

        drawn = self.sample(random_state=0)
        return compare(real, drawn, self.schema_, self.bins_, holdout=holdout, target=target)

    def _generator(self, random_state: Any) -> randomness.Public:
        seed = self.random_state if random_state is None else random_state
        try:
            return randomness.public(seed)
        except (TypeError, ValueError):
            raise ParameterError(f"random_state={seed!r} must be a whole number from 0, or None") from None

    def save(self, path: str | Path) -> Path:
        """Write what was released, as a result file: the model and its study, and no row of anybody."""
        check_is_fitted(self, "model_")
        return self.result_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A synthesizer from a result file, to draw rows from."""
        result = load_result(path)
        if result.study.protocol != cls.protocol:
            raise DataError(
                f"{path} is a result of {result.study.protocol}, not of {cls.protocol}",
                hint="atoll.load_result(path).study says what it is",
            )
        return cls(epsilon=result.study.parameters["epsilon"])._take(result)
