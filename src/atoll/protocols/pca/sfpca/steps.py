"""The steps of a run on the secret-matrix machine, once there are keys.

Roles run them on machines of their own, and the planner on one that counts: there is one description of what
a run does. Wherever a role knows nothing, as the coordinator and the planner, values are None.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from atoll.protocols.pca.sfpca.private import Noisy, private_direct
from atoll.protocols.pca.sfpca.recipes.columns import Split
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import Found, Inputs, direct
from atoll.protocols.pca.sfpca.recipes.strict import strict
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS, unopened
from atoll.protocols.pca.sfpca.recipes.vertical import score_jobs
from atoll.protocols.pca.sfpca.scores import SCORE_ROWS, score_job
from atoll.secret_matrices.machine import Floats, Machine, Shared


async def find(machine: Machine, inputs: Inputs, k: int, recipe: str, noisy: Noisy | None) -> Found:
    """Components and spectrum, by the recipe."""
    if noisy is not None:
        return await private_direct(machine, inputs, k, noisy)
    if recipe == "direct":
        return await direct(machine, inputs, k)
    if recipe in EFFORTS:
        return await unopened(machine, inputs, k, EFFORTS[recipe])
    return await strict(machine, inputs, k, POLICIES[recipe])


async def deal(machine: Machine, found: Found, threshold: int | None) -> Found:
    """Components and offset, of which ``threshold`` providers are enough from now on (the paper's D.4)."""
    if threshold is None:
        return found
    matrices = [x for x in (found.components, found.offset) if x is not None]
    components, *offset = await machine.dealt(matrices, threshold)
    return found._replace(components=components, offset=offset[0] if offset else None)


async def release(
    machine: Machine, found: Found, receivers: frozenset[str]
) -> tuple[Floats | None, Floats | None]:
    """Components and offset for the receivers."""
    components = await machine.released(found.components, receivers)
    offset = None if found.offset is None else await machine.released(found.offset, receivers)
    return components, offset


async def project_own_rows(
    machine: Machine,
    found: Found,
    columns: int,
    owners: Sequence[tuple[str, int]],
    own: Callable[[str, slice], Any],
) -> AsyncIterator[Floats]:
    """W X_i^T - offset for each owner's rows, some at a time, released to that owner only.

    ``owners`` come with their numbers of rows; ``own`` gives rows of an owner where this role knows them.
    """
    for start in range(0, max((n for _, n in owners), default=0), SCORE_ROWS):
        due = [(owner, min(n - start, SCORE_ROWS)) for owner, n in owners if n > start]
        jobs = [
            score_job(machine, found, columns, owner, count, own(owner, slice(start, start + count)))
            for owner, count in due
        ]
        for (owner, _), made in zip(due, await machine.products(jobs), strict=True):
            block = await machine.released(made, frozenset({owner}))
            if block is not None:
                yield block.T


async def project_common_rows(
    machine: Machine,
    components: Shared,
    split: Split,
    receivers: frozenset[str],
    shorten: Callable[[Shared], Shared] = lambda x: x,
) -> AsyncIterator[Floats]:
    """W X^T of rows that all islands have in common, some at a time, for the receivers."""
    for job in score_jobs(machine, components, split) if receivers else ():
        (made,) = await machine.products([job])
        block = await machine.released(shorten(made), receivers)
        if block is not None:
            yield block.T
