"""Least squares and ridge with columns split, under encryption: each island gets its own coefficients.

Adversary: passive; the server with all providers but one. It holds no key and relays, adds and evaluates on
ciphertexts (:mod:`~atoll.secret_matrices`).
Learns: every island its own coefficients; everybody the names of all columns, the number of rows, and whether
the columns decide the coefficients; with ``y_holder`` the target's length to a factor of two. Where the model
is released, whom the study names: all coefficients and the intercept, of which the server sees the latter.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import ParameterError
from atoll.network import Compared, Network, Record
from atoll.protocols import checked
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import (
    Circumstances,
    Disclosure,
    Expectation,
    Learned,
    Protection,
    Protocol,
    learned,
)
from atoll.protocols.booking import Booking
from atoll.protocols.learning.columns import released, table
from atoll.protocols.learning.columns.consent import JointParameters, check_columns
from atoll.protocols.learning.columns.kinds import line
from atoll.protocols.learning.columns.released import (
    CONSUMER,
    OFFSETS,
    OUTPUTS,
    PROVIDER,
    SERVER,
    CommonRows,
    OwnPart,
    Rest,
)
from atoll.protocols.learning.columns.table import Held, Joint, Part
from atoll.protocols.learning.encrypted import prepared, program
from atoll.protocols.learning.encrypted.program import Table
from atoll.protocols.learning.rows import encoded
from atoll.protocols.learning.task import WHOLE
from atoll.protocols.own import Own
from atoll.randomness import fresh_seed
from atoll.secret_matrices import messages as machines
from atoll.secret_matrices import roles
from atoll.secret_matrices.costs.counted import Counted, at_once
from atoll.secret_matrices.machine import Machine, Precision
from atoll.study.model import Study

MOST_COLUMNS = 512
_OWN = (
    "the coefficients of its own columns; one that makes up columns of single rows learns by them what the "
    "others' columns together say of these rows"
)
MOST_CONDITION_BITS = 24
"""As far as it is known how much roundings grow."""
HIDDEN = (
    "encrypted numbers and parts of keys, which say nothing as long as one provider keeps its part of "
    "the key to itself"
)


class EncryptedParameters(JointParameters, frozen=True):
    """``penalty`` and its weight ``alpha``; ``condition_bits``: eigenvalues of the correlations below
    2^-condition_bits times the number of columns are too small to be inverted."""

    penalty: Literal["none", "l2"] = "none"
    alpha: float = 0.0
    fit_intercept: bool = True
    condition_bits: int = 20

    @property
    def weight(self) -> float:
        """alpha, where there is a penalty."""
        return self.alpha if self.penalty == "l2" else 0.0


class Scale(Message, frozen=True):
    """Holder of the target -> every other provider: the power of two above the target's length."""

    exponent: int


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, group = study.read_parameters(EncryptedParameters), study.who(PROVIDER)
    with Booking(study, own, record, None) as booked:
        joint, chosen = await table.announce(net, own.table, p, study.the(SERVER), group, False)
        _check_shape(joint, p)
        y = await table.response(net, own.table, p, joint, group, False)
        X, centre = await net.compute(lambda: table.read(chosen, centred=p.fit_intercept))
        mean = float(y.mean()) if y is not None and p.fit_intercept else 0.0
        part = Part(X, centre, None if y is None else y - mean, chosen.columns, own.table.name)
        if not p.weight:
            await net.compute(table.check_independent, part, p.fit_intercept)
        own_lengths = prepared.lengths(part, p.weight, await _exponent(net, study, part))
        await booked.settle_exact(net, chosen)
        place, leader = group.index(net.me), group.index(table.leader_of(p, group))
        owners = tuple(str(address) for address in group)
        factor = program.own_factor(record("factor", fresh_seed))
        joined = prepared.table_of(joint, owners, leader, part, own_lengths, p.weight, place, factor)
        machine = roles.Provider(net, record, study.digest, study.the(SERVER), group)
        found = await _run(machine, joined, p)
        assert found is not None, "every provider receives its own coefficients"
        w = own_lengths.restored(found[:, 0])[None, :]
        offset = np.array([(mean if place == leader else 0.0) - float(w[0] @ centre)])
        if p.fit_intercept:
            seed = record("offset", fresh_seed)
            offset = prepared.blurred(offset, own_lengths.exponent, joint.rows, p.condition_bits, seed)
        await machine.check(last=True)
        if study.receivers("model"):
            sums = _session(net, study, record)
            await sums.open()
            await sums.contribute(OFFSETS, encoded(offset, len(group), OFFSETS))
            await sums.close()
    known = released.own_part(net, study, joint, w, offset)
    await released.tell_part(net, study, known)
    if study.releases("model", net.me):
        mine = known["part"][net.me.party]
        parts = {net.me: OwnPart(mine["names"], mine["coefficients"])}
        known["model"] = await released.whole(net, study, partial(line, p), parts)
    return learned(study, net.me, OUTPUTS, known)


