"""atoll.PCA(centre="pairs"): rows in pairs, nothing spent on a mean, none released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.support.examples import EXAMPLES, PAIRS, Example, dpdpca, with_capacities
from tests.support.taps import resumed, tapped

import atoll
from atoll.errors import DataError, NotReleased, ParameterError, RunError
from atoll.estimators.pca.registry import adapter_of
from atoll.privacy import dp_moments as dp
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import Crowd, GaussianNoise
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.protocols.pca.dpdpca import protocol
from atoll.protocols.pca.private_pairs import RECORDED_PLACES
from atoll.runtime.execute import run_study
from atoll.study.address import Address

OPTIONS: dict[str, Any] = {"protocol": "dpdpca", "epsilon": 1.0, "delta": 1e-5, "centre": "pairs"}
RNG = np.random.default_rng(17)


def islands(rows: np.ndarray, n: int = 4, spare: int | None = None) -> dict[str, Any]:
    tables = {f"ward-{i}": rows[i::n] for i in range(n)}
    if spare is None:
        return tables
    return {k: atoll.Island.from_array(v, capacity=len(v) + spare) for k, v in tables.items()}


def cloud(rows: int = 3000) -> np.ndarray:
    return RNG.standard_normal((rows, 4)) * [4.0, 2.0, 1.0, 0.5] + [1e4, -300.0, 20.0, 0.0]


@pytest.mark.parametrize("chosen", ["dpdpca", "pppca"])
@pytest.mark.parametrize("spare", [None, 30])
def test_with_a_huge_epsilon_it_is_the_pca_of_differences(chosen: str, spare: int | None) -> None:
    rows = cloud()
    fitted = atoll.PCA(4, **(OPTIONS | {"protocol": chosen, "epsilon": 5000.0})).fit(
        islands(rows, spare=spare)
    )
    assert np.abs(fitted.components_) == pytest.approx(np.eye(4), abs=0.08)
    assert fitted.n_samples_ == pytest.approx(3000, abs=2)
    assert fitted.explained_variance_.sum() == pytest.approx(1.0, abs=1e-2)
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-6)
    assert fitted.variances_of_ == "unit differences of rows"


def test_the_noise_is_less_where_islands_declare_a_capacity() -> None:
    rows = cloud(400)

    def sigma(tables: dict[str, Any], **more: Any) -> float:
        pca = atoll.PCA(2, **OPTIONS, **more)
        study = adapter_of(pca.protocol).study(pca, atoll.data.island.as_islands(tables))
        parameters = study.read_parameters(protocol.DPDPCAParameters)
        noise = protocol.plan_of(study, parameters, 4).moments.noise
        assert isinstance(noise, GaussianNoise)
        return noise.sigma

    bare, padded = sigma(islands(rows)), sigma(islands(rows, spare=9))
    assert bare / padded == pytest.approx((2.01 / 1.01) ** 0.5)
    # Where numbers of rows are public a capacity means nothing, and may be there.
    replaced = sigma(islands(rows, spare=9), neighbours="replace")
    assert replaced == sigma(islands(rows), neighbours="replace")
    with pytest.raises(ParameterError, match="ward-1, ward-2, ward-3 declares a capacity, ward-0 does not"):
        sigma(islands(rows, spare=9) | {"ward-0": rows[:50]})


def test_there_is_no_mean_and_rows_are_projected_as_they_are() -> None:
    rows = cloud(600)
    fitted = atoll.PCA(2, **OPTIONS)
    projected = list(fitted.fit_transform(islands(rows)).values())
    assert not hasattr(fitted, "mean_")
    assert fitted.result_["mean"] is None
    assert np.allclose(fitted.transform(rows), rows @ fitted.components_.T)
    assert np.allclose(projected[1], rows[1::4] @ fitted.components_.T)
    for use in (lambda: fitted.inverse_transform(projected[0]), fitted.to_sklearn):
        with pytest.raises(NotReleased, match="needs the mean of each column, which centre='pairs'"):
            use()
    # An estimator that is fitted again with a mean has one.
    again = fitted.set_params(centre="mean", row_norm=2e4).fit(islands(rows))
    assert again.mean_.shape == (4,)
    again.inverse_transform(projected[0])


def test_utility_is_that_of_the_rehearsal() -> None:
    """One cell of benchmarks/dp_centres.py by the protocol itself."""
    rows = load_breast_cancer().data
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    centred = rows - rows.mean(axis=0)
    scatter = centred.T @ centred
    best = np.linalg.eigvalsh(scatter)[-3:].sum()

    def captured(components: np.ndarray) -> float:
        return float(np.trace(components @ scatter @ components.T) / best)

    tables = islands(rows, 5, spare=12)
    plan = dp.Plan(30, 1.0, 0.5, 1e-5, crowd=Crowd(5, 1), centre="pairs", padded=True)
    arrays, places = [rows[i::5] for i in range(5)], [len(rows[i::5]) + 12 for i in range(5)]
    expected = [
        captured(rehearse(plan, arrays, bytes([s]) * 32, capacities=places).spectrum.components[:3])
        for s in range(12)
    ]
    got = [captured(atoll.PCA(3, **(OPTIONS | {"epsilon": 0.5})).fit(tables).components_) for _ in range(6)]
    assert 0.85 < np.mean(expected) < 0.97
    assert abs(np.mean(got) - np.mean(expected)) < 0.05


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"centre": "median"}, "centre='median' must be 'mean' or 'pairs'"),
        ({"row_norm": 3.0}, "row_norm cannot be used with centre='pairs'"),
        ({"rows": "clip"}, "rows='clip' cannot be used with centre='pairs'"),
        ({"assume_centered": True}, "assume_centered cannot be used with centre='pairs'"),
        ({"calibration": "paper", "secure_sum": "paillier"}, "centre='pairs' cannot be used"),
        ({"protocol": "sfpca", "bounds": 9.0}, "centre='pairs' cannot be used with protocol='sfpca'"),
        ({"protocol": "privatelocal"}, "centre='pairs' cannot be used with protocol='privatelocal'"),
        ({"protocol": "pppca", "epsilon": None, "delta": None}, "centre='pairs' cannot be used"),
        ({"centre": "mean"}, "needs row_norm"),
    ],
)
def test_combinations_that_mean_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        atoll.PCA(2, **(OPTIONS | options)).fit(islands(cloud(40)))


@pytest.mark.parametrize("capacity", [0, -3, 2.5, True, "20"])
def test_a_capacity_is_a_whole_number(capacity: Any) -> None:
    with pytest.raises(ParameterError, match=r"ward: capacity=.* must be a whole number from 1"):
        atoll.Island.from_array(np.eye(3), name="ward", capacity=capacity)


def test_a_frame_keeps_its_capacity() -> None:
    import pandas as pd

    frame = atoll.Island.from_frame(pd.DataFrame({"a": [1.0, 2.0]}), capacity=7)
    assert atoll.data.island.as_islands({"x": frame, "y": np.eye(2)})["x"].capacity == 7


def test_an_island_beyond_its_capacity_pays_nothing_and_sends_no_number() -> None:
    example = with_capacities(dpdpca(**PAIRS, padded=True), 9)  # ten rows each
    with Ledger() as ledger:
        for name, island in example.islands.items():
            island.identity = name
            ledger.set_budget(name, 9.0, 1e-5)
        with pytest.raises(DataError, match="has more rows than the capacity"):
            atoll.LocalEngine().run(protocol_of("dpdpca"), example.study, example.booked(ledger).own)
        assert ledger.debits() == []


def test_places_are_drawn_through_the_record_and_apart_from_the_noise() -> None:
    example = EXAMPLES["dpdpca-pairs"]()
    tap = tapped(example)
    address = Address("island-0", "owner")
    drawn = tap.records[address].drawn
    assert RECORDED_PLACES == "privacy/places"
    assert drawn["privacy/places"] != drawn["privacy/noise"]

    def sent(changed: dict[str, bytes]) -> list[tuple[Address, bytes]]:
        island = example.islands["island-0"]
        return resumed(example, tap, address, Own(island), **changed)[1]

    assert sent({}) == tap.outboxes[address]
    for name in ("privacy/places", "privacy/noise"):  # either one would change what is sent
        with pytest.raises(RunError, match="is not what the recorded run sent"):
            # Of few rows, other places can make the same pairs: not eight times.
            [sent({name: bytes([seed]) * 32}) for seed in range(8)]


def test_an_owner_is_sent_nothing_back_before_the_result() -> None:
    example: Example = EXAMPLES["pppca-private-pairs"]()
    received = tapped(example).received(Address("hospital-0", "provider"))
    assert not any(b"PublicCentre" in data[:60] for _, data in received)


def test_an_owner_may_leave_during_the_only_stage() -> None:
    example = dpdpca("masks", {"dropouts": 1}, **PAIRS, neighbours="replace")
    faults = atoll.Faults(seed=1, crash={"island-3/owner": 5})
    result = run_study(example.study, example.own, engine=atoll.LocalEngine(faults=faults)).result
    assert result["components"].shape == (2, 4)
    assert result["n_samples"] == 30  # those of the three that stayed
