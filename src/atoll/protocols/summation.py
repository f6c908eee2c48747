"""The secure sum alone: contributors add a vector each, one receiver learns the total.

Adversary and trust are those of the chosen secure sum. Learns: the receiver the sum; contributors nothing.
"""

from __future__ import annotations

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.data.island import Island
from atoll.network import Network, Record
from atoll.protocols.base import Disclosure, Expectation, Learned, Output, Protocol, learned
from atoll.study.model import Parameters, Study

CONTRIBUTOR, RECEIVER = "contributor", "receiver"

OUTPUTS = {"total": Output(("total",), (RECEIVER,), RECEIVER)}


class SumParameters(Parameters, frozen=True):
    """``length``: how many numbers each contributor adds."""

    length: int


async def contributor(net: Network, study: Study, island: Island, record: Record) -> Learned:
    contributors = study.who(CONTRIBUTOR)
    sums = secure_sums.session(
        study, net, record, contributors=contributors, receivers=(study.the(RECEIVER),)
    )
    await sums.open()
    values = island.features(island.columns).ravel()
    await sums.contribute("values", fixedpoint.encode(values, contributors=len(contributors)))
    return Learned()


async def receiver(net: Network, study: Study, island: Island | None, record: Record) -> Learned:
    sums = secure_sums.session(study, net, record, contributors=study.who(CONTRIBUTOR), receivers=(net.me,))
    await sums.open()
    total = await sums.total("values", study.read_parameters(SumParameters).length)
    return learned(study, net.me, OUTPUTS, {"total": np.asarray(fixedpoint.decode(total))})


def learns(study: Study) -> list[Disclosure]:
    messages = secure_sums.method(study.secure_sum).messages
    return [
        Disclosure(CONTRIBUTOR, "shares, masks or keys of the secure sum, which say nothing alone", messages),
        Disclosure(RECEIVER, "the sum over all contributors, exactly", messages),
    ]


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes and memory for vectors of d numbers."""
    M = len(study.who(CONTRIBUTOR))
    method = secure_sums.method(study.secure_sum)
    cost = method.cost(M, 1, secure_sums.read_options(method, study.sum_options))
    sent = cost.setup_bytes // M + int(d * cost.contributor_bytes_per_value) + cost.round_overhead_bytes
    return Expectation(
        messages=cost.setup_messages + cost.round_messages,
        bytes_per_provider=sent,
        bytes_total=M * sent,
        memory_server=3 * d * fixedpoint.BYTES_PER_VALUE,
        rounds=cost.setup_rounds + cost.round_rounds,
    )


PROTOCOL = Protocol(
    name="sum",
    title="Secure sum",
    roles={CONTRIBUTOR: contributor, RECEIVER: receiver},
    data_roles=frozenset({CONTRIBUTOR}),
    single_roles=frozenset({RECEIVER}),
    messages=(),
    parameters=SumParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see.",
    expect=expect,
)