async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own
    p, group = study.read_parameters(EncryptedParameters), study.who(PROVIDER)
    joint = await table.join(net, p, group, False)
    _check_shape(joint, p)
    owners, leader = tuple(str(address) for address in group), group.index(table.leader_of(p, group))
    machine = roles.Coordinator(net, record, study.digest, net.me, group)
    await _run(machine, prepared.empty_table(joint, owners, leader), p)
    intercept = np.zeros(1)
    if study.receivers("model"):
        sums = _session(net, study, record)
        await sums.open()
        intercept = fixedpoint.decode(await sums.total(OFFSETS, 1))
    await released.tell_rest(net, study, joint, intercept)
    known = released.common(study, joint)
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, partial(line, p), {}, (intercept, ()))
    return learned(study, net.me, OUTPUTS, known)


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own, record
    p = study.read_parameters(EncryptedParameters)
    known = await released.counted_rows(net, study) if study.releases("n_samples", net.me) else {}
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, partial(line, p), {})
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


async def _run(machine: Machine, joined: Table, p: EncryptedParameters) -> Matrix | None:
    """The program; every owner is released its own coefficients."""
    await machine.set_up([Precision.HIGH])
    mine = None
    for block, w in zip(
        joined.blocks, await program.coefficients(machine, joined, p.condition_bits), strict=False
    ):
        found = await machine.released(w, frozenset({block.owner}))
        mine = mine if found is None else found
    return mine


async def _exponent(net: Network, study: Study, part: Part) -> int:
    """The power of two above the target's length: all know it who have the target; else its holder tells.

    Owners compare what it told: the intercept is a sum in which one island's part, made larger than all
    others by a scale of its own, could be read.
    """
    p, group = study.read_parameters(EncryptedParameters), study.who(PROVIDER)
    leader = table.leader_of(p, group)
    if part.y is not None:
        exponent = prepared.exponent_of(part.y)
        if p.y_holder is None:
            return exponent
        await net.broadcast([a for a in group if a != net.me], Scale(exponent))
    else:
        exponent = (await net.receive(Scale, leader)).exponent
        if not -1022 <= exponent <= 1023:
            raise checked.refuse(leader, "a power of two that no number reaches")
    await compare(net, "the target's scale", exponent, group)
    return exponent


def _session(net: Network, study: Study, record: Record) -> secure_sums.SecureSum:
    return secure_sums.between(net, study, record, PROVIDER, SERVER, 1)


def _check_shape(joint: Joint, p: EncryptedParameters) -> None:
    table.refuse_few_rows(joint, len(joint.names) + p.fit_intercept)
    if len(joint.names) > MOST_COLUMNS:
        raise ParameterError(
            f"{len(joint.names)} columns; under encryption {MOST_COLUMNS} are the most",
            hint='use fewer columns, or solver = "scores", which opens summed scores',
        )


# ---- who learns what, and what it costs ----


def under_encryption(opened: str = "") -> list[Disclosure]:
    """What the machine's messages say, with rows or columns split; ``opened``: what they open beside."""
    decided = opened + (
        "whether the columns decide the coefficients; if not, also a number that random factors blur, so "
        "that it says hardly more"
    )
    to_providers = (
        *(machines.SessionSeed, machines.AllKeyParts, machines.EncryptedMatrix),
        *(machines.SecondHalves, machines.MaskedTotal),
    )
    to_server = (
        *(machines.SeedPart, machines.KeyParts, machines.EncryptedShare),
        *(machines.ProductPart, machines.MaskedShare),
    )
    also = "; and numbers hidden under random ones, which say nothing either"
    return [
        Disclosure(PROVIDER, HIDDEN, to_providers),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(PROVIDER, decided, (machines.OpenedMatrix,)),
        Disclosure(SERVER, HIDDEN + also, to_server),
        Disclosure(SERVER, decided, (machines.OpenedShare,)),
    ]


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    p, method = study.read_parameters(EncryptedParameters), secure_sums.chosen(study)
    common = ("n_samples", "islands")
    said = [
        Disclosure(PROVIDER, "the columns of all islands, and the number of rows", (Joint,), common),
        Disclosure(PROVIDER, _OWN, (machines.ReleasedShare,), ("part",)),
        Disclosure(SERVER, "each island's column names, and the number of rows", (Held,), common),
        *under_encryption(),
    ]
    if p.y_holder is not None:
        others = tuple(a.party for a in study.who(PROVIDER) if a.party != p.y_holder)
        said.append(Disclosure(PROVIDER, "the target's length to a factor of two", (Scale,), (), others))
    if study.receivers("model"):
        said.append(
            Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder))
        )
        said.append(Disclosure(SERVER, "the intercept", method.to_receivers))
    words = "all coefficients and the intercept" + WHOLE
    for role in dict.fromkeys(address.role for address in study.receivers("model")):
        said.append(Disclosure(role, words, (OwnPart,) if role == SERVER else (OwnPart, Rest)))
    if any(address.role == CONSUMER for address in study.receivers("n_samples")):
        said.append(
            Disclosure(CONSUMER, "the number of rows, and which islands hold their columns", (CommonRows,))
        )
    return said


