"""The range of the data as everybody learns it without bounds: at a provider, and at the coordinator."""

from __future__ import annotations

from atoll import secure_sums
from atoll.data.island import Chosen
from atoll.network import Network, Record
from atoll.protocols.agreement import compare
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.messages import DataRange
from atoll.protocols.pca.sfpca.parameters import COORDINATOR
from atoll.protocols.pca.sfpca.ranges import LEVELS
from atoll.randomness import fresh_seed
from atoll.study.model import Study


async def agree(
    net: Network,
    study: Study,
    record: Record,
    table: Chosen,
    *,
    by_column: bool = False,
) -> tuple[int, ...]:
    """The power of two that no value exceeds, of all columns or of each."""
    levels = ranges.exceeded(table, record("range", fresh_seed), by_column=by_column)
    columns = len(table.columns) if by_column else 1
    sums = _session(net, study, record, columns)
    await sums.open()
    await sums.contribute("range", levels)
    coordinator_ = study.the(COORDINATOR)
    exponents = (await net.receive(DataRange, coordinator_)).exponents
    ranges.check_opened(exponents, columns, table, coordinator_)
    await compare(net, "the range of the data", exponents, study.who(PROVIDER))
    return exponents


async def open_(net: Network, study: Study, record: Record, columns: int = 1) -> tuple[int, ...]:
    sums = _session(net, study, record, columns)
    await sums.open()
    exponents = ranges.smallest_covers(await sums.total("range", columns * len(LEVELS)))
    await net.broadcast(study.who(PROVIDER), DataRange(exponents))
    return exponents


def _session(net: Network, study: Study, record: Record, columns: int) -> secure_sums.SecureSum:
    return secure_sums.between(net, study, record, PROVIDER, COORDINATOR, columns * len(LEVELS), "range")
