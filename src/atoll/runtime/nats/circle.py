"""With whom a party exchanges greetings and signs of life: with all, or among many with a few.

Between all pairs that would be n² frames. So in a run of more than 32 parties one of them, the *chair*,
hears all, and everybody else hears the chair and the two next on either side in the study's order.
Everybody is watched by five, and whoever notices a silence tells all. Only the chair sees that every role
everywhere waits, and that everybody is done.

Whoever starts for the first time asks its circle, and goes on when each of them has written down the name of
this start. Whoever starts again asks everybody: messages may have gone to anybody after its journal was
copied. A journal that was lost as a whole looks like a first start; the circle knows better.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ALL_UP_TO: Final = 32
"""So many parties greet each other all."""
_REACH: Final = 2
_BEATS_UP_TO: Final = 100
"""With more parties signs of life become rarer, so that the chair does not hear more of them a second."""


class Circle(NamedTuple):
    """Of one party."""

    near: tuple[int, ...]
    """The others whom it greets and watches, by their places in the study."""
    chair: int
    whole: bool
    """Whether all parties greet each other."""
    is_chair: bool


def circle_of(me: int, parties: int, chair: int) -> Circle:
    """One party's circle; whoever is in it has this party in its own."""
    others = [other for other in range(parties) if other != me]
    if parties <= ALL_UP_TO:
        return Circle(tuple(others), chair, True, me == chair)
    if me == chair:
        return Circle(tuple(others), chair, False, True)
    beside = {(me + step) % parties for step in range(-_REACH, _REACH + 1) if step}
    return Circle(tuple(sorted(beside | {chair})), chair, False, False)


def beat_of(beat: float, deadline: float, parties: int) -> float:
    """Seconds between signs of life among so many parties; several fit into a deadline."""
    return max(beat, min(beat * parties / _BEATS_UP_TO, deadline / 4))
