"""What comes before the recipe in every variant, counted: names, numbers of rows, the range, secure sums."""

from __future__ import annotations

from atoll import secure_sums
from atoll.protocols.agreement import COMPARISON_BYTES, comparisons
from atoll.protocols.pca.sfpca.parameters import VERTICAL
from atoll.protocols.pca.sfpca.ranges import LEVELS
from atoll.secret_matrices.costs.wires import Wires
from atoll.study.model import Study

ROWS, VALUES = 1 << 14, 1 << 24
"""Rows that an island is assumed to have, unless its table would have more values than that."""


def assumed_rows(d: int) -> int:
    """Rows of an island, where nobody says."""
    return max(1, min(ROWS, VALUES // d))


def own_columns(study: Study, d: int) -> int:
    """Columns of one island's table."""
    return -(-d // len(study.who("provider"))) if study.partition == VERTICAL else d


def count_announcement(wires: Wires, d: int) -> None:
    """Names of columns and numbers of rows, there and back, and the comparison of them."""
    names = 20 * d
    wires.gathered(names)
    wires.broadcast(names)
    wires.gathered(2)
    wires.broadcast(4 * wires.n_providers)
    count_comparison(wires)


def count_range(study: Study, wires: Wires, columns: int) -> None:
    """The range of the data, where no bounds say it."""
    count_sums(study, wires, [columns * len(LEVELS)], 2 * columns)
    count_comparison(wires)


def count_comparison(wires: Wires) -> None:
    """Providers compare what the coordinator told them."""
    told = comparisons(wires.n_providers)
    wires.messages += told
    for name in wires.sent:
        wires.sent[name] += told // wires.n_providers * COMPARISON_BYTES
    wires.deepen(wires.providers, max(wires.depths.values()) + 1)


def count_sums(study: Study, wires: Wires, lengths: list[int], answer: int) -> None:
    """Secure sums in one session, each answered by the coordinator."""
    cost = secure_sums.expected(study, wires.n_providers, lengths)
    wires.messages += cost.messages
    for name in wires.sent:
        wires.sent[name] += cost.bytes_per_contributor
    # Seeds go from provider to provider, sums to the coordinator.
    wires.deepen(wires.providers, max(wires.depths.values()) + 1)
    for _ in lengths:
        wires.coordinator_depth = max(wires.depths.values()) + 1
        wires.broadcast(answer)
