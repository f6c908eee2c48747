"""Numbers as people read them."""

from __future__ import annotations

_STEPS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size(count: float) -> str:
    """Bytes: 1234567 -> "1.23 MB"."""
    for step, unit in _STEPS:
        if count >= step:
            return f"{count / step:.3g} {unit}" if count < 1000 * step else f"{count / step:,.0f} {unit}"
    return f"{count:.0f} B"


def listing(names: tuple[str, ...] | list[str], shown: int = 6) -> str:
    """Names in one line; a long list is cut and counted."""
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"


def duration(seconds: float) -> str:
    """Seconds: 754 -> "13 min"."""
    for step, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * step:
            return f"{seconds / step:.2g} {unit}"
    return f"{seconds:.2g} s"
