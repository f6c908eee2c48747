"""Fits with columns split: owners add scores, a leader goes on from the totals, the model stays split.

The scheme is that of Mehnaz, Bellala and Bertino, A Secure Sum Protocol and Its Application to
Privacy-preserving Multi-party Analytics (2017), Algorithm 2, with steps that need few sums
(:mod:`~atoll.protocols.learning.descent.columns` is the algorithm to the letter). The leader is the provider
that has the target: the first one, where all have it; else ``y_holder``.

Adversary: passive; who may collude is said by the secure sum.
Learns: leader and server the summed scores of every step (with k-means the summed distances), the other
providers what follows from them and the target (slopes; with k-means assignments); everybody the names of all
columns and the number of rows. Owners compare all that the leader tells: slopes that are zero for all but one
of them would make the sum that one's own score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import DataError, MessageError
from atoll.network import Network, Record
from atoll.protocols import checked
from atoll.protocols.agreement import compare
from atoll.protocols.base import Learned, Output, learned
from atoll.protocols.booking import Booking
from atoll.protocols.learning.columns import released, table
from atoll.protocols.learning.columns.course import Leader, Owner, Sizes, Told
from atoll.protocols.learning.columns.released import EVERYONE, OFFSETS, PROVIDER, SERVER
from atoll.protocols.learning.columns.table import Joint, Part
from atoll.protocols.learning.rows import MAX_SUM, Fit, checked_values, encoded
from atoll.protocols.own import Own
from atoll.study.address import Address
from atoll.study.model import Study


class Due(Message, frozen=True):
    """Leader -> server: whether another sum is due."""

    step: int
    more: bool


class Total(Message, frozen=True):
    """Server -> leader: a sum."""

    step: int
    values: np.ndarray[Any, Any]


OUTPUTS = released.OUTPUTS | {"fit": Output(("fit",), EVERYONE, "how well the model fits")}


@dataclass(frozen=True)
class Kind:
    """One kind of fit, as a protocol of its own."""

    name: str
    title: str
    analysis: str
    parameters: type[Any]
    sizes: Callable[[Any, Joint], Sizes]
    leader: Callable[[Any, Joint, Matrix | None], Leader]
    owner: Callable[[Any, Joint, Part, int, bool], Owner]
    """From parameters, table, own part, own place among the owners, and whether this one leads."""
    made: Callable[[Any], released.Made]
    """The whole model from its parts."""
    opened: str
    """What leader and server see in every step, in words."""
    told: str
    """What the other providers see."""
    usual: Callable[[Any, int], int]
    """How many sums to expect, for so many columns."""
    centred: Callable[[Any], bool]
    coefficients: Callable[[Any, Joint], int]
    instead: str
    """What to do rather than open scores, for a hint."""
    free: Callable[[Any], bool] = lambda _: False
    """Whether columns that follow from others leave the model undecided."""
    classifies: bool = False
    needs_target: bool = True
    offsets: bool = True
    check: Callable[[Study], None] = lambda _: None


# ---- roles ----


async def provider(kind: Kind, net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, server, group = study.read_parameters(kind.parameters), study.the(SERVER), study.who(PROVIDER)
    with Booking(study, own, record, None) as booked:
        joint, chosen = await table.announce(net, own.table, p, server, group, kind.classifies)
        y = await table.response(net, own.table, p, joint, group, kind.classifies)
        X, centre = await net.compute(lambda: table.read(chosen, centred=kind.centred(p)))
        part = Part(X, centre, y, chosen.columns, own.table.name)
        table.refuse_few_rows(joint, kind.coefficients(p, joint))
        if kind.free(p):
            await net.compute(table.check_independent, part, kind.centred(p))
        sums = _session(net, study, record, kind, p, joint)
        await sums.open()
        await booked.settle_exact(net, chosen)
        leads = net.me == table.leader_of(p, group)
        owner = kind.owner(p, joint, part, group.index(net.me), leads)
        leader = kind.leader(p, joint, y) if leads else None
        await _steps(kind, net, study, joint, owner, leader, sums)
        w, offset = owner.coefficients()
        if kind.offsets and study.receivers("model"):
            await sums.contribute(OFFSETS, encoded(offset, len(group), OFFSETS))
        await sums.close()
    known = released.own_part(net, study, joint, w, offset)
    if leader is not None:
        known["fit"] = leader.fit() | ({"classes": joint.classes} if kind.classifies else {})
        await net.broadcast([a for a in study.receivers("fit") if a != net.me], Fit(known["fit"]))
    elif study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, _leader(study, p)), "a fit", _leader(study, p))
    await released.tell_part(net, study, known)
    if study.releases("model", net.me):
        mine = known["part"][net.me.party]
        own_part = {net.me: released.OwnPart(mine["names"], mine["coefficients"])}
        known["model"] = await released.whole(net, study, kind.made(p), own_part, classes=joint.classes)
    return learned(study, net.me, OUTPUTS, known)


async def _steps(
    kind: Kind,
    net: Network,
    study: Study,
    joint: Joint,
    owner: Owner,
    leader: Leader | None,
    sums: secure_sums.SecureSum,
) -> None:
    """Take what the leader tells, and add what is asked for, until nothing is left to be gained."""
    p, group, server = study.read_parameters(kind.parameters), study.who(PROVIDER), study.the(SERVER)
    sizes, first = kind.sizes(p, joint), _leader(study, p)
    told = None if leader is None else await net.compute(leader.first)
    for step in range(most_sums(p) + 1):
        if told is not None:
            await net.broadcast([a for a in group if a != net.me], told)
            await net.send(server, Due(step, not told.last))
        else:
            told = await net.receive(Told, first)
            _check_told(told, step, sizes, joint, first)
        await compare(net, f"step {step}", (told.step, told.last, told.numbers, told.rows), group)
        if step == most_sums(p) and not told.last:
            raise checked.refuse(first, "more steps than the study allows")
        await net.compute(owner.take, told)
        if told.last:
            return
        answer = await net.compute(owner.answer)
        await sums.contribute(f"step {step}", encoded(answer, len(group), f"step {step}"))
        told = None
        if leader is not None:
            total = await net.receive(Total, server)
            if total.step != step:
                raise MessageError(f"{server} is at step {total.step} where {step} was due")
            checked.check_floats(total.values, (sizes.sum(step),), "a sum", server)
            told = await net.compute(leader.advance, total.values)


async def server(kind: Kind, net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own
    p, group = study.read_parameters(kind.parameters), study.who(PROVIDER)
    joint = await table.join(net, p, group, kind.classifies)
    sums, sizes, leader = (
        _session(net, study, record, kind, p, joint),
        kind.sizes(p, joint),
        _leader(study, p),
    )
    await sums.open()
    step = 0
    while True:
        due = await net.receive(Due, leader)
        if due.step != step:
            raise MessageError(f"{leader} is at step {due.step} where {step} was due")
        if not due.more:
            break
        values = fixedpoint.decode(await sums.total(f"step {step}", sizes.sum(step)))
        await net.send(leader, Total(step, values))
        step += 1
    known = released.common(study, joint)
    intercept = np.zeros(_outputs(p, joint))
    if kind.offsets and study.receivers("model"):
        intercept = fixedpoint.decode(await sums.total(OFFSETS, len(intercept)))
    await released.tell_rest(net, study, joint, intercept)
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, kind.made(p), {}, (intercept, joint.classes))
    if study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, leader), "a fit", leader)
    return learned(study, net.me, OUTPUTS, known)


async def consumer(kind: Kind, net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own, record
    p, known = study.read_parameters(kind.parameters), dict[str, Any]()
    if study.releases("n_samples", net.me):
        known |= await released.counted_rows(net, study)
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, kind.made(p), {})
    if study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, _leader(study, p)), "a fit", _leader(study, p))
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


def _leader(study: Study, p: Any) -> Address:
    return table.leader_of(p, study.who(PROVIDER))


def _outputs(p: Any, joint: Joint) -> int:
    """Rows of coefficients: one, or one for each class or cluster."""
    return int(getattr(p, "n_clusters", 0)) or (len(joint.classes) if len(joint.classes) > 2 else 1)


def most_sums(p: Any) -> int:
    """Sums that an owner answers."""
    return int(p.max_iter) + 1


def longest_sum(sizes: Sizes, p: Any) -> int:
    return max(sizes.sum(step) for step in range(min(most_sums(p), 300) + 1))


def _session(
    net: Network, study: Study, record: Record, kind: Kind, p: Any, joint: Joint
) -> secure_sums.SecureSum:
    longest = longest_sum(kind.sizes(p, joint), p)
    if longest > MAX_SUM:
        raise DataError(
            f"{joint.rows:,} rows would need sums of {longest:,} numbers; {MAX_SUM:,} are the most",
            hint="use fewer rows, or fewer classes or clusters",
        )
    group = study.who(PROVIDER)
    receivers = study.who(SERVER)
    return secure_sums.session(study, net, record, contributors=group, receivers=receivers, longest=longest)


def _check_told(told: Told, step: int, sizes: Sizes, joint: Joint, leader: Address) -> None:
    if told.step != step:
        raise MessageError(f"{leader} is at step {told.step} where {step} was due")
    checked.check_floats(told.numbers, (sizes.numbers(step),), "a point", leader)
    checked.check_floats(told.rows, (joint.rows, sizes.width), "slopes", leader)
