"""Least squares and ridge with rows split, under encryption: coefficients only.

Adversary: passive; the server with all providers but one. It holds no key and relays, adds and evaluates on
ciphertexts (:mod:`~atoll.secret_matrices`).
Learns: everybody the names of the columns, the number of all rows, a power of two that no value of a column
exceeds, and whether the columns decide the coefficients; whom the study names, coefficients and intercept.
Nobody has the joint products, which the protocol ``least-squares`` shows its server.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Message
from atoll.data.island import Chosen, Matrix
from atoll.errors import DataError, ParameterError, StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols import checked, handshake
from atoll.protocols.agreement import compare
from atoll.protocols.base import (
    Circumstances,
    Disclosure,
    Expectation,
    Learned,
    Output,
    Protection,
    Protocol,
    learned,
)
from atoll.protocols.booking import Booking
from atoll.protocols.handshake import AgreedColumns, Columns
from atoll.protocols.learning.columns import released
from atoll.protocols.learning.columns.consent import check_columns
from atoll.protocols.learning.columns.released import CONSUMER, EVERYONE, PROVIDER, SERVER, CommonRows
from atoll.protocols.learning.design import INTERCEPT
from atoll.protocols.learning.encrypted.moments import Scales, coefficients, own_moments, rows_counted
from atoll.protocols.learning.encrypted.program import own_factor
from atoll.protocols.learning.encrypted.protocol import (
    MOST_COLUMNS,
    EncryptedParameters,
    check_parameters,
    compared,
    under_encryption,
)
from atoll.protocols.learning.rows import check_stays, encoded, plain
from atoll.protocols.learning.task import WHOLE
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca import ranges
from atoll.randomness import fresh_seed
from atoll.secret_matrices import messages as machines
from atoll.secret_matrices import openings, roles
from atoll.secret_matrices.costs.counted import Counted, at_once
from atoll.secret_matrices.machine import Machine, Precision
from atoll.study.model import Study

COMMON = "rows and ranges"

OUTPUTS = {
    "model": Output(("model",), EVERYONE, "the model's coefficients"),
    "n_samples": Output(
        ("n_samples", "islands"), EVERYONE, "the number of rows over all islands, and which islands they are"
    ),
}


class RowsEncryptedParameters(EncryptedParameters, frozen=True):
    """As with columns split."""


class Common(Message, frozen=True):
    """Server -> provider: the number of all rows, and each column's power of two, the target's last."""

    n: int
    exponents: tuple[int, ...]


class ModelNames(Message, frozen=True):
    """Server -> consumer: the columns of the model, and what its numbers are to be multiplied by."""

    names: tuple[str, ...]
    exponents: tuple[int, ...]


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, group, server_ = study.read_parameters(RowsEncryptedParameters), study.who(PROVIDER), study.the(SERVER)
    with Booking(study, own, record, None) as booked:
        agreed = await handshake.announce(net, own.table, server_, p.columns, p.target)
        await compare(net, "the columns", (agreed.names, agreed.named), group)
        table = _chosen(own, p, agreed)
        await net.compute(ranges.check_table, table)
        sums = _session(net, study, record, len(table.columns))
        await sums.open()
        await booked.settle_exact(net, table)
        reach = ranges.exceeded(table, record("range", fresh_seed), by_column=True)
        rows = encoded(np.array([float(table.n_rows)]), len(group), COMMON)
        await sums.contribute(COMMON, np.concatenate([rows, reach], axis=1))
        common = await net.receive(Common, server_)
        ranges.check_opened(common.exponents, len(table.columns), table, server_)
        if not table.n_rows <= common.n < checked.MAX_ROWS:
            raise checked.refuse(
                server_, f"{common.n} as the number of all rows to one who has {table.n_rows}"
            )
        await compare(net, "the number of rows and the ranges", (common.n, common.exponents), group)
        await sums.close()
        scales = scales_of(p, common)
        factor = own_factor(record("factor", fresh_seed))
        own_sums = await net.compute(lambda: own_moments(table.whole(), scales, net.me == group[0], factor))
        machine = roles.Provider(net, record, study.digest, server_, group, study.who(CONSUMER))
        found = await run(machine, study, scales, own_sums)
        await machine.check(last=True)
    return _known(net, study, found, agreed.names, scales)


async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own
    p, group = study.read_parameters(RowsEncryptedParameters), study.who(PROVIDER)
    agreed = await handshake.check(net, group, p.columns)
    wide = len(agreed.names) + 1
    sums = _session(net, study, record, wide)
    await sums.open()
    total = await sums.total(COMMON, _common_length(wide))
    n = round(float(fixedpoint.decode(total[:, :1])[0]))
    common = Common(n, ranges.smallest_covers(total[:, 1:]))
    scales = scales_of(p, common)
    await net.broadcast(group, common)
    for address in study.who(CONSUMER):
        if study.releases("n_samples", address):
            await net.send(address, CommonRows(n, tuple(a.party for a in group)))
        if study.releases("model", address):
            await net.send(address, ModelNames(agreed.names, scales.exponents))
    machine = roles.Coordinator(net, record, study.digest, net.me, group, study.who(CONSUMER))
    found = await run(machine, study, scales, None)
    return _known(net, study, found, agreed.names, scales)


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own, record
    p, group, server_ = study.read_parameters(RowsEncryptedParameters), study.who(PROVIDER), study.the(SERVER)
    known = await released.counted_rows(net, study) if study.releases("n_samples", net.me) else {}
    if study.releases("model", net.me):
        told = await net.receive(ModelNames, server_)
        if p.columns is not None and set(told.names) != set(p.columns):
            raise checked.refuse(server_, "coefficients of other columns than the study's")
        if len(told.exponents) != len(told.names) + 1 or not all(-1022 < e < 1023 for e in told.exponents):
            raise checked.refuse(server_, "units of columns that cannot be")
        found = [await openings.collected(net, group) for _ in range(1 + p.fit_intercept)]
        known["model"] = model(p, told.names, Scales(1, told.exponents), found)
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


def _chosen(own: Own, p: EncryptedParameters, agreed: AgreedColumns) -> Chosen:
    assert p.target is not None, "the study names a target"
    own.table.check_numbers([p.target])
    return own.table.chosen((*agreed.names, p.target))


def scales_of(p: EncryptedParameters, common: Common) -> Scales:
    """The columns' units; refuses what no model should be made of."""
    d = len(common.exponents) - 1
    n, asked = common.n, d + p.fit_intercept
    if n <= asked:
        raise DataError(
            f"{n} rows for {asked} coefficients: a model would say what single rows hold",
            hint="use fewer columns, or more rows",
        )
    if d > MOST_COLUMNS:
        raise ParameterError(
            f"{d} columns; under encryption {MOST_COLUMNS} are the most",
            hint='use fewer columns, or the protocol "least-squares", whose server sees the joint products',
        )
    return Scales(n, common.exponents, p.weight, p.fit_intercept).raised()


