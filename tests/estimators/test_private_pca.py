"""atoll.PCA with an epsilon: utility, options, and the ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.support.examples import Example, dpdpca, private_pppca, private_sfpca, privatelocal
from tests.support.taps import Tap

import atoll
from atoll.errors import (
    BudgetExceeded,
    DataError,
    ParameterError,
    PartyLeft,
    PrivacyError,
    PrivacyWarning,
    RangeOverflow,
    StudyError,
)
from atoll.network import Network
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import Crowd
from atoll.protocols import protocol_of
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own, owned
from atoll.runtime.execute import run_study
from atoll.runtime.replay import replay
from atoll.study.address import Address

OPTIONS = {"protocol": "dpdpca", "epsilon": 1.0, "delta": 1e-5, "row_norm": 1.0}
NOT_PRIVATE = {"epsilon": None, "delta": None, "row_norm": None}
CENTRED = {"assume_centered": True}


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    rows = load_digits().data
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def islands(rows: np.ndarray, n: int = 10) -> dict[str, np.ndarray]:
    return {f"ward-{i}": rows[i::n] for i in range(n)}


def captured(components: np.ndarray, rows: np.ndarray) -> float:
    covariance = np.cov(rows.T)
    best = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return float(np.trace(components @ covariance @ components.T) / best)


@pytest.mark.parametrize("protocol", ["dpdpca", "pppca"])
def test_with_a_huge_epsilon_it_is_the_pca_of_the_same_normalised_rows(
    digits: np.ndarray, protocol: str
) -> None:
    rows = digits[:, 20:28] + 0.1
    fitted = atoll.PCA(3, protocol=protocol, epsilon=5000.0, delta=1e-5, row_norm=2.0).fit(islands(rows, 3))
    centred = rows - fitted.mean_
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit / len(rows))
    assert np.abs(fitted.mean_ - rows.mean(axis=0)).max() < 1e-3
    assert np.abs(fitted.explained_variance_ - values[::-1][:3]).max() < 1e-3
    assert np.abs(np.abs(np.sum(fitted.components_ * vectors.T[::-1][:3], axis=1)) - 1).max() < 1e-3
    assert fitted.n_samples_ == len(rows)
    assert fitted.variances_of_ == "normalised rows"


def test_utility_is_that_of_the_rehearsal(digits: np.ndarray) -> None:
    plan = dp.Plan(64, 1.0, 1.0, 1e-5, crowd=Crowd(10, 1))
    tables = list(islands(digits).values())
    expected = [
        captured(rehearse(plan, tables, bytes([s]) * 32).spectrum.components[:5], digits) for s in range(5)
    ]
    got = [captured(atoll.PCA(5, **OPTIONS).fit(islands(digits)).components_, digits) for _ in range(3)]
    assert min(expected) > 0.95
    assert abs(np.mean(got) - np.mean(expected)) < 0.02


def test_other_forms_give_components_too(digits: np.ndarray) -> None:
    tables = islands(digits[:, 20:28], 4)
    for more in (
        {"rows": "clip"},
        {"neighbours": "replace"},
        {"noise": "local"},
        {"delta": None, "epsilon": 50.0},
    ):
        fitted = atoll.PCA(2, **(OPTIONS | more)).fit(tables)
        assert fitted.components_.shape == (2, 8)
        assert np.allclose(fitted.components_ @ fitted.components_.T, np.eye(2))
    assert atoll.PCA(None, **OPTIONS).fit(tables).components_.shape == (8, 8)
    replaced = atoll.PCA(2, **OPTIONS, neighbours="replace").fit(tables)
    assert replaced.n_samples_ == len(digits)  # public there


def test_rows_that_are_known_to_be_centred_are_taken_as_they_are(digits: np.ndarray) -> None:
    rows = digits[:, 20:28] - 0.1
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit / len(rows))
    for protocol in ("dpdpca", "pppca"):
        options = OPTIONS | CENTRED | {"protocol": protocol, "epsilon": 5000.0, "row_norm": 2.0}
        fitted = atoll.PCA(3, **options).fit(islands(rows, 3))
        assert not fitted.mean_.any()
        assert np.abs(fitted.explained_variance_ - values[::-1][:3]).max() < 1e-3
        assert np.abs(np.abs(np.sum(fitted.components_ * vectors.T[::-1][:3], axis=1)) - 1).max() < 1e-3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"row_norm": None}, "needs row_norm, a public bound"),
        ({"epsilon": None}, "needs an epsilon"),
        ({"epsilon": -1.0}, "epsilon must be a positive number"),
        ({"delta": 2.0}, "delta must lie strictly between"),
        ({"colluders": 0}, "at least 1 must be assumed"),
        ({"colluders": 4}, "leave nobody whose noise counts"),
        ({"noise": "central"}, "take it away from published components"),
        ({"noise": "laplace"}, "is not possible here"),
        ({"standardize": True}, "standardize=True cannot be used"),
        ({"protocol": "pppca", "standardize": True}, "standard deviation"),
        ({"protocol": "pppca", "calibration": "paper"}, "calibration='paper' cannot be used"),
        ({"protocol": "pppca", "epsilon": None}, "cannot be used"),
        ({"protocol": "meta"}, "cannot be used"),
        ({"dropouts": 1}, "dropouts=1 cannot be used"),
        ({"ledger": 3}, "ledger must be a path"),
        ({"assume_centered": "yes"}, "assume_centered='yes' must be True or False"),
        (
            {"protocol": "meta"} | NOT_PRIVATE | CENTRED,
            "assume_centered=True cannot be used with protocol='meta'",
        ),
        ({"protocol": "pppca"} | NOT_PRIVATE | CENTRED, "assume_centered=True cannot be used"),
        ({"protocol": "privatelocal", "row_norm": None} | CENTRED, "assume_centered=True cannot be used"),
        (
            {"calibration": "paper", "secure_sum": "paillier"} | CENTRED,
            "assume_centered=True cannot be used",
        ),
        ({"calibration": "paper", "secure_sum": "paillier", "ledger": "x"}, "ledger='x' cannot be used"),
    ],
)
def test_options_that_cannot_be_private_are_refused(digits: np.ndarray, options: dict, said: str) -> None:
    with pytest.raises((ParameterError, StudyError), match=said):
        atoll.PCA(2, **(OPTIONS | options)).fit(islands(digits[:40, 20:24], 4))


def test_the_published_form_warns(digits: np.ndarray) -> None:
    paper = atoll.PCA(2, **OPTIONS, calibration="paper", secure_sum="paillier")
    with pytest.warns(PrivacyWarning, match="not differentially private as stated"):
        paper.fit(islands(digits[:, 20:24], 3))
    assert paper.n_samples_ == len(digits)


def test_projections_are_not_released_with_an_epsilon() -> None:
    from msgspec import structs

    example = private_pppca()
    study = structs.replace(example.study, release={"scores": ("consumer",)})
    with pytest.raises(StudyError, match="images of single rows"):
        atoll.LocalEngine().run(protocol_of("pppca"), study, example.own)


# ---- the ledger ----


def test_a_named_ledger_books_every_fit_under_the_declared_identity(
    digits: np.ndarray, tmp_path: Path
) -> None:
    path, rows = tmp_path / "ledger.sqlite", digits[:60, 20:24]
    tables = {
        name: atoll.Island.from_array(part, identity=f"{name}-2024")
        for name, part in islands(rows, 3).items()
    }
    with Ledger.create(path) as ledger:
        for name in tables:
            ledger.set_budget(f"{name}-2024", 9.0, 1e-5)
    first = atoll.PCA(2, **OPTIONS, ledger=path).fit(tables)
    assert first.result_.booked == "booked in the ledger"
    assert first.privacy_spent_["ward-0"].identity == "ward-0-2024"
    assert first.privacy_spent_["ward-0"].spent.epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)
    changed = {
        name: atoll.Island.from_array(part + 0.01, identity=f"{name}-2024")
        for name, part in islands(rows, 3).items()
    }
    second = atoll.PCA(2, **OPTIONS, ledger=path).fit(changed)
    assert 1.3 < second.privacy_spent_["ward-0"].spent.epsilon(1e-5) < 2.0
    with Ledger(path) as ledger:
        debits = ledger.debits("ward-0-2024")
    assert len({debit.release_id for debit in debits}) == 2
    assert {debit.state for debit in debits} == {"settled"}
    assert debits[0].fingerprint != debits[-1].fingerprint


def test_a_list_of_arrays_does_not_say_which_data_sets_they_are(digits: np.ndarray, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "l").close()
    with pytest.raises(ParameterError, match="does not say which data set it is"):
        atoll.PCA(2, **OPTIONS, ledger=tmp_path / "l").fit([digits[:20, 20:24], digits[20:40, 20:24]])


@pytest.mark.parametrize("build", [dpdpca, private_pppca, private_sfpca])
def test_an_island_over_budget_stops_the_run_before_anything_leaves_it(build: Callable[[], Example]) -> None:
    example, tap = build(), Tap()
    names = list(example.islands)
    with Ledger() as ledger:
        for name, island in example.islands.items():
            island.identity = f"{name}-data"
            ledger.set_budget(f"{name}-data", 9.0, 1e-5)
        ledger.set_budget(f"{names[1]}-data", 4.0, 1e-5)
        with pytest.raises(
            BudgetExceeded, match=rf"{names[1]}: data set '{names[1]}-data'.* from 0 to 5, over .* 4 "
        ):
            atoll.LocalEngine().run(
                protocol_of(example.study.protocol), example.study, example.booked(ledger).own, observer=tap
            )
        role = "owner" if build is dpdpca else "provider"
        assert tap.outboxes[Address(names[1], role)] == []
        assert ledger.debits() == []  # nobody else paid for a run that could not be


TINY = {"epsilon": 1e-8, "delta": 1e-12}  # noise that no grid holds


@pytest.mark.parametrize("build", [dpdpca, private_pppca, private_sfpca, privatelocal])
def test_what_cannot_be_released_is_refused_before_it_is_paid_for(
    build: Callable[[], Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    from msgspec import structs

    study, first = build().study, next(iter(build().islands.values()))
    rows = first.features(first.columns)

    def paid(error: type[Exception], said: str, table: np.ndarray, **parameters: float) -> set[str]:
        """Who was debited by a run that is refused for this reason."""
        island = atoll.Island.from_array(
            table, name=first.name, columns=first.columns if first.named else None
        )
        asked = structs.replace(study, parameters=study.parameters | parameters)
        tables = build().islands | {first.name: island}
        with Ledger() as ledger:
            for name, each in tables.items():
                each.identity = name
                ledger.set_budget(name, 9.0, 1e-5)
            with pytest.raises(error, match=said):
                atoll.LocalEngine().run(protocol_of(study.protocol), asked, owned(tables, ledger))
            return {debit.identity for debit in ledger.debits()}

    assert first.name not in paid(ParameterError, "grid units", rows, **TINY)
    assert first.name not in paid(DataError, "a missing value", np.full_like(rows, np.nan))
    monkeypatch.setattr(grid, "MAX_ROWS", 40)  # the true number of rows would take long to make
    assert first.name not in paid(RangeOverflow, "rows, and the grid holds", np.vstack([rows] * 4))


def test_rows_that_are_no_numbers_when_they_are_read_again_are_refused_before_they_are_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table is read more than once, and a file may have changed since it was looked at first."""
    example = private_sfpca()
    name, island = next(iter(example.islands.items()))
    rows = island.features(island.columns).copy()
    rows[3, 1] = np.inf
    columns = island.columns if island.named else None
    example.islands[name] = atoll.Island.from_array(rows, name=name, columns=columns)
    monkeypatch.setattr("atoll.protocols.pca.sfpca.ranges.check_table", lambda _: None)
    paid: set[str] = set()
    made_from = Booking.made_from

    async def reserved(booked: Booking, net: Network, table: Any) -> None:
        paid.add(net.me.party)
        await made_from(booked, net, table)

    monkeypatch.setattr(Booking, "made_from", reserved)
    with pytest.raises(DataError, match="row 3 holds a value that is not a finite number"):
        atoll.LocalEngine().run(protocol_of("sfpca"), example.study, example.own)
    assert name not in paid