def protection(study: Study) -> Protection:
    """How contributions travel, and what goes through the secure sum."""
    words = (
        "What islands contribute of their records travels encrypted under a collective key, or hidden under "
        "random numbers. Every island keeps a part of what opens it, and nobody can read it while one of "
        "them keeps its part to itself. The server has no part."
    )
    return Protection(words, "the intercept" if study.receivers("model") else "")


def counted(study: Study, at: Circumstances, more: int = 0) -> Expectation:
    """Messages, bytes and rounds, from the program itself, run on shapes."""
    del more
    p, group = study.read_parameters(EncryptedParameters), study.who(PROVIDER)
    M, d, rows = len(group), at.columns, at.rows[0] if at.rows else 1 << 14
    machine = Counted([str(a) for a in group], 0.0)
    machine.gathered(20 * d // M)
    machine.broadcast(20 * d)
    compared(machine)
    if p.y_holder is not None:
        machine.messages += M - 1
        machine.deepen(machine.providers, max(machine.depths.values()) + 1)
    compared(machine)
    widths = tuple(len(part) for part in np.array_split(np.arange(d), M))
    joint = Joint(tuple(map(str, range(d))), widths, True, rows, ())
    leader = group.index(table.leader_of(p, group))
    at_once(_run(machine, prepared.empty_table(joint, machine.providers, leader), p))
    machine.check(last=True)
    return _with_release(study, machine, d)


def compared(machine: Counted) -> None:
    """Providers compare what they were told."""
    told = comparisons(machine.n_providers)
    machine.messages += told
    for name in machine.sent:
        machine.sent[name] += told // machine.n_providers * COMPARISON_BYTES
    machine.deepen(machine.providers, max(machine.depths.values()) + 1)


def _with_release(study: Study, machine: Counted, d: int) -> Expectation:
    M, receivers = machine.n_providers, study.receivers("model")
    counts = sum(address.role == CONSUMER for address in study.receivers("n_samples"))
    rounds, sent = max(machine.deepest, machine.depth), sum(machine.sent.values()) + machine.coordinator_bytes
    messages = machine.messages + counts
    if receivers:
        cost = secure_sums.expected(study, M, [1])
        parts = sum(address != owner for address in receivers for owner in study.who(PROVIDER))
        messages += cost.messages + parts + sum(address.role != SERVER for address in receivers)
        sent += cost.bytes_total + parts * 30 * d // M
        rounds += cost.rounds + 1
    memory = machine.costing.coordinator_memory.most
    return Expectation(messages, machine.provider_bytes, sent + 60 * counts, memory, rounds)


def _check(study: Study) -> None:
    p = study.read_parameters(EncryptedParameters)
    check_columns(p, study.who(PROVIDER), needs_target=True)
    check_parameters(p)


def check_parameters(p: EncryptedParameters) -> None:
    """What the types of penalty and condition cannot say."""
    if not (p.alpha >= 0.0 and np.isfinite(p.alpha)):
        raise ParameterError(f"alpha={p.alpha!r} must be 0 or more", option="alpha")
    if not 4 <= p.condition_bits <= MOST_CONDITION_BITS:
        raise ParameterError(
            f"condition_bits={p.condition_bits} must be from 4 to {MOST_CONDITION_BITS}",
            option="condition_bits",
        )


PROTOCOL = Protocol(
    name="least-squares-encrypted",
    version=2,
    title="Least squares under encryption, with columns split",
    analysis="regression",
    roles={PROVIDER: provider, SERVER: server, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    messages=(Held, Joint, Scale, OwnPart, Rest, CommonRows, *machines.MESSAGES),
    parameters=EncryptedParameters,
    outputs=OUTPUTS,
    learns=learns,
    protection=protection,
    adversary="Everyone follows the protocol but keeps what they see; the server may collude with all "
    "providers but one.",
    partitions=("vertical",),
    expect=lambda study, d: counted(study, Circumstances(d)),
    counted=counted,
    check=_check,
)