async def run(machine: Machine, study: Study, scales: Scales, own: Any) -> list[Matrix] | None:
    """The program; coefficients and intercept, where this role is released them."""
    p = study.read_parameters(RowsEncryptedParameters)
    await machine.set_up([Precision.HIGH])
    if not await rows_counted(machine, scales.n, own):
        raise checked.refuse(study.the(SERVER), f"{scales.n} as the number of all rows, which it is not")
    receivers = frozenset(str(a) for a in study.receivers("model"))
    found = []
    for result in await coefficients(machine, scales, own, p.condition_bits):
        if result is not None:
            found.append(await machine.released(result, receivers))
    return None if found[0] is None else [part for part in found if part is not None]


def model(
    p: EncryptedParameters, names: tuple[str, ...], scales: Scales, found: list[Matrix]
) -> dict[str, Any]:
    """Coefficients in the columns' own units, the intercept first."""
    w = scales.restored(found[0][:, 0])
    if p.fit_intercept:
        w = np.append(np.ldexp(found[1][:, 0], scales.exponents[-1]), w)
    named = ((INTERCEPT,) if p.fit_intercept else ()) + names
    return plain({"names": named, "coefficients": w, "family": "gaussian", "link": "identity"})


def _known(
    net: Network, study: Study, found: list[Matrix] | None, names: tuple[str, ...], scales: Scales
) -> Learned:
    p = study.read_parameters(RowsEncryptedParameters)
    known: dict[str, Any] = {"n_samples": scales.n, "islands": tuple(a.party for a in study.who(PROVIDER))}
    if found is not None:
        known["model"] = model(p, names, scales, found)
    return learned(study, net.me, OUTPUTS, known)


def _session(net: Network, study: Study, record: Record, wide: int) -> secure_sums.SecureSum:
    return secure_sums.between(net, study, record, PROVIDER, SERVER, _common_length(wide))


def _common_length(wide: int) -> int:
    return 1 + wide * len(ranges.LEVELS)


