"""What one check found."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["ok", "note", "problem"]
"""Fine; fine, but it could be better; something that Atoll offers does not work here."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. Everything but ``ok`` comes with a remedy."""

    name: str
    state: State
    detail: str
    remedy: str | None = None
