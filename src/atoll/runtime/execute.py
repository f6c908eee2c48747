"""Run a study on an engine and hand the caller what it may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.protocols import Learned, protocol_of, resolve
from atoll.protocols.own import Own
from atoll.runtime.engine import Engine, Progress
from atoll.runtime.learned import LearnedByRole
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.result import Result
from atoll.study.address import Address
from atoll.study.model import Study


class Run:
    """A finished run as its caller sees it: the result, and what each role learned."""

    def __init__(self, result: Result, learned: Mapping[Address, Learned]) -> None:
        self.result = result
        self.learned = LearnedByRole(learned)

    @property
    def by_party(self) -> dict[str, Result]:
        """What each party would have at the end of a run between machines: what is released to its roles, and
        what these cost. Parties to which nothing is released have no result."""
        found: dict[str, dict[str, Any]] = {}
        for address, learned in self.learned.items():
            if learned.outputs:
                _join(found.setdefault(address.party, {}), learned.outputs)
        return {party: self._result_of(party, outputs) for party, outputs in found.items()}

    def _result_of(self, party: str, outputs: Mapping[str, Any]) -> Result:
        whole = self.result.transcript
        for address in self.learned:
            whole.of(address)  # a role that neither sent nor received anything is still one
        transcript = whole.of_party(party)
        certificate = outputs.get("certificate")
        return Result(self.result.study, outputs, transcript, certificate, self.result.booked)


def run_study(
    study: Study,
    own: Mapping[str, Own],
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Run:
    """All roles that the engine carries; the result holds everything released to any of them."""
    study = resolve(study)
    outcome = (engine or LocalEngine()).run(protocol_of(study.protocol), study, own, progress=progress)
    outputs = joined(outcome.learned)
    elsewhere = engine is not None and engine.elsewhere
    said = _booked_elsewhere(study) if elsewhere else booked(study, own)
    result = Result(outcome.study or study, outputs, outcome.transcript, outputs.get("certificate"), said)
    return Run(result, outcome.learned)


def _booked_elsewhere(study: Study) -> str | None:
    terms = protocol_of(study.protocol).privacy(study)
    return None if terms is None else "booked by each site, in its own ledger, as far as it keeps one"


def joined(learned: Mapping[Address, Learned]) -> dict[str, Any]:
    """Everything that was released to these roles, together."""
    outputs: dict[str, Any] = {}
    for one in learned.values():
        _join(outputs, one.outputs)
    return outputs


def booked(study: Study, own: Mapping[str, Own]) -> str | None:
    """Where the spending of this run is written down; that it is nowhere must not go unsaid."""
    terms = protocol_of(study.protocol).privacy(study)
    islands = [name for name, mine in own.items() if mine.island is not None]
    without = [name for name in islands if own[name].ledger is None]
    if terms is None:
        return "booked as exact" if islands and not without else None
    if not terms.costs:
        return "nothing is promised, so nothing was booked"
    if not without:
        return "booked in the ledger"
    whose = "" if len(without) == len(islands) else f" of {', '.join(without)}"
    return f"no ledger{whose}: nothing booked"


def _join(outputs: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add a role's outputs; what several roles hold by island name is put together."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(outputs.get(name), dict):
            outputs[name] = outputs[name] | value
        else:
            outputs[name] = value
