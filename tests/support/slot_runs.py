"""Programs for the machine on vectors in slots: encrypted, all roles on the local engine, or in the clear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from atoll.crypto import slots
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.slots import messages, roles
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.secret_matrices.slots.machine import Matrix, Tally, Values
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study

INSECURE = "test-slots-10"
Program = Callable[[Any, Any], Awaitable[Any]]
Reception = Callable[[roles.Receiver], Awaitable[Any]]

COORDINATOR = Address("hub", "coordinator")
CONSUMER = Address("office", "consumer")


def provider(i: int) -> str:
    return f"p{i}/provider"


class Ran(NamedTuple):
    results: dict[str, Any]
    tallies: dict[str, Tally]
    transcript: Any


class Run(NamedTuple):
    """A program and what its roles know: the coordinator first, then the providers."""

    protocol: Protocol
    study: Study
    tallies: dict[str, Tally]


def run_of(
    program: Program, inputs: Sequence[Any], reception: Reception | None = None, *, set_name: str = INSECURE
) -> Run:
    tallies: dict[str, Tally] = {}
    chosen: dict[str, Any] = {"set_name": set_name, "for_tests": set_name == INSECURE}

    def role(kind: type[roles.Provider] | type[roles.Coordinator]) -> Any:
        async def run(net: Network, study: Study, own: Any, record: Record) -> Learned:
            providers, guests = study.who("provider"), study.who("consumer")
            machine = kind(net, record, study.digest, COORDINATOR, providers, guests, **chosen)
            await machine.set_up()
            place = 0 if net.me == COORDINATOR else 1 + providers.index(net.me)
            result = await program(machine, inputs[place])
            await machine.check(last=True)
            tallies[str(net.me)] = machine.tally
            return Learned({"result": result})

        return run

    async def consumer(net: Network, study: Study, own: Any, record: Record) -> Learned:
        providers, guests = study.who("provider"), study.who("consumer")
        receiver = roles.Receiver(net, record, study.digest, COORDINATOR, providers, guests, **chosen)
        return Learned({"result": await reception(receiver) if reception else None})

    return Run(protocol_of(role, consumer), study_of(len(inputs) - 1, reception is not None), tallies)


def protocol_of(role: Callable[[Any], Any], consumer: Any) -> Protocol:
    return Protocol(
        name="slots-test",
        title="",
        roles={
            "provider": role(roles.Provider),
            "coordinator": role(roles.Coordinator),
            "consumer": consumer,
        },
        data_roles=frozenset(),
        messages=messages.MESSAGES,
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset({"coordinator"}),
        uses_sum=False,
    )


def study_of(providers: int, consumes: bool) -> Study:
    parties = [Party(f"p{i}", ("provider",)) for i in range(providers)]
    parties.append(Party("hub", ("coordinator",)))
    if consumes:
        parties.append(Party("office", ("consumer",)))
    return Study(name="t", protocol="slots-test", parties=tuple(parties))


def encrypted(
    program: Program,
    inputs: Sequence[Any],
    reception: Reception | None = None,
    *,
    set_name: str = INSECURE,
    observer: Observer | None = None,
) -> Ran:
    """``inputs``: the coordinator's, then the providers'."""
    run = run_of(program, inputs, reception, set_name=set_name)
    outcome = LocalEngine().run(run.protocol, run.study, {}, observer=observer)
    results = {str(a): learned.outputs["result"] for a, learned in outcome.learned.items()}
    return Ran(results, run.tallies, outcome.transcript)


class Twin(Clear):
    """On plain numbers, with the addresses of a real run."""

    async def opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        return await super().opened(rows, lengths, frozenset(twin_of(name) for name in receivers))


def twin_of(name: str) -> str:
    party, role = name.split("/")
    return role if role == "coordinator" else party


def clear(
    program: Program, inputs: Sequence[Any], *, set_name: str = INSECURE, noise: float = 0.0
) -> Ran:
    """The same on plain numbers, with as many slots and levels."""
    like = slots.find(set_name, for_tests=set_name == INSECURE)
    machines = Twin.machines(
        len(inputs) - 1, slots=like.slots, fresh_level=like.top, lowest=like.refresh_level, noise=noise
    )
    names = [str(COORDINATOR), *(provider(i) for i in range(len(inputs) - 1))]
    results = asyncio.run(together(program, machines, inputs))
    tallies = {name: m.tally for name, m in zip(names, machines, strict=True)}
    return Ran(dict(zip(names, results, strict=True)), tallies, None)
