"""What an example is: a study with its data; and the tables that most of them use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from atoll.data.island import Island
from atoll.privacy.ledger import Ledger
from atoll.protocols.own import Own
from atoll.study.address import Address
from atoll.study.model import Study

EXACT = ("meta", "separate", "pppca", "sum")


def same(a: object, b: object) -> bool:
    """To the last bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))  # type: ignore[arg-type]


class Example(NamedTuple):
    study: Study
    islands: dict[str, Island]
    kept: Mapping[Address, bytes] = MappingProxyType({})
    ledgers: Mapping[str, Ledger] = MappingProxyType({})

    @property
    def own(self) -> dict[str, Own]:
        """What each party brings."""
        kept: dict[str, dict[str, bytes]] = defaultdict(dict)
        for address, share in self.kept.items():
            kept[address.party][address.role] = share
        return {
            name: Own(self.islands.get(name), self.ledgers.get(name), kept=kept.get(name, {}))
            for name in {**self.islands, **kept}
        }

    @property
    def is_exact(self) -> bool:
        """Whether what it computes does not depend on what its roles draw."""
        return self.study.protocol in EXACT and "epsilon" not in self.study.parameters

    def booked(self, ledger: Ledger) -> Example:
        """The same with one ledger for all islands."""
        return self._replace(ledgers=dict.fromkeys(self.islands, ledger))


def table(rows: int = 40, columns: int = 4, seed: int = 7) -> np.ndarray:
    mixing = np.random.default_rng(seed)
    return mixing.normal(size=(rows, columns)) @ mixing.normal(size=(columns, columns)) + np.arange(columns)


def cut(X: Any, n_islands: int) -> list[Any]:
    return [X[part] for part in np.array_split(np.arange(len(X)), n_islands)]


def frames(n_islands: int = 3) -> dict[str, pd.DataFrame]:
    X = table()
    frame = pd.DataFrame(X, columns=["age", "dose", "weight", "stay"])
    frame["outcome"] = np.where(X[:, 0] > 0, "well", "ill")
    return {f"hospital-{i}": part for i, part in enumerate(cut_frame(frame, n_islands))}


def cut_frame(frame: pd.DataFrame, n_islands: int) -> list[pd.DataFrame]:
    return [frame.iloc[part] for part in np.array_split(np.arange(len(frame)), n_islands)]
