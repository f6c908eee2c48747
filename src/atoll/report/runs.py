"""Runs of a site, as people and programs read them: how far each is, and what every party said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from atoll.report.units import duration

if TYPE_CHECKING:
    from atoll.runtime.nats.runs import RunFolder, State


def ago(seconds: float) -> str:
    """When something was, in words."""
    passed = time.time() - seconds
    return f"{duration(passed)} ago" if passed >= 1 else "just now"


def facts(folder: RunFolder, state: State) -> dict[str, Any]:
    """A run as plain data, for programs."""
    import msgspec

    progress = folder.progress()
    return {
        **msgspec.to_builtins(state),
        "name": folder.name,
        "silent": list(state.silent),
        "progress": None if progress is None else msgspec.to_builtins(progress),
        "result": str(folder.result) if folder.result.exists() else None,
        "receipt": str(folder.receipt) if folder.receipt.exists() else None,
    }


def far(folder: RunFolder, state: State) -> str:
    """How far a run is, in a few words."""
    if state.phase != "running":
        return state.words if state.phase in ("failed", "declined", "expired", "cancelled") else ""
    progress = folder.progress()
    if progress is None:
        return "starting"
    rounds = f"round {progress.rounds}" + (f" of {progress.of_rounds}" if progress.of_rounds else "")
    left = "" if progress.left is None else f", about {duration(progress.left)} left"
    return rounds + left


def said_by(party: str, state: State) -> str:
    """What a party says of a run, as far as this site knows; empty where it has not answered."""
    if party == state.me:
        return f"{state.phase} (this site)"
    answer = state.answers.get(party)
    return "" if answer is None else " ".join(filter(None, (answer.state, answer.words, answer.role)))
