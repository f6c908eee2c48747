"""What a node hands to a run of its own data: nothing private leaves a site without a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.examples import dpdpca, pppca

from atoll.errors import PrivacyError
from atoll.privacy.ledger import Ledger
from atoll.protocols import resolve
from atoll.runtime.nats.owned import _ledger
from atoll.runtime.nats.site import DataSet, Site

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
