"""Who is whose neighbour among many: everybody's of everybody, or a sparse graph that stays connected.

Masks are agreed on between neighbours, and neighbours compare what a receiver told each of them.
"""

from __future__ import annotations

MAX_NEIGHBOURS = 100


def neighbours(index: int, n: int) -> list[int]:
    """A circulant graph in which each of n has up to 100 neighbours: no 99 of them disconnect it."""
    reach = MAX_NEIGHBOURS // 2
    if n - 1 <= MAX_NEIGHBOURS:
        return [other for other in range(n) if other != index]
    return sorted((index + step) % n for step in range(-reach, reach + 1) if step)
