"""Guard rails that every island keeps for itself, before a byte leaves it.

A study may ask for a least number of rows on every island and of islands. And an owner with a ledger takes
part in no exact study that differs from one already run on the same data set by a few rows, columns,
components or filters: one result less the other would be a result of the few. Studies with an epsilon need
no such rule: their ledger adds up what they say together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np

from atoll import randomness
from atoll.data.island import Island
from atoll.data.tables.base import NUMBERS
from atoll.errors import DataError, PrivacyError, StudyError
from atoll.lazy import lazy
from atoll.network import Network, Record
from atoll.privacy.history import Hashes, Joined
from atoll.privacy.ledger import iso_time
from atoll.privacy.ledger_file import command
from atoll.protocols.base import Learned, Protocol, Role
from atoll.protocols.own import Own
from atoll.study.model import Study

pd = lazy("pandas")

_ENTRY = "guards/entry"


def guarded(protocol: Protocol, study: Study) -> Protocol:
    """The same protocol, whose islands look at the study before they answer."""
    islands = len(protocol.table_holders(study))
    if islands < study.guards.min_islands:
        raise StudyError(
            f"the study asks for {study.guards.min_islands} islands and names {islands}",
            hint="add islands, or a smaller min_islands, if all agree",
            path=("guards", "min_islands"),
        )
    guards = {role: _guarded(protocol, protocol.roles[role]) for role in protocol.data_roles}
    return replace(protocol, roles={**protocol.roles, **guards}, guard=lambda done, _: done)


def _guarded(protocol: Protocol, inner: Role) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        if own.island is None or not protocol.reads_table(study, net.me):
            return await inner(net, study, own, record)
        entry = await _check(net, protocol, study, own, record)
        try:
            return await inner(net, study, own, record)
        finally:
            if entry is not None and own.ledger is not None:
                own.ledger.history.give_back(entry)

    return role


async def _check(net: Network, protocol: Protocol, study: Study, own: Own, record: Record) -> str | None:
    """Refuse, or note what the study is made of; None where no history is kept of it."""
    island, least = own.table, study.guards.min_rows
    rows = await net.compute(_complete_rows, island, study) if least else island.n_rows
    if rows < least:
        raise DataError(
            f"{island.name}: the table has {rows} rows that count, and the study asks for {least} on every "
            "island",
            hint="leave the island out, or a smaller min_rows, if all agree",
        )
    if own.ledger is None or protocol.privacy(study) is not None:
        return None
    joined = await net.compute(_joined, island, study, own)
    identity = island.identity if island.identity is not None else island.name
    # Drawn once per run and recorded: a role that runs again is the same entry.
    entry = record(_ENTRY, randomness.fresh_seed).hex()
    found = own.ledger.history.close_to(identity, study.digest, joined, entry)
    if found is not None:
        known, words = found
        raise PrivacyError(
            f"{island.name}: the study differs by {words} from one that was run on the data set {identity!r} "
            f"({iso_time(known.made_at)}, {known.study[:12]}): one result less the other is about the few",
            hint="run what differs by more; or, if you accept that, "
            + command(own.ledger.path, "allow", identity, study.digest),
        )
    own.ledger.history.reserve(identity, entry, study.digest, joined)
    return entry


def _used(island: Island, study: Study) -> tuple[str, ...]:
    """The columns that the study reads of this island, in alphabetical order."""
    named = study.table.columns or study.parameters.get("columns")
    beside = {*study.table.exclude, *(study.parameters.get(name) for name in ("label", "row_ids", "on"))}
    used = set(island.columns) - beside if named is None else set(named)
    used |= {study.parameters.get(name) for name in ("target", "weights", "offset")}
    return tuple(sorted(name for name in island.columns if name in used))


def _values(island: Island, columns: tuple[str, ...]) -> Iterator[Hashes]:
    """Rows as 64-bit values: numbers as doubles, everything else by a hash of its text."""
    numbers = [name for name in columns if island.holds(name) == NUMBERS]
    others = [name for name in columns if name not in set(numbers)]
    for block, values in island.mixed(numbers, others):
        plain = np.where(np.isnan(block), np.nan, block + 0.0)  # one nan, and no -0.0
        text = [pd.util.hash_array(np.array([str(v) for v in one], dtype=object)) for one in values]
        wide = [np.ascontiguousarray(plain).view(np.uint64), *(one.reshape(-1, 1) for one in text)]
        yield np.hstack(wide) if text else wide[0]


def _joined(island: Island, study: Study, own: Own) -> Joined:
    assert own.ledger is not None
    columns = _used(island, study)
    sketch = own.ledger.history.sketch(_values(island, columns)) if columns else np.empty(0, np.uint64)
    plan = msgspec.to_builtins(study.table)
    for name in ("columns", "exclude"):  # which columns are used counts by itself
        plan.pop(name)
    filters = json.dumps(plan, sort_keys=True)
    return Joined(
        study.analysis, columns, island.n_rows, study.parameters.get("n_components"), filters, sketch
    )


def _complete_rows(island: Island, study: Study) -> int:
    """Rows that count: where the study drops incomplete ones, those without a missing value."""
    if study.table.missing != "drop" and study.parameters.get("missing") != "drop":
        return island.n_rows
    columns = _used(island, study)
    numbers = [name for name in columns if island.holds(name) == NUMBERS]
    others = [name for name in columns if name not in set(numbers)]
    count = 0
    for block, values in island.mixed(numbers, others):
        keep = ~np.isnan(block).any(axis=1)
        for one in values:
            keep &= ~np.asarray(pd.isna(one))
        count += int(keep.sum())
    return count


def guards_words(study: Study) -> tuple[str, ...]:
    """For whoever reviews the study."""
    said = []
    if study.guards.min_rows:
        said.append(f"every island brings at least {study.guards.min_rows} rows, or takes no part")
    if study.guards.min_islands:
        said.append(f"at least {study.guards.min_islands} islands take part")
    return tuple(said)
