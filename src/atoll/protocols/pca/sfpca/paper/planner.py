"""What a run of the paper variant will cost: the program on shapes, every message of all roles counted.

Messages and rounds come out exactly, and bytes but for names and digests: neither rests on the data.
"""

from __future__ import annotations

from typing import NamedTuple

from atoll.crypto import slots
from atoll.protocols.base import Expectation
from atoll.protocols.pca.released import CONSUMER, PROVIDER
from atoll.protocols.pca.sfpca.beforehand import (
    assumed_rows,
    count_announcement,
    count_comparison,
    count_range,
)
from atoll.protocols.pca.sfpca.paper.algorithm1 import Plan, Shape, principal
from atoll.protocols.pca.sfpca.paper.certificate import examined
from atoll.protocols.pca.sfpca.paper.counts import Stretched
from atoll.protocols.pca.sfpca.paper.noise import added
from atoll.protocols.pca.sfpca.paper.parameters import INSECURE, Course, PaperParameters, decide
from atoll.protocols.pca.sfpca.paper.releases import (
    Step,
    common_receivers,
    hidden_scores,
    listed,
    matrices,
    openings,
    rows_of,
    scored,
    scored_in_common,
)
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, VERTICAL
from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.foreseen import Foreseen, foreseen
from atoll.secret_matrices.costs.rates import current
from atoll.secret_matrices.costs.timing import Effort
from atoll.secret_matrices.costs.wires import Wires
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.counting import Counting
from atoll.secret_matrices.slots.machine import Matrix
from atoll.study.model import Study

_PLACES = 40
"""Bytes that an interval is told in, with its place."""


class Counted(NamedTuple):
    """A whole run, counted on shapes."""

    machine: Foreseen
    course: Course
    rounds: int
    memory_server: int

    @property
    def expected(self) -> Expectation:
        """Messages, bytes, the coordinator's memory, and rounds."""
        w = self.machine.wires
        total = sum(w.sent.values()) + w.coordinator_bytes + w.guest_bytes
        return Expectation(w.messages, max(w.sent.values()), total, self.memory_server, self.rounds)


def unforeseen(study: Study) -> str:
    """Why nothing is said of the cost of a study; empty where something is."""
    mode = study.read_parameters(PaperParameters).paper.nonlinear
    if mode == "chebyshev":
        return ""
    return f"what nonlinear = {mode!r} takes on shares is not counted beforehand"


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes, memory and rounds of a run over d columns."""
    return planned(study, (assumed_rows(d),) * len(study.who(PROVIDER)), d).expected


def planned(study: Study, rows: tuple[int, ...], d: int, costing: Costing | None = None) -> Counted:
    """The whole run, on tables of this shape."""
    p, providers = study.read_parameters(PaperParameters), study.who(PROVIDER)
    course = decide(study, rows, d)
    costing = costing or Costing(current(), Effort(len(providers)))
    w = Wires([str(a) for a in providers], costing)
    count_announcement(w, d)
    if p.bounds is None:
        count_range(study, w, 1)
    if p.paper.intervals is None:
        _count_intervals(w, p)
    name = p.paper.parameters
    chosen = slots.find(name, for_tests=name in INSECURE)
    machine = Foreseen(
        chosen, w, costing.rates.of_slots(), str(study.the(COORDINATOR)), verify=p.paper.verify
    )
    machine.set_up()
    _count_told(study, w, d)
    shape = Shape(rows, d, p.n_components, p.sketched, study.partition == VERTICAL)
    use = Recording(degree=p.paper.degree)
    plan = Plan(shape, course, p.paper, use, (1,) * p.sketched, Stretched())
    foreseen(machine, lambda m: _program(study, m, plan))
    if p.threshold is None:
        machine.check()
    else:
        _count_finished(study, w)
    rounds = max(w.deepest, w.coordinator_depth, *w.depths.values(), *w.guests.values(), 0)
    return Counted(machine, course, rounds, 2 * machine.key_bytes)


def _count_intervals(w: Wires, p: PaperParameters) -> None:
    """What one provider's simulation says; which one is all the same."""
    first = w.providers[0]
    places = 3 * p.sketched * (p.paper.p + p.paper.w * p.sketched + 2)
    w.posted(first, _PLACES * places, ["coordinator", *w.providers])
    count_comparison(w)


def _count_told(study: Study, w: Wires, d: int) -> None:
    """What consumers need to read what they are given."""
    sizes = {"n_samples": (60, 60), "explained_variance": (40,), "components": (20 * d,)}
    for a in study.who(CONSUMER):
        for output, each in sizes.items():
            for size in each if study.releases(output, a) else ():
                w.posted("coordinator", size, [str(a)])


def _count_finished(study: Study, w: Wires) -> None:
    """Who waits for no share any more."""
    w.gathered(1)
    for a in study.who(CONSUMER):
        w.posted(str(a), 1, ["coordinator"])


async def _program(study: Study, m: Counting, plan: Plan) -> None:
    """Steps 2 to 8 and the releases, as :func:`releases.opened_by_all` makes them."""
    threshold = study.read_parameters(PaperParameters).threshold
    found = await principal(m, plan, None)
    checked = await examined(m, plan, found)
    (_, lengths, receivers), *steps = openings(study, plan.shape.columns)
    await m.opened([checked.tau], lengths, receivers)
    rows: dict[str, Matrix] = {}
    left = await listed(study, m, plan.shape.columns)
    for name, lengths, receivers in steps:
        rows[name] = await rows_of(name, m, plan, found, checked, None)
        if study.read_parameters(PaperParameters).paper.noise is not None:
            rows[name] = added(m, rows[name], lengths, left)
        if threshold is None:
            await m.opened(rows[name], lengths, receivers)
    if threshold is not None and steps:
        await _dealt(m, steps, rows, threshold)
    if hidden_scores(study):
        await scored(m, plan, found, checked.W, None)
    elif common := common_receivers(study):
        await scored_in_common(m, plan, found, checked.W, common)


async def _dealt(m: Counting, steps: list[Step], rows: dict[str, Matrix], threshold: int) -> None:
    parts = [
        (part, length, to) for name, lengths, to in steps for part, length in matrices(rows[name], lengths)
    ]
    flat = await m.room([row for part, _, _ in parts for row in part], 0)
    await m.to_shares(flat, [length for part, length, _ in parts for _ in part])
    if isinstance(m, Foreseen):
        m.check()
        m.dealt([(len(part), length) for part, length, _ in parts], threshold)
        for part, length, to in parts:
            m.released(len(part), length, to)
