"""Algorithm 1: gradient descent on rows that are split.

Symbols: M -> mediator (the server), P_i -> party (a provider), N -> parties, theta -> theta, alpha ->
learning_rate, epsilon -> tol, LG_i, LJ_i -> local gradient and cost, G, J_new -> their sums.
Lines 11 to 23 (sharding, layers of encryption, shuffling) are a secure sum: any one of them, the paper's by
the name "mix". Beside the paper: every sum has the number of rows behind it, and parties compare each model
that they are told.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import fixedpoint
from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import MessageError, RunError
from atoll.network import Network
from atoll.protocols import checked
from atoll.protocols.agreement import compare
from atoll.protocols.learning.descent.pairs import Pair
from atoll.protocols.learning.descent.settings import Convergence, DescentParameters, own_batch
from atoll.study.model import Study

PROVIDER, SERVER = "provider", "server"


class AllRows(Message, frozen=True):
    """Server -> provider: the number of all rows."""

    n: int


class Theta(Message, frozen=True):
    """Server -> provider: the model of a step; ``last``: nothing is asked for any more."""

    step: int
    last: bool
    values: np.ndarray[Any, Any]


async def mediator(
    net: Network, study: Study, p: DescentParameters, theta: Matrix, sums: Any, convergence: Convergence
) -> Matrix:
    """M's side; ``theta``: as it was initialised (l.1)."""
    parties, step = study.who(PROVIDER), 0  # l.2, l.3: Convergence begins with J infinite, not settled
    while not convergence.over:  # l.4
        await net.broadcast(parties, Theta(step, False, theta))  # l.5
        total = fixedpoint.decode(await sums.total(f"step {step}", len(theta) + 2))  # l.15 to l.24
        J_new, G, rows = float(total[0]), total[1:-1], max(1.0, round(float(total[-1])))
        if p.convergence == "mean":
            J_new, G = J_new / rows, G / rows
        theta = theta - p.learning_rate * G  # l.25 to l.27
        convergence.take(J_new)  # l.28 to l.31; the cost is that of theta before the update
        step += 1
    await net.broadcast(parties, Theta(step, True, theta))
    return theta


async def party(
    net: Network, study: Study, p: DescentParameters, pair: Pair, rows: tuple[Matrix, Matrix, int], sums: Any
) -> Matrix:
    """P_i's side; ``rows``: its design, its target, and the number of all rows."""
    X, y, of_all = rows
    parties, M = study.who(PROVIDER), study.the(SERVER)
    length = None if p.start is None else len(p.start)
    for step in range(p.max_iter + 1):
        told = await net.receive(Theta, M)
        if told.step != step:
            raise MessageError(f"{M} is at step {told.step} where {step} was due")
        checked.check_floats(told.values, (length or X.shape[1],), "a model", M)
        await compare(net, f"step {step}", (told.step, told.last, told.values), parties)
        if told.last:
            return np.array(told.values)
        chosen = own_batch(p, step, len(X), of_all, parties.index(net.me))
        LJ, LG = await net.compute(pair.local, told.values, X[chosen], y[chosen])  # l.6 to l.10
        local = np.concatenate([[LJ], LG, [len(y[chosen])]])
        await sums.contribute(f"step {step}", checked_grid(local, len(parties), net.me.party))  # l.11 to l.22
    raise checked.refuse(M, "more steps than the study allows")


def checked_grid(values: Matrix, parties: int, island: str) -> fixedpoint.Limbs:
    """Numbers on the grid of a sum, where they are numbers."""
    if not np.isfinite(values).all():
        raise RunError(
            f"{island}: gradient descent diverges: cost or gradient exceed a double's range",
            hint="a smaller learning_rate, or standardised columns",
        )
    return fixedpoint.encode(values, contributors=parties)
