"""The privacy options of a study: read once, with each protocol's own choice of them."""

from __future__ import annotations

from typing import Any

import pytest

from atoll.errors import StudyError
from atoll.protocols import PROTOCOLS
from atoll.protocols.pca.dpdpca.terms import DPDPCAParameters
from atoll.protocols.pca.pppca.parameters import PPPCAParameters
from atoll.protocols.pca.privatelocal import PrivateLocalParameters
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters
from atoll.protocols.private_options import Privacy, PrivateParameters


def test_defaults_are_filled_in_once_there_is_an_epsilon() -> None:
    assert PPPCAParameters.read({}, ()).privacy is None
    assert PPPCAParameters.read({"epsilon": 0.5}, ()).privacy == Privacy(
        epsilon=0.5,
        delta=None,
        row_norm=None,
        rows="normalise",
        neighbours="add-remove",
        noise="distributed",
        colluders=1,
        assume_centered=False,
        centre="mean",
        padded=False,
    )


def test_the_rest_means_nothing_without_an_epsilon_and_says_where_it_stands() -> None:
    for kind in (PPPCAParameters, SFPCAParameters):
        with pytest.raises(StudyError, match="delta cannot be used in a study without epsilon") as refused:
            kind.read({"delta": 1e-5}, ("parameters",))
        assert refused.value.path == ("parameters", "delta")


@pytest.mark.parametrize(
    ("kind", "table", "said"),
    [
        (DPDPCAParameters, {}, "lacks 'epsilon'"),
        (PrivateLocalParameters, {"epsilon": 1.0}, "lacks 'delta'"),
        (PrivateLocalParameters, {"epsilon": 1.0, "delta": 1e-5, "noise": "local"}, "has no 'noise'"),
        (SFPCAParameters, {"epsilon": 1.0, "neighbours": "add-remove"}, "has no 'neighbours'"),
        (PPPCAParameters, {"epsilon": 1.0, "noise": "gaussian"}, "noise: invalid"),
        (PPPCAParameters, {"epsilon": "much"}, "epsilon: expected a number"),
        (PPPCAParameters, {"privacy": {"epsilon": 1.0}}, "has no 'privacy'"),
    ],
)
def test_a_protocol_takes_its_own_options_only(
    kind: type[PrivateParameters], table: dict[str, Any], said: str
) -> None:
    with pytest.raises(StudyError, match=said):
        kind.read(table, ("parameters",))


def test_who_makes_the_noise_depends_on_the_form() -> None:
    stated = {"epsilon": 1.0, "delta": 1e-5}
    assert DPDPCAParameters.read(stated, ()).privacy.noise == "distributed"
    assert DPDPCAParameters.read({**stated, "calibration": "paper"}, ()).privacy.noise == "gaussian"
    sfpca = SFPCAParameters.read(stated, ()).privacy
    assert sfpca is not None
    assert sfpca.neighbours == "replace"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_was_filled_in_reads_the_same(name: str) -> None:
    kind = PROTOCOLS[name].parameters
    for table in ({}, {"epsilon": 1.0, "delta": 1e-5}, {"length": 3}):
        try:
            read = kind.read(table, ())
        except StudyError:
            continue
        assert kind.read(read.plain(), ()) == read
        assert set(table) <= set(read.plain())
