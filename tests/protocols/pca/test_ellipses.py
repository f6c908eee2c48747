"""Ellipses: right to their rounding, sent to whom the study names, and refused for few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, meta, pppca, pppca_ellipses, private_pppca, table

from atoll.codec import Decoder, Message
from atoll.errors import AtollError, DataError, MessageError, StudyError
from atoll.protocols import check_study, protocol_of, resolve
from atoll.protocols.pca.pppca.ellipses import Ellipse, ellipse_of, joined
from atoll.protocols.pca.pppca.outputs import given, outsiders
from atoll.protocols.pca.pppca.parameters import PPPCAParameters
from atoll.review.study import review_study
from atoll.runtime.engine import Observer
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address

NORTH = Address("north", "provider")


class Inboxes(Observer):
    """Every message, by its receiver."""

    def __init__(self, example: Example) -> None:
        self._decoder = Decoder[Message](protocol_of("pppca").all_messages(example.study))
        self.of: dict[str, list[Message]] = {}
        self.from_: dict[str, list[Message]] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self._decoder.decode(data)
        self.of.setdefault(str(receiver), []).append(message)
        self.from_.setdefault(str(sender), []).append(message)


def tapped(example: Example) -> tuple[Inboxes, Any]:
    tap = Inboxes(example)
    return tap, LocalEngine().run(protocol_of("pppca"), example.study, example.own, observer=tap)


def changed(example: Example, **parameters: Any) -> Example:
    study = structs.replace(example.study, parameters={**example.study.parameters, **parameters})
    return Example(study, example.islands)


def test_an_ellipse_is_that_of_the_islands_own_projections() -> None:
    plain = pppca()
    projected = run_study(changed(plain, n_components=3).study, plain.own).result["scores"]
    found = run_study(pppca_ellipses().study, plain.own).result["ellipses"]
    assert list(found) == list(projected)
    for island, rows in projected.items():
        told, deviation = found[island], rows.std(axis=0, ddof=1)
        np.testing.assert_allclose(told["deviation"], deviation, rtol=0.005)
        slack = 0.0051 * (deviation + np.abs(rows.mean(axis=0)))
        assert (np.abs(told["mean"] - rows.mean(axis=0)) <= slack).all()
        np.testing.assert_allclose(told["correlation"], np.corrcoef(rows.T), atol=0.0051)


def test_ellipses_reach_those_whom_the_study_names_and_hold_rounded_numbers_alone() -> None:
    tap, outcome = tapped(pppca_ellipses())
    got = {who: [m for m in box if isinstance(m, Ellipse)] for who, box in tap.of.items()}
    # A provider needs no message to know its own.
    due = {"hospital-1/provider": 2, "consumer/consumer": 3}
    assert {who: len(box) for who, box in got.items() if box} == due
    for told in got["consumer/consumer"]:
        assert [len(part) for part in (told.mean, told.deviation, told.correlation)] == [3, 3, 3]
        assert [float(f"{value:.2e}") for value in told.deviation] == told.deviation.tolist()
        hundredths = 100 * told.mean / told.deviation
        np.testing.assert_allclose(hundredths, np.round(hundredths), atol=1e-9)
        np.testing.assert_allclose(100 * told.correlation, np.round(100 * told.correlation), atol=1e-9)
    for address, learned in outcome.learned.items():
        assert ("ellipses" in learned.outputs) == (str(address) in due)
        assert "ellipses" not in learned.inherent


def test_many_tables_have_the_same_ellipse() -> None:
    """In doubles a mean along two components tells the rows of small whole numbers; rounded it does not."""
    rows = np.round(10 * table(40))
    directions = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 2)))[0]
    first = ellipse_of(rows @ directions)
    others = 0
    for row in range(40):
        for column in range(4):
            changed_by_one = rows.copy()
            changed_by_one[row, column] += 1
            assert not np.array_equal(
                (changed_by_one @ directions).mean(axis=0), (rows @ directions).mean(axis=0)
            )
            told = ellipse_of(changed_by_one @ directions)
            others += all(
                np.array_equal(getattr(told, part), getattr(first, part))
                for part in ("mean", "deviation", "correlation")
            )
    assert others > 10


def test_rows_that_do_not_vary_and_one_component_have_an_ellipse_too() -> None:
    still = ellipse_of(np.full((30, 2), 1.25))
    assert still.mean.tolist() == [1.25, 1.25]
    assert still.deviation.tolist() == [0.0, 0.0]
    assert still.correlation.tolist() == [0.0]
    # Rows that are equal but for their last bits say three digits, not all.
    assert ellipse_of(np.full((30, 2), 1.23456)).mean == pytest.approx([1.23, 1.23], rel=1e-9)
    assert ellipse_of(table(30)[:, :1]).correlation.shape == (0,)
    assert ellipse_of(np.random.default_rng(0).normal(size=(50, 9))).mean.shape == (5,)


def test_an_island_of_few_rows_refuses_before_anything_leaves_it() -> None:
    example = changed(pppca_ellipses(), ellipse_rows=14)
    assert [island.n_rows for island in example.islands.values()] == [14, 13, 13]
    tap = Inboxes(example)
    with pytest.raises(DataError, match=r"hospital-[12]: the table has 13 rows, and .* at least 14"):
        LocalEngine().run(protocol_of("pppca"), example.study, example.own, observer=tap)
    assert set(tap.from_) <= {"hospital-0/provider"}
    # Without ellipses the same island takes part.
    release = {"explained_variance": ("consumer",)}
    parameters = {k: v for k, v in example.study.parameters.items() if k != "ellipse_rows"}
    run_study(structs.replace(example.study, release=release, parameters=parameters), example.own)


def test_twenty_rows_are_the_least_unless_the_study_says_otherwise() -> None:
    study = pppca_ellipses().study
    unsaid = {k: v for k, v in study.parameters.items() if k != "ellipse_rows"}
    assert resolve(structs.replace(study, parameters=unsaid)).parameters["ellipse_rows"] == 20
    assert resolve(study).parameters["ellipse_rows"] == 10
    assert "ellipse_rows" not in resolve(pppca().study).parameters
    with pytest.raises(DataError, match="at least 20"):
        run_study(structs.replace(study, parameters=unsaid), pppca_ellipses().own)


@pytest.mark.parametrize(
    ("example", "said"),
    [
        (changed(pppca_ellipses(), ellipse_rows=9), "ellipse_rows=9 is too few"),
        (changed(pppca(), ellipse_rows=20), "no ellipses are released"),
        (changed(meta(), ellipse_rows=20), "no ellipses are released"),
    ],
)
def test_what_cannot_be_asked_is_refused(example: Example, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        check_study(protocol_of(example.study.protocol), example.study)


def test_with_an_epsilon_there_are_none_and_the_server_gets_none() -> None:
    study = private_pppca().study
    study = structs.replace(study, release={**study.release, "ellipses": ("provider",)})
    with pytest.raises(StudyError, match="'ellipses' has no private form"):
        check_study(protocol_of("pppca"), study)
    study = structs.replace(pppca_ellipses().study, release={"ellipses": ("server",)})
    with pytest.raises(StudyError, match="cannot release 'ellipses' to 'server'"):
        check_study(protocol_of("pppca"), study)


def test_the_review_says_what_ellipses_reveal_and_to_whom() -> None:
    review = review_study(pppca_ellipses().study)
    by_role = {role.role: role for role in review.roles}
    for role in ("provider", "consumer"):
        said = " ".join((*by_role[role].learns, *by_role[role].caveats))
        assert "the ellipse of every island: its own mean and covariance along the first components" in said
        assert "it has at least 10 of them" in said
        assert "the components they give the island's own mean and covariance as far as those reach" in said
    (output,) = [one for one in review.outputs if one.output == "ellipses"]
    assert output.released_to == ("hospital-1/provider", "consumer/consumer")
    assert "ellipse" not in " ".join(review_study(pppca().study).roles[0].learns)


def test_components_that_providers_need_for_ellipses_count_as_given_to_them() -> None:
    """Whoever projects has the components; whether these say the covariance is asked for them too."""
    study = pppca_ellipses().study
    assert {str(a) for a in outsiders(study)} == {f"hospital-{i}/provider" for i in range(3)}
    p = study.read_parameters(PPPCAParameters)
    quiet = structs.replace(study, release={"ellipses": ("hospital-1",)})
    assert given(quiet, p).variances
    with pytest.raises(AtollError, match="covariance"):
        run_study(changed(pppca_ellipses(), accept_determined=False).study, pppca_ellipses().own)


RIGHT = Ellipse(np.zeros(2), np.ones(2), np.zeros(1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"mean": np.zeros(3)},
        {"mean": np.array([0.0, np.nan])},
        {"deviation": np.array([1.0, -1.0])},
        {"deviation": np.ones(2, np.float32)},
        {"correlation": np.array([1.5])},
        {"correlation": np.zeros(2)},
    ],
)
def test_an_ellipse_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    assert list(joined({NORTH: RIGHT}, 2, ("north",))["ellipses"]) == ["north"]
    with pytest.raises(MessageError, match="north/provider sent"):
        joined({NORTH: structs.replace(RIGHT, **wrong)}, 2, ("north",))


@pytest.mark.parametrize("k", [0, 1_000_000_000])
def test_an_ellipse_has_as_many_axes_as_can_be_drawn(k: int) -> None:
    with pytest.raises(MessageError, match=f"north/provider sent an ellipse along {k} components"):
        joined({NORTH: RIGHT}, k, ("north",))
