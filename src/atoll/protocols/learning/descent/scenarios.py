"""For comparison only: sums that the server is told in the clear (DT), and tables that it is sent (CT).

These are the paper's baselines with a trusted mediator. They protect nothing, and run in one process only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Message
from atoll.fixedpoint import Limbs
from atoll.network import Network, Record
from atoll.protocols import checked
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"
TRUSTED = "comparison only: this scenario trusts the server with what islands have"


class InTheClear(Message, frozen=True):
    """Provider -> server: its own local results (DT)."""

    round_name: str
    values: np.ndarray[Any, Any]


class WholeTable(Message, frozen=True):
    """Provider -> server: all its rows or columns (CT)."""

    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]


class ClearSum:
    """What a secure sum does, without protection."""

    def __init__(self, net: Network, study: Study) -> None:
        self.net, self.study = net, study

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def contribute(self, round_name: str, values: Limbs) -> None:
        """This island's values, as they are."""
        await self.net.send(self.study.the(SERVER), InTheClear(round_name, fixedpoint.decode(values)))

    async def total(self, round_name: str, n: int) -> Limbs:
        """Their sum."""
        islands = self.study.who(PROVIDER)
        told = await self.net.gather(InTheClear, islands)
        for address, message in told.items():
            checked.check_floats(message.values, (n,), f"its part of {round_name}", address)
        return fixedpoint.encode(np.sum([m.values for m in told.values()], axis=0), contributors=len(islands))


def session(net: Network, study: Study, record: Record, scenario: str, longest: int) -> Any:
    """The study's secure sum; in the scenario DT, one in the clear."""
    if scenario == "DT":
        return ClearSum(net, study)
    return secure_sums.session(
        study, net, record, contributors=study.who(PROVIDER), receivers=study.who(SERVER), longest=longest
    )
