"""The options of a descent, its batches, and when it has settled."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.errors import RunError
from atoll.protocols.learning.columns.consent import ColumnsParameters

Chosen = slice | npt.NDArray[np.int64]
"""Some rows, or all."""


class DescentParameters(ColumnsParameters, frozen=True):
    """``cost``: the name of a cost with its gradient; ``learning_rate``: alpha; ``tol``: epsilon;
    ``batch``: so many rows a step, drawn from ``seed``, or all; ``start``: the first model, or zeros.

    ``convergence``: "mean" divides by the number of rows and takes a cost that rises (over all rows) for
    divergence; "paper" is the letter: sums with rows split, and any step that gains no more than epsilon is
    the last, also one that loses. ``scenario``: "DU" (secure sums), and for comparison in one process
    "DT" (sums in the clear) and "CT" (the server is sent the tables).
    """

    cost: str = "least-squares"
    learning_rate: float = 0.1
    tol: float = 1e-9
    max_iter: int = 1000
    batch: int | None = None
    seed: int = 0
    start: tuple[float, ...] | None = None
    fit_intercept: bool = True
    convergence: Literal["mean", "paper"] = "mean"
    scenario: Literal["DU", "DT", "CT"] = "DU"


class Convergence:
    """J, J_new and epsilon."""

    def __init__(self, p: DescentParameters) -> None:
        self.p = p
        self.J = np.inf
        self.curve: list[float] = []
        self.settled = False

    def take(self, J_new: float) -> bool:
        """Whether the cost has settled; refuses one that rises, unless the study follows the letter."""
        whole = self.p.batch is None
        rising = J_new > self.J * (1 + 1e-12) + 1e-300 if whole else J_new > 1e6 * max([1.0, *self.curve[:1]])
        if not np.isfinite(J_new) or (self.p.convergence == "mean" and rising):
            raise RunError(
                f"gradient descent diverges: the cost rose from {self.J:.6g} to {J_new:.6g} in step "
                f"{len(self.curve) + 1}",
                hint=f"a learning_rate below {self.p.learning_rate:g}, or standardised columns",
            )
        self.curve.append(J_new)
        # Over a batch a small gain says nothing; the letter does not mind.
        judged = whole or self.p.convergence == "paper"
        self.settled = judged and self.J - J_new <= self.p.tol
        self.J = J_new  # the repair: as printed, J stays infinite for ever
        return self.settled

    @property
    def over(self) -> bool:
        """Whether there is no step left."""
        return self.settled or len(self.curve) >= self.p.max_iter


def own_batch(p: DescentParameters, step: int, rows: int, of_all: int, owner: int) -> Chosen:
    """An island's rows of a step's batch, where islands hold rows: as large a part of its own as of all."""
    if p.batch is None or p.batch >= of_all:
        return slice(None)
    draw = randomness.public([p.seed, step, owner])
    wanted = p.batch * rows / of_all
    count = int(wanted) + (draw.random() < wanted - int(wanted))
    return np.sort(draw.choice(rows, size=min(count, rows), replace=False))


def common_batch(p: DescentParameters, step: int, rows: int) -> Chosen:
    """The rows of a step's batch, where islands hold columns: the same for all."""
    if p.batch is None or p.batch >= rows:
        return slice(None)
    return np.sort(randomness.public([p.seed, step]).choice(rows, size=p.batch, replace=False))


def batch_rows(p: DescentParameters, rows: int) -> int:
    """Rows of one step."""
    return rows if p.batch is None else min(p.batch, rows)
