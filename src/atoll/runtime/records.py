"""Records of what a role drew, in memory: one that keeps, one that plays back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from atoll.errors import RunError


class MemoryRecord:
    """Draws once per tag and keeps the bytes; started from earlier draws, it plays them back."""

    def __init__(self, drawn: Mapping[str, bytes] | None = None, *, may_draw: bool = True) -> None:
        self.drawn: dict[str, bytes] = dict(drawn or {})
        self._may_draw = may_draw
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.drawn)} draws>"

    def __call__(self, tag: str, draw: Callable[[], bytes]) -> bytes:
        with self._lock:
            if tag in self._used:
                raise RunError(f"the draw {tag!r} was asked for twice; a second draw could open a secret")
            self._used.add(tag)
            if tag not in self.drawn:
                if not self._may_draw:
                    raise RunError(f"the record holds no draw {tag!r}")
                self.drawn[tag] = draw()
            return self.drawn[tag]
