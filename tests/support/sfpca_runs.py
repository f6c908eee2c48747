"""Run SF-PCA's programs: simulated, or encrypted with every role on the local engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Island
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca import messages
from atoll.protocols.pca.sfpca.recipes import direct as direct_recipe
from atoll.protocols.pca.sfpca.recipes import strict as strict_recipe
from atoll.protocols.pca.sfpca.recipes.columns import Split, own_columns
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES, Policy
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Found, Inputs
from atoll.protocols.pca.sfpca.recipes.moments import (
    Moments,
    RowTable,
    exact_moments,
    on_grid,
    quick_moments,
    row_moments,
)
from atoll.protocols.pca.sfpca.recipes.rows import prefers_rows
from atoll.randomness import fresh_seed
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import roles
from atoll.secret_matrices.machine import EVERY_PRECISION, Machine, Precision
from atoll.secret_matrices.simulated import Simulated
from atoll.study.model import Parameters, Party, Study


class Opened(NamedTuple):
    components: Any
    offset: Any
    values: Any
    total_variance: float
    certificate: Any


async def direct(machine: Machine, inputs: Inputs, k: int, receivers: frozenset[str]) -> Opened:
    return await opened(machine, await direct_recipe.direct(machine, inputs, k), receivers)


async def strict(
    machine: Machine,
    inputs: Inputs,
    k: int,
    receivers: frozenset[str],
    policy: Policy = POLICIES["default"],
) -> Opened:
    return await opened(machine, await strict_recipe.strict(machine, inputs, k, policy), receivers)


async def opened(machine: Machine, found: Found, receivers: frozenset[str]) -> Opened:
    components = await machine.released(found.components, receivers)
    offset = await machine.released(found.offset, receivers)
    offset = None if offset is None else offset[:, 0] * found.offset_factor
    return Opened(components, offset, found.values, found.total_variance, found.certificate)


Program = Callable[[Machine, Inputs, frozenset[str]], Coroutine[Any, Any, Any]]


def exponent_of(X: np.ndarray) -> int:
    return int(np.ceil(np.log2(np.abs(X).max())))


def own_moments(X: np.ndarray, exponent: int, keep_rows: bool = False) -> Moments:
    if keep_rows:
        rows = RowTable(X, 0.0, exponent)
        return row_moments(on_grid(X, exponent, DATA_FRACTION))._replace(rows=rows)
    sums = exact_moments if X.shape[1] <= 100 else quick_moments
    return sums(on_grid(X, exponent, DATA_FRACTION))


def total_moments(parts: list[Moments]) -> Moments:
    n, u, squares = (sum(column) for column in zip(*(part[:3] for part in parts), strict=True))
    if parts[0].rows is None:
        return Moments(n, u, squares, sum(part.G for part in parts))
    return Moments(
        n, u, squares, None, RowTable(np.vstack([part.rows.X for part in parts]), *parts[0].rows[1:])
    )


def simulated(parties_: int, seed: int = 0) -> Simulated:
    return Simulated(parties_, np.random.default_rng(seed).random)


def simulate(
    program: Program,
    blocks: list[np.ndarray],
    *,
    parties_: int | None = None,
    seed: int = 0,
    exponent: int | None = None,
) -> Any:
    X = np.vstack(blocks)
    sizes = tuple(len(b) for b in blocks)
    power = exponent_of(X) if exponent is None else exponent
    keep_rows = prefers_rows(sizes, X.shape[1])
    moments = total_moments([own_moments(b, power, keep_rows) for b in blocks])
    names = tuple(f"p{i}/provider" for i in range(len(blocks)))
    inputs = Inputs(len(X), X.shape[1], names, "simulated", moments, fresh_seed(), sizes, plays=names)
    machine = simulated(parties_ or len(blocks), seed)
    return asyncio.run(program(machine, inputs, frozenset(names))), machine


def simulate_columns(program: Program, blocks: list[np.ndarray], *, seed: int = 0) -> Any:
    """The same, where every block holds columns of the same rows."""
    X = np.hstack(blocks)
    n, m = X.shape
    names = tuple(f"p{i}/provider" for i in range(len(blocks)))
    starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
    held = [
        own_columns(on_grid(block, exponent_of(X), DATA_FRACTION), start, m)
        for block, start in zip(blocks, starts, strict=False)
    ]
    tables = {name: table for name, (_, table) in zip(names, held, strict=True)}
    split = Split(n, names, tuple(block.shape[1] for block in blocks), DATA_FRACTION, tables)
    u, squares = sum(moments.u for moments, _ in held), sum(moments.squares for moments, _ in held)
    inputs = Inputs(
        n, m, names, "simulated", Moments(n, u, squares, None), fresh_seed(), split=split, plays=names
    )
    machine = simulated(len(blocks), seed)
    return asyncio.run(program(machine, inputs, frozenset(names))), machine


def encrypted(
    program: Program,
    blocks: list[np.ndarray],
    *,
    engine: LocalEngine | None = None,
    observer: Observer | None = None,
    precisions: Sequence[Precision] = EVERY_PRECISION,
) -> Any:
    X = np.vstack(blocks)
    exponent, n, m = exponent_of(X), len(X), X.shape[1]
    names = [f"p{i}" for i in range(len(blocks))]
    sizes = tuple(len(b) for b in blocks)
    keep_rows = prefers_rows(sizes, m)

    async def provider(net: Network, study: Study, own: Any, record: Record) -> Learned:
        machine = roles.Provider(net, record, study.digest, study.the("coordinator"), study.who("provider"))
        await machine.set_up(precisions)
        rows = own.table.features(own.table.columns)
        moments = await net.compute(own_moments, rows, exponent, keep_rows)
        who = tuple(str(a) for a in study.who("provider"))
        inputs = Inputs(n, m, who, str(net.me), moments, record("rotation", fresh_seed), sizes)
        return Learned({"result": await program(machine, inputs, frozenset(who))})

    async def coordinator(net: Network, study: Study, own: Any, record: Record) -> Learned:
        machine = roles.Coordinator(net, record, study.digest, net.me, study.who("provider"))
        await machine.set_up(precisions)
        who = tuple(str(a) for a in study.who("provider"))
        inputs = Inputs(n, m, who, str(net.me), None, None, sizes)
        return Learned({"result": await program(machine, inputs, frozenset(who))})

    protocol = Protocol(
        name="sfpca-test",
        title="",
        roles={"provider": provider, "coordinator": coordinator},
        data_roles=frozenset({"provider"}),
        messages=messages.MESSAGES,
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset({"coordinator"}),
        uses_sum=False,
    )
    study = Study(
        name="t",
        protocol="sfpca-test",
        parties=(*(Party(name, ("provider",)) for name in names), Party("hub", ("coordinator",))),
    )
    islands: Mapping[str, Island] = {
        name: Island.from_array(b, name=name) for name, b in zip(names, blocks, strict=True)
    }
    outcome = (engine or LocalEngine()).run(protocol, study, owned(islands), observer=observer)
    results = {str(a): learned.outputs["result"] for a, learned in outcome.learned.items()}
    return results, outcome.transcript