# ---- who learns what, and what it costs ----


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    method = secure_sums.chosen(study)
    common = (
        "the number of rows of all islands together, and for each column, the target too, the smallest power "
        "of two that no value of any island exceeds"
    )
    counted_ = ("n_samples", "islands")
    said = [
        Disclosure(PROVIDER, "the agreed column names", (AgreedColumns,)),
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(PROVIDER, common, (Common,), counted_),
        Disclosure(SERVER, "each island's column names", (Columns,)),
        Disclosure(SERVER, common, method.to_receivers, counted_),
        *under_encryption("the number of all rows, once more; and "),
    ]
    if len(study.who(PROVIDER)) == 2:
        alone = "with two providers: each learns the other's number of rows, and of each column whether the "
        alone += "other's values reach as far as its own"
        said.append(Disclosure(PROVIDER, alone))
    words = "the coefficients and the intercept" + WHOLE
    for role in dict.fromkeys(address.role for address in study.receivers("model")):
        named = (machines.ReleasedShare, ModelNames) if role == CONSUMER else (machines.ReleasedShare,)
        said.append(Disclosure(role, words, named))
    if any(address.role == CONSUMER for address in study.receivers("n_samples")):
        whose = "the number of rows, and which islands they belong to"
        said.append(Disclosure(CONSUMER, whose, (CommonRows,)))
    return said


def protection(study: Study) -> Protection:
    """How contributions travel, and what goes through the secure sum."""
    del study
    words = (
        "Sums over an island's records travel encrypted under a collective key, or hidden under random "
        "numbers. Every island keeps a part of what opens them, and nobody can read them while one of them "
        "keeps its part to itself. The server has no part."
    )
    return Protection(words, "the number of rows and the columns' ranges")


def counted(study: Study, at: Circumstances, more: int = 0) -> Expectation:
    """Messages, bytes and rounds, from the program itself, run on shapes."""
    del more
    p, group, d = study.read_parameters(RowsEncryptedParameters), study.who(PROVIDER), at.columns
    M, n = len(group), max(sum(at.rows), 2 * d + 2) if at.rows else 1 << 14
    machine = Counted([str(a) for a in group], float(n))
    machine.gathered(20 * d)
    machine.broadcast(20 * d)
    compared(machine)
    cost = secure_sums.expected(study, M, [_common_length(d + 1)])
    machine.messages += cost.messages
    machine.deepen(machine.providers, machine.depth + cost.rounds)
    machine.coordinator_depth = machine.depth
    machine.broadcast(2 * d)
    compared(machine)
    scales = scales_of(p, Common(n, (0,) * (d + 1)))
    at_once(run(machine, study, scales, None))
    machine.check(last=True)
    told = [a for output in ("model", "n_samples") for a in study.receivers(output) if a.role == CONSUMER]
    return Expectation(
        machine.messages + len(told),
        machine.provider_bytes + cost.bytes_per_contributor,
        sum(machine.sent.values()) + machine.coordinator_bytes + cost.bytes_total + 20 * d * len(told),
        machine.costing.coordinator_memory.most,
        max(machine.deepest, machine.depth),
    )


def _check(study: Study) -> None:
    p = study.read_parameters(RowsEncryptedParameters)
    check_columns(p, study.who(PROVIDER), needs_target=True)
    check_stays(study)
    check_parameters(p)
    if not secure_sums.chosen(study).wraps:
        fit = [name for name, method in secure_sums.METHODS.items() if method.wraps]
        raise StudyError(
            f"{study.protocol} adds numbers that fill the whole grid, to find the columns' ranges; "
            f"secure_sum = {study.secure_sum!r} needs room for carries",
            hint=secure_sums.listed(fit),
            path=("study", "secure_sum"),
        )
    if p.y_holder is not None:
        raise StudyError(
            "with rows split, every island has its own rows' target",
            hint="leave y_holder out",
            path=("parameters", "y_holder"),
        )


PROTOCOL = Protocol(
    name="least-squares-encrypted-rows",
    version=3,
    title="Least squares under encryption, with rows split",
    analysis="regression",
    roles={PROVIDER: provider, SERVER: server, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    messages=(*handshake.MESSAGES, Common, ModelNames, CommonRows, Compared, *machines.MESSAGES),
    parameters=RowsEncryptedParameters,
    outputs=OUTPUTS,
    learns=learns,
    protection=protection,
    adversary="Everyone follows the protocol but keeps what they see; the server may collude with all "
    "providers but one.",
    expect=lambda study, d: counted(study, Circumstances(d)),
    counted=counted,
    check=_check,
)
