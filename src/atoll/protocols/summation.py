"""The secure sum alone: contributors add a vector each, one receiver learns the total.

Adversary and trust are those of the chosen secure sum. Learns: the receiver the sum; contributors nothing.
"""

from __future__ import annotations

from atoll import fixedpoint, secure_sums
from atoll.errors import DataError
from atoll.network import Network, Record
from atoll.protocols.base import Disclosure, Expectation, Learned, Output, Protocol, learned
from atoll.protocols.own import Own
from atoll.study.model import Parameters, Study

CONTRIBUTOR, RECEIVER = "contributor", "receiver"

OUTPUTS = {"total": Output(("total", "islands"), (RECEIVER,), "the sum over all islands, and which they are")}


class SumParameters(Parameters, frozen=True):
    """``length``: how many numbers each contributor adds."""

    length: int


async def contributor(net: Network, study: Study, own: Own, record: Record) -> Learned:
    island, sums = own.table, _session(net, study, record)
    await sums.open()
    values = island.features(island.columns).ravel()
    length = study.read_parameters(SumParameters).length
    if len(values) != length:
        raise DataError(f"{island.name}: {len(values)} numbers where the study adds {length}")
    contributors = len(study.who(CONTRIBUTOR))
    await sums.contribute("values", fixedpoint.encode(values, contributors=contributors))
    await sums.close()
    return Learned()


async def receiver(net: Network, study: Study, own: Own, record: Record) -> Learned:
    sums = _session(net, study, record)
    await sums.open()
    total = await sums.total("values", study.read_parameters(SumParameters).length)
    islands = tuple(address.party for address in study.who(CONTRIBUTOR) if address in sums.present)
    return learned(study, net.me, OUTPUTS, {"total": fixedpoint.decode(total), "islands": islands})


def _session(net: Network, study: Study, record: Record) -> secure_sums.SecureSum:
    return secure_sums.between(
        net, study, record, CONTRIBUTOR, RECEIVER, study.read_parameters(SumParameters).length
    )


def learns(study: Study) -> list[Disclosure]:
    method = secure_sums.chosen(study)
    return [
        Disclosure(CONTRIBUTOR, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(
            RECEIVER, "the sum over all contributors, exactly", method.to_receivers, OUTPUTS["total"].values
        ),
    ]


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes and memory for vectors of d numbers."""
    cost = secure_sums.expected(study, len(study.who(CONTRIBUTOR)), [d])
    return Expectation(
        messages=cost.messages,
        bytes_per_provider=cost.bytes_per_contributor,
        bytes_total=cost.bytes_total,
        memory_server=3 * d * fixedpoint.BYTES_PER_VALUE,
        rounds=cost.rounds,
    )


PROTOCOL = Protocol(
    name="sum",
    analysis="sum",
    title="Secure sum",
    roles={CONTRIBUTOR: contributor, RECEIVER: receiver},
    data_roles=frozenset({CONTRIBUTOR}),
    single_roles=frozenset({RECEIVER}),
    judge=RECEIVER,
    apart=((CONTRIBUTOR, RECEIVER),),
    messages=(),
    parameters=SumParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see.",
    expect=expect,
)
