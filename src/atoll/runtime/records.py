"""Records of what a role drew and sent, in memory: one that keeps, one that plays back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from atoll.errors import RunError
from atoll.network import Record
from atoll.study.address import Address

Sending = tuple[Address, bytes]


class MemoryRecord(Record):
    """Draws once per tag and keeps the bytes; started from earlier draws, it plays them back.

    Started from earlier ``sendings`` as well, it refuses any that differs from the one in its place.
    """

    def __init__(
        self,
        drawn: Mapping[str, bytes] | None = None,
        sendings: Sequence[Sending] = (),
        *,
        may_draw: bool = True,
    ) -> None:
        self.drawn: dict[str, bytes] = dict(drawn or {})
        self.sendings: list[Sending] = list(sendings)
        """Receiver and digest of everything that was sent, in order."""
        self._sent = 0
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

    def sent(self, to: Address, digest: bytes) -> None:
        with self._lock:
            if self._sent == len(self.sendings):
                self.sendings.append((to, digest))
            elif self.sendings[self._sent] != (to, digest):
                raise RunError(
                    f"what would be sent to {to} is not what the recorded run sent",
                    hint="the data, the messages received or the machine have changed: start a new run",
                )
            self._sent += 1

    def sync(self) -> None:
        """Memory has no disk."""
