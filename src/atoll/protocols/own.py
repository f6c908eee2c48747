"""What is one party's alone in a run: its table, its ledger and conditions, the shares it kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from atoll.errors import RunError

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.privacy.ledger import Ledger


@dataclass(frozen=True)
class Own:
    """Handed to a party's roles and to nobody else; never printed but for the island's size."""

    island: Island | None = None
    """The table; only roles that read rows are given it."""
    ledger: Ledger | None = field(default=None, repr=False)
    """Where releases of the table are booked, under the island's identity."""
    min_colluders: int = 0
    """Private studies whose noise is for fewer colluding owners are refused."""
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Role -> the share that it kept of an earlier run."""

    @property
    def table(self) -> Island:
        """The island, for a role that cannot work without one."""
        if self.island is None:
            raise RunError("this role has no table to read", hint="[local] data = { name = path }")
        return self.island


def owned(
    islands: Mapping[str, Island], ledger: Ledger | None = None, *, min_colluders: int = 0
) -> dict[str, Own]:
    """Every island with one ledger and one set of conditions for all, by party."""
    return {name: Own(island, ledger, min_colluders) for name, island in islands.items()}
