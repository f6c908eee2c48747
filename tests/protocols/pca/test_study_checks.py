"""Options that a protocol refuses before anybody approves the study, one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import Example, dpdpca, private_sfpca, sfpca, sfpca_columns, sfpca_encrypted

from atoll.errors import AtollError, MessageError
from atoll.protocols import check_study, protocol_of
from atoll.protocols.pca.released import SampleCount
from atoll.protocols.pca.sfpca.messages import RowCounts
from atoll.protocols.pca.sfpca.protocol import consumer
from atoll.study.address import Address
from atoll.study.model import Party


def checked(example: Example, **fields: Any) -> None:
    check_study(protocol_of(example.study.protocol), structs.replace(example.study, **fields))


@pytest.mark.parametrize("k", [0, -1, 0.0, 1.0, 1.5, -0.5])
def test_dpdpca_has_a_number_of_components_or_a_share_of_the_variance(k: Any) -> None:
    for possible in (1, 0.01, 0.99, None):
        checked(dpdpca(n_components=possible))
    with pytest.raises(AtollError, match=r"n_components=.* is not possible"):
        checked(dpdpca(n_components=k))


PAPER: dict[str, Any] = {"calibration": "paper", "noise": "gaussian"}


@pytest.mark.parametrize(
    ("secure_sum", "options", "parameters", "said"),
    [
        ("shares", {}, {"mask": "free"}, "mask='free' cannot be used without calibration='paper'"),
        ("shares", {}, PAPER, "runs on packed Paillier only"),
        ("paillier", {"encoding": "exponent"}, PAPER, "runs on packed Paillier only"),
        ("paillier", {}, PAPER | {"noise": "distributed"}, "noise='distributed' is not the paper's"),
        ("paillier", {}, PAPER | {"noise": "local"}, "noise='local' is not the paper's"),
        ("paillier", {}, PAPER | {"assume_centered": True}, "assume_centered cannot be used with"),
        ("paillier", {}, PAPER | {"centre": "pairs"}, "centre='pairs' cannot be used with"),
        ("paillier", {}, PAPER | {"padded": True}, "centre='pairs' cannot be used with"),
        ("paillier", {}, PAPER | {"delta": None}, "the paper's Gaussian mechanism needs a delta"),
        ("paillier", {}, PAPER | {"row_norm": None}, "needs public bounds: row_norm"),
    ],
)
def test_the_published_dpdpca_takes_what_the_paper_has(
    secure_sum: str, options: dict[str, Any], parameters: dict[str, Any], said: str
) -> None:
    checked(dpdpca("paillier", **PAPER))
    checked(dpdpca("paillier", **PAPER | {"noise": "laplace", "delta": None}))
    with pytest.raises(AtollError, match=said):
        checked(dpdpca(secure_sum, options, **parameters))


@pytest.mark.parametrize("k", [0, -1])
def test_sfpca_has_a_number_of_components(k: Any) -> None:
    checked(sfpca(n_components=1))
    with pytest.raises(AtollError, match=r"n_components=.* is not possible"):
        checked(sfpca(n_components=k))


def _providers(count: int) -> tuple[Party, ...]:
    return (*(Party(f"p{i}", ("provider",)) for i in range(count)), Party("hub", ("coordinator",)))


ENCRYPTED = {"encrypted": ("provider", "coordinator")}
SCORES = {"scores": ("provider",)}


@pytest.mark.parametrize(
    ("example", "fields", "said"),
    [
        (sfpca(recipe="none"), {}, "there is no recipe 'none'"),
        (
            sfpca(),
            {"parties": _providers(257), "release": {"components": ("provider",)}},
            "sfpca runs with up to 256 providers",
        ),
        (sfpca(), {"secure_sum": "masks"}, "sfpca uses the secure sum 'shares'"),
        (sfpca_columns(), {"release": ENCRYPTED}, "only where islands hold rows"),
        (sfpca_encrypted(), {"release": {"encrypted": ("provider",)}}, "or none of them does"),
        (sfpca_encrypted(), {"release": {"encrypted": ("coordinator",)}}, "or none of them does"),
        (sfpca_columns(standardize=True), {}, "not for islands that hold whole columns"),
        (sfpca(standardize=True), {"release": ENCRYPTED}, "standardised columns do not stay encrypted"),
        (
            sfpca(standardize=True),
            {"release": SCORES | {"components": ("provider",)}},
            "say the standard deviations",
        ),
        (private_sfpca(bounds=None), {}, "a private PCA needs bounds"),
        (
            private_sfpca(standardize=True),
            {"release": {"components": ("provider",)}},
            "standardize is not possible with an epsilon",
        ),
        (private_sfpca(recipe="strict"), {}, "needs a covariance without noise"),
        (private_sfpca(), {"partition": "vertical"}, "'vertical' is not possible with an epsilon"),
        (private_sfpca(), {"release": SCORES}, "scores without components are not offered"),
        (private_sfpca(), {"release": ENCRYPTED}, "components that stay encrypted are not offered"),
    ],
)
def test_sfpca_refuses_what_would_tell_more_or_cannot_be(
    example: Example, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(AtollError, match=said):
        checked(example, **fields)


def test_sfpca_takes_bounds_or_a_row_norm_and_either_half_of_standardised_outputs() -> None:
    checked(private_sfpca())
    checked(private_sfpca(bounds=None, row_norm=4.0))
    checked(sfpca(standardize=True), release=SCORES | {"components": ("consumer",)})
    checked(sfpca_encrypted())


@pytest.mark.parametrize(
    ("n", "rows", "right"),
    [
        (40, (14, 13, 13), True),
        (14, (14, 14, 14), True),  # columns of the same rows
        (41, (14, 13, 13), False),
        (39, (14, 13, 13), False),
        (40, (20, 20), False),
        (40, (10, 10, 10, 10), False),
    ],
)
def test_a_consumer_adds_up_the_rows_that_it_is_told(n: int, rows: tuple[int, ...], right: bool) -> None:
    study = structs.replace(sfpca().study, release={"n_samples": ("consumer",)})
    told = {SampleCount: SampleCount(n, ("island-0", "island-1", "island-2")), RowCounts: RowCounts(rows)}

    class Net:
        me = study.the("consumer")

        async def receive(self, kind: Any, sender: Address) -> Any:
            return told[kind]

    role: Any = consumer
    if right:
        learned = asyncio.run(role(Net(), study, None, None))
        assert learned.outputs["n_samples"] == n
    else:
        with pytest.raises(MessageError, match=f"numbers of rows that do not make {n}"):
            asyncio.run(role(Net(), study, None, None))
