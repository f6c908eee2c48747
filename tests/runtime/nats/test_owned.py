"""What a node hands to a run of its own data: nothing private leaves a site without a ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.support.examples import dpdpca, pppca, sfpca
from tests.support.networks import pinned, starts_of

from atoll.crypto.identity import Identity
from atoll.data.island import Island
from atoll.errors import PrivacyError
from atoll.privacy.ledger import Ledger
from atoll.protocols import resolve
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca.later import later_study
from atoll.runtime.nats import kept, owned
from atoll.runtime.nats.owned import _ledger, own_of
from atoll.runtime.nats.site import DataSet, Site
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.studies import data_holders

PRIVATE, EXACT, PUBLISHED = (
    resolve(example.study) for example in (dpdpca(), pppca(), dpdpca("paillier", calibration="paper"))
)


def data_set(identity: str | None) -> DataSet:
    return DataSet(path="table.csv", identity=identity)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.make(tmp_path / "site")


def test_a_private_study_needs_an_identity_and_a_ledger(site: Site) -> None:
    with pytest.raises(PrivacyError, match="a private study needs the identity of the data set"):
        _ledger(site, PRIVATE, data_set(None))
    with pytest.raises(PrivacyError, match="there is no ledger"):
        _ledger(site, PRIVATE, data_set("cohort"))
    assert not site.ledger.exists()  # nobody but its owner makes one


def test_what_is_exact_is_booked_where_there_is_a_ledger(site: Site) -> None:
    assert _ledger(site, EXACT, data_set("cohort")) is None
    Ledger.create(site.ledger).close()
    for study in (PRIVATE, EXACT):
        ledger = _ledger(site, study, data_set("cohort"))
        assert ledger is not None
        ledger.close()
    assert _ledger(site, EXACT, data_set(None)) is None
    with pytest.raises(PrivacyError, match="needs the identity"):
        _ledger(site, PRIVATE, data_set(None))


# ---- what a party's roles are handed ----


@pytest.fixture
def start(site: Site, tmp_path: Path) -> RunStart:
    """A run of a private study on a table of which every value can be told."""
    (tmp_path / "table.csv").write_text("age,dose,weight,stay\n" + "7777,7777,7777,7777\n" * 40)
    Ledger.create(site.ledger).close()
    (site.folder / "policy.toml").write_text("[allow]\nmin_colluders = 1\n")
    study = pinned(PRIVATE)
    return next(one for name, one in starts_of(study).items() if name in data_holders(study))


def handed(site: Site, start: RunStart, path: Path) -> Own:
    known = {"cohort": DataSet(path=str(path), identity="cohort", capacity=500)}
    (site.folder / "data.json").write_bytes(msgspec.json.encode(known))
    return own_of(site, Identity.new(), start, "cohort")


def test_a_run_is_handed_the_sites_table_conditions_and_ledger(
    site: Site, start: RunStart, tmp_path: Path
) -> None:
    own = handed(site, start, tmp_path / "table.csv")
    assert own.table.n_rows == 40
    assert (own.table.identity, own.table.capacity) == ("cohort", 500)
    assert own.min_colluders == 1
    assert own.ledger is not None
    own.ledger.close()


def test_a_run_is_handed_rows_in_the_order_of_the_alignment(
    site: Site, start: RunStart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the table's own order they would be joined with other people's rows."""
    asked: list[tuple[str, str]] = []

    def in_order(island: Island, path: str) -> Island:
        asked.append((island.name, path))
        return island.aligned(np.array([7, 3]), "an order", "age")

    monkeypatch.setattr(owned, "aligned", in_order)
    known = {"cohort": DataSet(path=str(tmp_path / "table.csv"), identity="cohort", alignment="rows.atoll")}
    (site.folder / "data.json").write_bytes(msgspec.json.encode(known))
    own = own_of(site, Identity.new(), start, "cohort")
    assert asked == [(start.me, "rows.atoll")]
    assert own.table.n_rows == 2
    assert own.ledger is not None
    own.ledger.close()


def test_a_rehearsal_is_handed_made_up_rows_and_nothing_of_the_sites(
    site: Site, start: RunStart, tmp_path: Path
) -> None:
    """No value of the table, no ledger to spend from, no share of an earlier run."""
    own = handed(site, replace(start, rehearse=True), tmp_path / "table.csv")
    values = own.table.features(own.table.columns)
    assert len(values) != 40
    assert not (values == 7777).any()
    assert (own.ledger, dict(own.kept), own.table.identity) == (None, {}, None)


def test_the_share_of_an_earlier_run_is_for_the_run_that_goes_on_and_for_no_rehearsal(site: Site) -> None:
    """A rehearsal of a later step would else release what the real one releases, and be booked nowhere."""
    session, identity = bytes(range(32)), Identity.new()
    study = pinned(later_study(resolve(sfpca().study), session, {"components": ("provider",)}))
    mine = next(one for one in starts_of(study).values() if one.me == study.who("provider")[0].party)
    share = b"a share of " + session
    kept.keep(site.kept, identity.public, "run", "provider", share)
    assert dict(own_of(site, identity, mine, None).kept) == {"provider": share}
    assert dict(own_of(site, identity, replace(mine, rehearse=True), None).kept) == {}
