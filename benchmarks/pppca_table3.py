"""Table 3 of the PPPCA paper: running time by number of parties, on a table of Wine Quality's size.

    python -m benchmarks.pppca_table3

6,497 x 11 rows in all, 2 to 4 parties; links with 1 ms latency and 1 Gbit/s, as in one data centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import atoll
from benchmarks.measure import seconds, show

PAPER: dict[str, dict[int, float]] = {"HE": {2: 3.16, 3: 3.23}, "SS": {2: 2.91, 3: 3.22, 4: 3.42}}
FORMS = (
    ("HE", "paillier", {}),
    ("HE", "lattice", {"key": "server"}),
    ("HE", "lattice", {}),
    ("SS", "shares", {}),
)


def measure(kind: str, method: str, options: dict[str, Any], islands: list[Any]) -> list[Any]:
    """One row: the run without the making of the key, and the key apart."""
    engine = atoll.LocalEngine(latency=0.001, bandwidth=125e6)
    took, mine = seconds(lambda: atoll.PCA(5, secure_sum=method, engine=engine, **options).fit(islands))
    keys = sum(cost.seconds.get("recorded_key", 0.0) for cost in mine.transcript_.roles.values())
    name = f"{kind}: {method} {options.get('key', '')}"
    return [name, len(islands), took - keys, keys, PAPER[kind].get(len(islands), "-"), 0.5]


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 1.0, (6497, 11)) @ rng.normal(size=(11, 11))
    atoll.PCA(2, secure_sum="lattice").fit([X[:50], X[50:]])  # load libraries before the clock starts
    show(
        "PPPCA on 6,497 x 11, emulated links",
        ["method", "parties", "seconds", "key generation s", "paper s", "promise <="],
        [
            measure(kind, method, options, np.array_split(X, parties))
            for kind, method, options in FORMS
            for parties in (2, 3, 4)
        ],
    )


if __name__ == "__main__":
    main()
