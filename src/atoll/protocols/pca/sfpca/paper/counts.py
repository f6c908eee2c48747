"""What a run takes in operations on ciphertexts, counted on shapes: no keys, no data."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.paper.algorithm1 import Plan, Shape, Stretches, principal
from atoll.protocols.pca.sfpca.paper.certificate import examined
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters, course
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.costs import FRESH, LOWEST
from atoll.secret_matrices.slots.counting import Tallies, tallied
from atoll.secret_matrices.slots.machine import Matrix, Slots
from atoll.study.model import Study


class Stretched(Stretches):
    """Every row by a power of two, as most are."""

    def of(self, place: str, rows: Matrix, length: int) -> Sequence[int]:
        del place, length
        return [1] * len(rows)


def operations(study: Study, given: Circumstances) -> Tallies:
    """Steps 2 to 7 and the certificate, where islands hold rows; scores and openings are left out."""
    p = study.read_parameters(PaperParameters)
    shape = Shape(given.rows, given.columns, p.n_components, p.sketched)
    use = Recording(degree=p.paper.degree)
    chosen = course(given.rows, given.columns, p.paper, p.sketched)
    plan = Plan(shape, chosen, p.paper, use, (0,) * p.sketched, Stretched())

    async def run(m: Slots) -> None:
        found = await principal(m, plan, None)
        with m.tally.part("certificate"):
            await examined(m, plan, found)

    return tallied(
        run,
        n_providers=len(given.rows),
        slots=p.paper.slots,
        fresh_level=FRESH,
        lowest=LOWEST,
        verify=p.paper.verify,
    )
