"""Faults to try a protocol against: frames delayed, dropped, doubled, out of order, and roles that die.

The generator here decides the fate of frames in tests, nothing secret, and is seeded so that a
schedule that found a bug can be kept.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Faults:
    """A seeded schedule: chances per frame, and the roles that crash at their k-th message."""

    seed: int = 0
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay: float = 0.0
    """Chance of a late frame."""
    late_by: float = 0.002
    """Seconds by which a late or overtaken frame comes late at most."""
    resend_after: float = 0.004
    crash: dict[str, int] = field(default_factory=dict)
    """Role address ("st-mary/provider") -> the message, counted from 1, at which it dies."""

    def generator(self) -> random.Random:
        return random.Random(self.seed)

    @property
    def touches_frames(self) -> bool:
        return any((self.drop, self.duplicate, self.reorder, self.delay))

    def copies(self, draw: random.Random) -> list[float]:
        """The delays at which copies of one transmission arrive; none when it is lost."""
        if draw.random() < self.drop:
            return []
        late = draw.random() < max(self.reorder, self.delay)
        delays = [draw.random() * self.late_by if late else 0.0]
        if draw.random() < self.duplicate:
            delays.append(draw.random() * self.late_by)
        return delays