@pytest.mark.parametrize("build", [dpdpca, private_pppca, private_sfpca, privatelocal])
def test_a_role_is_not_resumed_on_a_table_that_changed(build: Callable[[], Example]) -> None:
    example, tap = build(), Tap()
    protocol = protocol_of(example.study.protocol)
    with Ledger() as ledger:
        for name, island in example.islands.items():
            island.identity = name
            ledger.set_budget(name, 9.0, 1e-5)
        atoll.LocalEngine().run(protocol, example.study, example.booked(ledger).own, observer=tap)
        name, island = next(iter(example.islands.items()))
        address = next(a for a in tap.records if a.party == name)
        record, inbox = tap.records[address].drawn, tap.inboxes[address]
        rows = island.features(island.columns).copy()
        rows[-1] += 0.5
        columns = island.columns if island.named else None
        changed = atoll.Island(rows, name=name, columns=columns, identity=name)
        with pytest.raises(PrivacyError, match="its rows are not those that this release was debited for"):
            replay(protocol, example.study, address, Own(changed, ledger), record, inbox)
        again = replay(protocol, example.study, address, Own(island, ledger), record, inbox)
        assert again[1] == tap.outboxes[address]
        assert ledger.account(name).releases == 1


KILLED = """
import os, signal, sys
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of
from atoll.runtime.execute import run_study
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from tests.support.examples import dpdpca

class Killer(Observer):
    left = int(sys.argv[2])
    def sent(self, sender, receiver, data):
        if sender.role == "owner" and b"ShareSum" in bytes(data[:40]):
            with open(sys.argv[3], "a") as log:
                log.write(sender.party + "\\n")
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

example = dpdpca()
ledger = Ledger.create(sys.argv[1])
for name, island in example.islands.items():
    island.identity = name
    ledger.set_budget(name, 9.0, 1e-5)
LocalEngine().run(protocol_of("dpdpca"), example.study, example.booked(ledger).own, observer=Killer())
"""


@pytest.mark.parametrize("sends", [15, 22, 25])
def test_a_run_killed_at_any_message_never_released_without_a_debit(sends: int, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}"}
    book, log = tmp_path / "ledger.sqlite", tmp_path / "released"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, book, str(sends), log],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    released = set(log.read_text().split()) if log.exists() else set()
    with Ledger(book) as ledger:
        assert released <= {debit.identity for debit in ledger.debits() if debit.state == "settled"}
    assert released or sends == 15


def test_an_owner_may_leave_during_the_first_stage_and_not_later() -> None:
    def without(message: int) -> atoll.Result:
        example = dpdpca("masks", {"dropouts": 1})
        faults = atoll.Faults(seed=1, crash={"island-3/owner": message})
        return run_study(example.study, example.own, engine=atoll.LocalEngine(faults=faults)).result

    assert without(5)["components"].shape == (2, 4)
    with pytest.raises(PartyLeft, match="island-3 left after an earlier sum was opened"):
        without(11)
