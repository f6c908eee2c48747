"""Run a program on secret numbers with every party on the local engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

from atoll.data.island import Island
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import owned
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_numbers import messages
from atoll.secret_numbers.field import Elements
from atoll.secret_numbers.party import Party as PartyMachine
from atoll.secret_numbers.party import Supply
from atoll.secret_numbers.supplies import Dealt, Joint, deal
from atoll.study.model import Parameters, Party, Study

Program = Callable[[PartyMachine, int], Coroutine[Any, Any, Any]]
"""What a party does with its machine; the number says which of the parties it is."""


def run(
    program: Program, n_parties: int, *, key_bits: int | None = None, observer: Observer | None = None
) -> tuple[list[Any], Any]:
    """What every party returns, and the transcript; with a dealer, or with Paillier keys of so many bits."""
    names = [f"p{i}" for i in range(n_parties)]

    async def provider(net: Network, study: Study, own: Any, record: Record) -> Learned:
        parties = list(study.who("provider"))
        supply: Supply = Dealt(study.the("dealer")) if key_bits is None else Joint(key_bits)
        machine = PartyMachine(net, record, study.digest, parties, supply)
        result = await program(machine, parties.index(net.me))
        await machine.close()
        return Learned({"result": result})

    async def dealer(net: Network, study: Study, own: Any, record: Record) -> Learned:
        if key_bits is None:
            await deal(net, record, study.who("provider"))
        return Learned()

    protocol = Protocol(
        name="numbers-test",
        title="",
        roles={"provider": provider, "dealer": dealer},
        data_roles=frozenset({"provider"}),
        messages=messages.MESSAGES,
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset({"dealer"}),
        uses_sum=False,
    )
    parties = (*(Party(name, ("provider",)) for name in names), Party("helper", ("dealer",)))
    study = Study(name="t", protocol="numbers-test", parties=parties)
    islands = {name: Island.from_array(np.zeros((2, 1)), name=name) for name in names}
    outcome = LocalEngine().run(protocol, study, owned(islands), observer=observer)
    results = {str(a): learned.outputs.get("result") for a, learned in outcome.learned.items()}
    return [results[f"{name}/provider"] for name in names], outcome.transcript


def own_share(machine: PartyMachine, which: int, numbers: Elements) -> Elements:
    """Shares of numbers that the test knows: every party but the first has the same large one."""
    others = np.full(numbers.shape, 3**150, dtype=object)
    mine = others if which else numbers - (machine.n_parties - 1) * others
    return np.array(mine % (2**255 - 19), dtype=object)[None]
