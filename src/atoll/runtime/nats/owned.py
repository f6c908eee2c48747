"""What a site brings to one run: its table, its ledger and conditions, the shares it kept; or rows made
up."""

from __future__ import annotations

from pathlib import Path

import msgspec

from atoll.crypto.identity import Identity
from atoll.data.columns import column_kinds, column_names
from atoll.data.island import as_island
from atoll.errors import ParameterError, PrivacyError
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.runtime.aligned import aligned
from atoll.runtime.nats import kept
from atoll.runtime.nats.policy import Table, read_policy
from atoll.runtime.nats.site import DataSet, Site
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.rehearsal import made_up
from atoll.runtime.studies import data_holders
from atoll.study.model import Local, Study


def own_of(site: Site, identity: Identity, start: RunStart, data_set: str | None) -> Own:
    """What this party's roles are handed."""
    study, me = start.study, start.me
    needs_table = me in data_holders(study)
    chosen = chosen_data_set(site, data_set) if needs_table else None
    shares = {} if start.rehearse else kept_shares(site, identity, study)
    if chosen is None:
        return Own(kept=shares)
    if start.rehearse:
        return Own(made_up(study, me, column_kinds(Path(chosen.path))))
    island = as_island(me, chosen.path)
    island.identity, island.capacity = chosen.identity, chosen.capacity
    if chosen.alignment is not None:
        island = aligned(island, chosen.alignment)
    ledger = _ledger(site, study, chosen)
    return Own(island, ledger, read_policy(site.policy_file).allow.min_colluders, shares)


def chosen_data_set(site: Site, name: str | None) -> DataSet:
    """One of the data sets that the node was started with."""
    known = data_sets(site)
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is not None and name in known:
        return known[name]
    if not known:
        raise ParameterError("this study needs a table from this site", hint="atoll node run --data TABLE")
    wrong = "the site has several data sets" if name is None else f"there is no data set {name!r} here"
    raise ParameterError(wrong, hint=f"--data-set, one of {', '.join(known)}")


def data_sets(site: Site) -> dict[str, DataSet]:
    """What ``atoll node run --data`` named, by name."""
    path = site.folder / "data.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, DataSet])
    except FileNotFoundError:
        return {}


def local_of(site: Site, study: Study, me: str, chosen: DataSet | None) -> Local:
    """What a review at this site may know: its own table and ledger, and nobody else's."""
    if chosen is None or me not in data_holders(study):
        return Local()
    identities = {} if chosen.identity is None else {me: chosen.identity}
    ledger = str(site.ledger) if site.ledger.is_file() and identities else None
    capacities = {} if chosen.capacity is None else {me: chosen.capacity}
    colluders = read_policy(site.policy_file).allow.min_colluders
    return Local({me: chosen.path}, identities, ledger, colluders, capacities)


def table_of(study: Study, me: str, chosen: DataSet | None) -> Table | None:
    """What the policy asks of this site's table."""
    if chosen is None or me not in data_holders(study):
        return None
    island = as_island(me, chosen.path)
    return Table(island.columns, island.n_rows)


def columns_of(study: Study, me: str, chosen: DataSet | None) -> int | None:
    """How many columns the study uses, as far as this site can know."""
    named = study.table.columns or study.parameters.get("columns")
    if named is not None:
        return len(named)
    if chosen is None or me not in data_holders(study) or study.partition == "vertical":
        return None
    beside = {study.parameters.get("label"), *study.table.exclude}
    return len([name for name in column_names(Path(chosen.path)) if name not in beside])


def _ledger(site: Site, study: Study, chosen: DataSet) -> Ledger | None:
    """A private study needs a ledger; an exact one is booked where there is one and the data set is known."""
    terms = protocol_of(study.protocol).privacy(study)
    private = terms is not None and bool(terms.costs)
    if terms is not None and not private:
        return None  # nothing is promised, so nothing is booked
    if private and chosen.identity is None:
        raise PrivacyError(
            "a private study needs the identity of the data set",
            hint='name it in the file of data sets: identity = "the data set as its owner knows it"',
        )
    if private and not site.ledger.is_file():
        raise PrivacyError(
            f"there is no ledger {site.ledger}", hint=f"atoll ledger init --ledger {site.ledger}"
        )
    return Ledger(site.ledger) if chosen.identity is not None and site.ledger.is_file() else None


def kept_shares(site: Site, identity: Identity, study: Study) -> dict[str, bytes]:
    """Role -> what it kept of the run that this study goes on from."""
    if not protocol_of(study.protocol).follows:
        return {}
    return kept.find(site.kept, identity, bytes.fromhex(str(study.parameters.get("session", ""))))
