"""Algorithm 2: gradient descent on columns that are split; the model stays split among their owners.

Symbols: M -> mediator (the server), P_i -> party (a provider), theta -> theta (P_i's own part), Lh_i -> its
part of the scores, h -> the summed scores, m -> rows, b -> batch.
Lines 11 to 23 are a secure sum: any one of them, the paper's by the name "mix". Beside the paper: parties
compare the scores that M sends. The target is known to all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import fixedpoint
from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import MessageError
from atoll.network import Network
from atoll.protocols import checked
from atoll.protocols.agreement import compare
from atoll.protocols.learning.descent.algorithm1 import checked_grid
from atoll.protocols.learning.descent.pairs import Pair
from atoll.protocols.learning.descent.settings import (
    Convergence,
    DescentParameters,
    batch_rows,
    common_batch,
)
from atoll.study.model import Study

PROVIDER, SERVER = "provider", "server"


class Scores(Message, frozen=True):
    """Server -> provider: the summed scores of a step's rows."""

    step: int
    values: np.ndarray[Any, Any]


class Over(Message, frozen=True):
    """Provider -> server: whether it goes on."""

    step: int
    over: bool


async def mediator(net: Network, study: Study, p: DescentParameters, rows: int, sums: Any) -> None:
    """M's side."""
    parties, step, b = study.who(PROVIDER), 0, batch_rows(p, rows)
    while True:  # l.6
        h = fixedpoint.decode(await sums.total(f"step {step}", b))  # l.15 to l.24
        await net.broadcast(parties, Scores(step, h))  # l.25
        told = await net.gather(Over, parties)
        if len({message.over for message in told.values()}) != 1:
            raise MessageError("islands do not agree whether the descent is over", hint="start a new run")
        if next(iter(told.values())).over:
            return
        step += 1


async def party(
    net: Network,
    study: Study,
    p: DescentParameters,
    pair: Pair,
    columns: tuple[Matrix, Matrix, Matrix],
    sums: Any,
) -> tuple[Matrix, Convergence]:
    """P_i's side; ``columns``: its own columns, the target, and its theta as it was initialised (l.2)."""
    X, y, theta = columns
    parties, M, step = study.who(PROVIDER), study.the(SERVER), 0
    convergence = Convergence(p)  # l.3, l.4
    while not convergence.over:  # l.6
        chosen = common_batch(p, step, len(X))
        X_b, y_b = X[chosen], y[chosen]
        Lh = X_b @ theta  # l.7 to l.10
        await sums.contribute(f"step {step}", checked_grid(Lh, len(parties), net.me.party))  # l.11 to l.22
        told = await net.receive(Scores, M)
        if told.step != step:
            raise MessageError(f"{M} is at step {told.step} where {step} was due")
        checked.check_floats(told.values, (len(X_b),), "scores", M)
        await compare(net, f"step {step}", (told.step, told.values), parties)
        h, m = told.values, len(X_b)
        theta = theta - p.learning_rate * (X_b.T @ pair.gradient(h, y_b)) / m  # l.26 to l.30
        J_new = float(np.sum(pair.cost(h, y_b))) / m  # l.31
        convergence.take(J_new)  # l.32 to l.34
        await net.send(M, Over(step, convergence.over))
        step += 1
    return theta, convergence
