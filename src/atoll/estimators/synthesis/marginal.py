"""``atoll.MarginalSynthesizer``: synthetic data by a tree of two-way tables over many owners."""

from __future__ import annotations

from typing import Any, Self

from atoll.estimators.synthesis.base import Synthesizer
from atoll.runtime.result import Result


class MarginalSynthesizer(Synthesizer):
    """A table that looks like the islands' rows together, drawn along a tree of two-way tables.

    All pairs of columns are measured with a part of the budget; the tree of largest dependence among them is
    measured again with the rest. Suits columns with many levels, of which a few pairs matter most. Options
    are those of ``PPCASynthesizer``; ``decoder="latent-classes"`` draws from classes fitted to everything
    that was measured. ``tree_``: the pairs of columns.

    >>> import atoll, numpy as np, pandas as pd
    >>> n = np.arange(6000)
    >>> ward = np.array(["a", "b", "c"])[n % 3]
    >>> rows = pd.DataFrame({"ward": ward, "ill": (ward == "c") ^ (n % 10 == 0)})
    >>> synthesizer = atoll.MarginalSynthesizer(2.0, 1e-5, columns={"ward": ["a", "b", "c"], "ill": bool})
    >>> synthesizer.fit([rows[:2000], rows[2000:4000], rows[4000:]]).tree_
    [('ward', 'ill')]
    """

    protocol = "marginal-synthesis"

    def __init__(
        self,
        epsilon: float,
        delta: float | None = None,
        *,
        columns: Any = None,
        bins: int = 16,
        edges: Any = None,
        outside: str = "refuse",
        decoder: str = "tree",
        noise: str = "distributed",
        colluders: int = 1,
        secure_sum: str = "shares",
        key: str = "collective",
        mix: Any = None,
        random_state: Any = None,
        ledger: Any = None,
        engine: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.decoder = epsilon, delta, decoder
        self.columns, self.edges, self.bins, self.outside = columns, edges, bins, outside
        self.noise, self.colluders = noise, colluders
        self.secure_sum, self.key, self.mix = secure_sum, key, mix
        self.random_state, self.ledger, self.engine = random_state, ledger, engine

    def _parameters(self) -> dict[str, Any]:
        return {"decoder": self.decoder}

    def _take(self, result: Result) -> Self:
        super()._take(result)
        names = [column.name for column in self.schema_]
        self.tree_ = [(names[int(a)], names[int(b)]) for a, b in self.model_["tree"]]
        return self
