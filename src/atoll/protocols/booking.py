"""One owner's ledger during one run: reserved before anything leaves, settled stage by stage.

The release id is a recorded draw, brought to disk before the ledger hears of it: a role run again from its
record is the same release, and is not charged twice; a new run is a new one. What is not settled when the
role ends, however it ends, is given back. (A process that is killed gives nothing back: its reservation
stays, and counts, until its run is resumed or the owner says ``atoll ledger give-back``.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix
from atoll.errors import PrivacyError
from atoll.network import Network, Record
from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import EXACT, Release, Stated
from atoll.privacy.mechanisms import Cost
from atoll.privacy.sensitivity import Neighbours
from atoll.protocols.own import Own
from atoll.study.model import Study


class Rows(Protocol):
    """Rows that can be read block by block."""

    def blocks(self) -> Iterator[Matrix]: ...


RECORDED_RELEASE = "privacy/release"


class Booking:
    """``stages``: what each costs; None for an exact release. Nothing is booked where there is no ledger."""

    def __init__(
        self,
        study: Study,
        own: Own,
        record: Record,
        stages: Mapping[str, Cost] | None,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        self.exact = stages is None
        self._own, self._record = own, record
        self._fingerprint = ""
        if own.ledger is None:
            return
        island = own.table
        identity = island.identity if island.identity is not None else island.name
        # Drawn once per run and recorded: a resumed run is the same release, a new run a new one.
        release_id = f"{study.digest}/{record(RECORDED_RELEASE, randomness.fresh_seed).hex()}"
        if stages is None:
            self._release = Release.exactly(identity, release_id, study.digest)
        else:
            spent = {name: Spent.of([cost]) for name, cost in stages.items()}
            stated = Stated(study.parameters["epsilon"], study.parameters.get("delta"))
            self._release = Release(identity, release_id, spent, neighbours, study.digest, stated=stated)

    def __enter__(self) -> Booking:
        """Refuse at once what the owner's budget or policy does not cover."""
        if self._own.ledger is not None:
            self._record.sync()
            with self._named():
                self._own.ledger.reserve(self._release)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own.ledger is not None:
            self._own.ledger.give_back(self._release)

    async def made_from(self, net: Network, table: Rows) -> None:
        """The rows that the release is made from; to be said before the first stage is settled."""
        if self._own.ledger is not None:
            self._fingerprint = await net.compute(fingerprint, table.blocks())

    def settle(self, stage: str) -> None:
        """Written down for good when this returns; only then may the stage's value leave."""
        if self._own.ledger is not None:
            with self._named():
                self._own.ledger.settle(self._release, stage, self._fingerprint)

    async def settle_exact(self, net: Network, table: Rows) -> None:
        """Of a study without an epsilon, before its first number leaves; else nothing."""
        if self.exact:
            await self.made_from(net, table)
            self.settle(EXACT)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except PrivacyError as error:
            raise type(error)(f"{self._own.table.name}: {error.message}", hint=error.hint) from None


def fingerprint(blocks: Iterable[Matrix]) -> str:
    """Of the rows, for the ledger alone, which puts it under a secret before it writes it down."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(np.ascontiguousarray(block, dtype="<f8").tobytes())
    return digest.hexdigest()


def refuse_few_colluders(own: Own, colluders: int) -> None:
    """An owner may ask for more noise than the study's author thought of."""
    if colluders < own.min_colluders:
        raise PrivacyError(
            f"{own.table.name}: the study's noise is for {colluders} colluding owner(s), this island asks "
            f"for at least {own.min_colluders}",
            hint=f"colluders = {own.min_colluders} or more, or noise = 'local'",
        )


def refuse_ledger(own: Own) -> None:
    """A published form releases nothing of an island that keeps a ledger, or asks for noise of its own."""
    if own.ledger is not None or own.min_colluders:
        raise PrivacyError(
            f"{own.table.name}: calibration='paper' keeps no privacy promise that its ledger could "
            "account for",
            hint="use calibration='analytic', or no ledger for data that need no protection",
        )
