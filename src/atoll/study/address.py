"""Who somebody is in a study: one role of one party."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """One role of one party."""

    party: str
    role: str

    def __str__(self) -> str:
        return f"{self.party}/{self.role}"
