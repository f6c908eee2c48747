"""Estimators for islands that hold rows or columns: one study or the other, and models that stay split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island, as_islands
from atoll.errors import DataError, NotReleased, ParameterError
from atoll.estimators.base import parties, run
from atoll.estimators.learning.base import TARGET, RowsEstimator, with_column
from atoll.estimators.learning.options import CONSENT, SPLIT
from atoll.estimators.sum_options import sum_options
from atoll.estimators.summation import secure_sum
from atoll.protocols.base import MIN_ISLANDS
from atoll.protocols.learning.design import INTERCEPT
from atoll.protocols.own import owned
from atoll.runtime.execute import Run
from atoll.study.model import Study

HORIZONTAL, VERTICAL = "horizontal", "vertical"


class SplitEstimator(RowsEstimator):
    """Fits a model to islands that hold rows, or, with ``partition="vertical"``, columns of the same rows."""

    columns_protocol: ClassVar[str]

    partition: str
    y_holder: str | None
    accept_scores: bool
    accept_two_party: bool
    share_model: bool

    def _fit(self, islands: Any, y: Any, target: str | None) -> Run:
        if self.partition == HORIZONTAL:
            for name in SPLIT:
                if name != "partition" and getattr(self, name) != SPLIT[name]:
                    raise ParameterError(
                        f"{name} is for columns that are split", hint="partition='vertical', or leave it out"
                    )
            return super()._fit(islands, y, target)
        if self.partition != VERTICAL:
            raise ParameterError(
                f"partition={self.partition!r} is neither 'horizontal' (rows) nor 'vertical' (columns)"
            )
        return self._fit_columns(islands, y, target)

    def _fit_columns(self, islands: Any, y: Any, target: str | None) -> Run:
        self._check_fields()
        tables, target = self._with_target(as_islands(islands), y, target)
        if len(tables) < MIN_ISLANDS:
            raise ParameterError(f"fit needs at least {MIN_ISLANDS} islands, got {len(tables)}")
        said: dict[str, Any] = {} if target is None else {"target": target}
        said |= {} if self.y_holder is None else {"y_holder": self.y_holder}
        said |= {} if self.columns is None else {"columns": tuple(self.columns)}
        protocol, parameters = self._columns_study()
        released = {"n_samples": ("consumer",)}
        if parameters.get("scenario") != "CT":  # there the server has everything, and islands no part
            released["part"] = ("provider",)
        released |= {"fit": ("consumer",)} if self._has_fit(protocol) else {}
        released |= {"model": ("consumer",)} if self.share_model else {}
        study = Study(
            name=type(self).__name__,
            analysis=self.analysis,
            protocol=protocol,
            partition=VERTICAL,
            secure_sum=self.secure_sum,
            sum_options=sum_options(self),
            parties=parties(tables, "provider", "server", "consumer"),
            parameters=said | parameters,
            release=released,
        )
        finished = run(study, owned(tables), self.engine)
        self._keep_parts(finished, tables)
        return finished

    def _columns_study(self) -> tuple[str, dict[str, Any]]:
        """The protocol where columns are split, and its parameters."""
        return self.columns_protocol, self._parameters() | self._consent()

    def _consent(self) -> dict[str, Any]:
        return {name: bool(getattr(self, name)) for name in CONSENT}

    @staticmethod
    def _has_fit(protocol: str) -> bool:
        from atoll.protocols import protocol_of

        return "fit" in protocol_of(protocol).outputs

    def _check_fields(self) -> None:
        if len(self.categorical) or self.missing != "refuse":
            raise ParameterError(
                "with columns split, and under encryption, columns hold numbers and no row lacks one",
                hint="code categories as 0 and 1 beforehand; drop incomplete rows on every island",
            )

    def _with_target(
        self, tables: dict[str, Island], y: Any, target: str | None
    ) -> tuple[dict[str, Island], str | None]:
        """Islands with the target as a column: everybody, or its holder alone."""
        if y is None:
            return tables, target
        if target is not None:
            raise ParameterError("give the target as y or by the name of its column, not both")
        if self.y_holder is not None and self.y_holder not in tables:
            raise ParameterError(
                f"y_holder={self.y_holder!r} is no island", hint=f"one of {', '.join(tables)}"
            )
        holders = tables if self.y_holder is None else (self.y_holder,)
        return {
            name: with_column(table, y) if name in holders else table for name, table in tables.items()
        }, TARGET

    def _keep_parts(self, finished: Run, tables: Mapping[str, Island]) -> None:
        result = finished.result
        self.result_, self.transcript_, self.learned_ = result, result.transcript, finished.learned
        self.n_samples_, self.n_dropped_ = int(result["n_samples"]), 0
        self.islands_ = list(result["islands"])
        self.parts_: dict[str, Any] = result.outputs.get("part", {})
        if self.parts_:
            names = [name for island in self.islands_ for name in self.parts_[island]["names"]]
        else:
            names = [name for name in result["model"]["names"] if name != INTERCEPT]
        self.terms_ = tuple(names)
        self.n_features_in_ = len(self.terms_)
        for name in ("coef_", "intercept_", "cluster_centers_"):
            self.__dict__.pop(name, None)
        if all(table.named for table in tables.values()):
            self.feature_names_in_ = np.array(self.terms_, dtype=object)

    def __getattr__(self, name: str) -> Any:
        if name in ("coef_", "intercept_", "cluster_centers_") and "parts_" in self.__dict__:
            raise NotReleased(
                f"{name} is split among the islands (parts_ has each island's own)",
                hint="share_model=True reveals the whole model at the end of a fit",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _stays_split(self) -> bool:
        return self.partition == VERTICAL and not self.share_model

    def _linear_scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of new rows (rows x outputs): from the whole model, or of tables by a secure sum."""
        if self.partition == VERTICAL and isinstance(X, list | tuple | Mapping):
            return self._summed(X, lambda part, table: table @ part["coefficients"].T + part["offset"])
        if self._stays_split:
            raise ParameterError(
                "the model is split: give each island's columns of the new rows",
                hint="predict([XA, XB, ...])",
            )
        scores = self._design(X) @ np.atleast_2d(self.coef_).T + self.intercept_
        return np.asarray(scores)

    def _summed(self, X: Any, own: Any) -> npt.NDArray[np.float64]:
        """What every island makes of its own columns with its own part, added by a secure sum."""
        tables = as_islands(X)
        if list(tables) != list(self.islands_):
            raise ParameterError(f"one table for each of {', '.join(self.islands_)}, in this order")
        made = {}
        for name, table in tables.items():
            part = self.parts_[name]
            names = part["names"] if table.named else table.columns
            missing = [column for column in names if column not in table.columns]
            if missing or len(names) != len(part["names"]):
                raise DataError(f"{name}: the columns are not those of the fitted table", hint="as in fit")
            made[name] = own(part, table.features(names))
        rows = {name: len(values) for name, values in made.items()}
        if len(set(rows.values())) > 1:
            raise DataError(f"new rows differ in number: {rows}", hint="the same rows on every island")
        return secure_sum(made, self.secure_sum, engine=self.engine, **sum_options(self))
