"""Whom a private study is made for must see sums only: a single input carries one share of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import dpdpca, private_pppca, privatelocal

from atoll.data.island import as_islands
from atoll.errors import PrivacyError, StudyError
from atoll.estimators.base import parties
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of
from atoll.protocols.base import check_study
from atoll.runtime.execute import run_study
from atoll.study.model import Party, Study


def pppca(secure_sum: str, options: dict[str, Any], owners: int = 4, **parameters: Any) -> Study:
    islands = as_islands([np.zeros((1, 2))] * owners)
    study = private_pppca().study
    return structs.replace(
        study,
        secure_sum=secure_sum,
        sum_options=options,
        parties=parties(islands, "provider", "server", "consumer"),
        parameters=dict(study.parameters) | parameters,
    )


@pytest.mark.parametrize(
    ("secure_sum", "options", "owners", "colluders", "most"),
    [
        # The server holds the key and the first provider has everybody's ciphertexts.
        ("paillier", {}, 4, 1, 0),
        ("lattice", {"key": "server"}, 4, 1, 0),
        # On a sparse graph few neighbours open the backup of an owner's masks.
        ("masks", {"dropouts": 2, "graph": "sparse", "colluders": 20}, 150, 60, 20),
        # On the sparse graph a third of the owners may collude.
        ("masks", {}, 150, 60, 50),
    ],
)
def test_colluders_that_would_see_single_inputs_are_refused(
    secure_sum: str, options: dict[str, Any], owners: int, colluders: int, most: int
) -> None:
    protocol = protocol_of("pppca")
    study = pppca(secure_sum, options, owners, colluders=colluders)
    with pytest.raises(StudyError, match=rf"for {colluders} colluding owner\(s\).* withstands {most}:"):
        check_study(protocol, study)
    check_study(protocol, pppca(secure_sum, options, owners, noise="local"))  # each input has all of it
    check_study(protocol, pppca("shares", {}, owners, colluders=colluders))
    if most:
        check_study(protocol, pppca(secure_sum, options, owners, colluders=most))


@pytest.mark.parametrize("secure_sum", ["shares", "paillier"])
@pytest.mark.parametrize("other", ["data_user", "owner"])
def test_whoever_adds_is_nobody_else(secure_sum: str, other: str) -> None:
    study = dpdpca(secure_sum).study
    check_study(protocol_of("dpdpca"), study)
    first = next(party for party in study.parties if other in party.roles)
    kept = (party for party in study.parties if party.roles != ("proxy",) and party != first)
    both = Party("both", (other, "proxy"))
    with pytest.raises(StudyError, match=f"'both' cannot be both proxy and {other}"):
        check_study(protocol_of("dpdpca"), structs.replace(study, parties=(*kept, both)))


def test_a_published_form_releases_nothing_where_a_ledger_is_kept() -> None:
    example = privatelocal()
    study = structs.replace(
        example.study, parameters=dict(example.study.parameters) | {"calibration": "paper"}
    )
    with Ledger() as ledger:
        for name, island in example.islands.items():
            island.identity = name
        with pytest.raises(PrivacyError, match="keeps no privacy promise"):
            run_study(study, example.booked(ledger).own)
