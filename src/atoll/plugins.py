"""What other installed packages bring along, through Python's entry points."""

from __future__ import annotations

from typing import Any


def brought_names(group: str) -> tuple[str, ...]:
    """The names under which packages bring something to the group."""
    return tuple(point.name for point in entry_points(group=group))


def brought(group: str, name: str) -> Any:
    """What a package brings to the group under this name; None where no package does. Loaded only now."""
    for point in entry_points(group=group, name=name):
        return point.load()
    return None


def entry_points(**wanted: str) -> Any:
    """Python's own list, whose module takes long to import and is seldom needed."""
    from importlib import metadata

    return metadata.entry_points(**wanted)
