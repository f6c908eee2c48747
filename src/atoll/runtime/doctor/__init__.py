"""What this machine has of what Atoll needs, and what to do about the rest.

- :mod:`finding`: what one check found
- :mod:`machine`: the core library, the processor, the calibration
- :mod:`files`: readers of tables, and the disk that keeps ledgers and journals

A check is a function without arguments that gives findings. Another one joins by being appended to
:data:`CHECKS`; checks run in that order, and one that fails is itself a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from atoll.runtime.doctor import files, machine
from atoll.runtime.doctor.finding import Finding, State

__all__ = ["CHECKS", "Check", "Finding", "State", "findings"]

Check = Callable[[], Iterable[Finding]]

CHECKS: list[Check] = [
    machine.core_library,
    machine.processor,
    machine.calibration,
    files.readers,
    files.disk_sync,
]
"""In the order in which they are shown."""


def findings(checks: Iterable[Check] | None = None) -> Iterator[Finding]:
    """What all checks find, one after the other; looking changes nothing."""
    for check in CHECKS if checks is None else checks:
        try:
            yield from check()
        except Exception as error:  # a check that breaks must not hide the others
            name = check.__name__.replace("_", " ")
            yield Finding(
                name, "problem", f"the check itself failed ({type(error).__name__})", "report it as a fault"
            )
