"""Learning on secure sums: a server that tells islands different things, and where numbers come from.

What islands add depends on a point that the server chooses. If it could tell two islands different points, it
could make all but one add nothing; with the comparison put out, it does so here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.attacks.test_told_otherwise import Change, Deviating, changing, nothing, run
from tests.support.examples import EXAMPLES, Example, description, learning
from tests.support.learning_examples import descent
from tests.support.taps import Tap

from atoll import fixedpoint
from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import DataError, MessageError, RunError
from atoll.network import Network
from atoll.protocols import protocol_of
from atoll.protocols.fields import AgreedFields, Fields
from atoll.protocols.handshake import Columns
from atoll.protocols.learning import describe, rows
from atoll.protocols.learning.classifier import Classifier
from atoll.protocols.learning.design import REASONS, Survey, Units
from atoll.protocols.learning.glm import GLM
from atoll.protocols.learning.kmeans import KMeans
from atoll.protocols.learning.least_squares import LeastSquares
from atoll.protocols.learning.normal import packed
from atoll.protocols.learning.rows import Count, Fit, Model, Point
from atoll.protocols.learning.summary import Summary
from atoll.protocols.learning.task import Setting
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.shares import ShareSum
from atoll.study.address import Address

SERVER = Address("server", "server")
LAST = "hospital-3"


def shifted(values: np.ndarray) -> np.ndarray:
    return np.asarray(values) + np.eye(len(values))[0]


def observed(example: Example, change: Change) -> tuple[Exception, Tap]:
    """The error of a run with a server that changes its messages, and everything that moved until then."""
    protocol, tap = protocol_of(example.study.protocol), Tap()
    honest = protocol.roles["server"]

    async def deviating(net: Network, *rest: Any) -> Any:
        return await honest(Deviating(net, change), *rest)

    changed = replace(protocol, roles={**protocol.roles, "server": deviating})
    with pytest.raises(MessageError) as refused:
        LocalEngine().run(changed, example.study, example.own, observer=tap)
    return refused.value, tap


def opened(example: Example, tap: Tap) -> dict[str, np.ndarray]:
    """What the sums say that reached the server, by the name of the round."""
    decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
    parts: dict[str, list[Any]] = defaultdict(list)
    for _, data in tap.received(SERVER):
        message = decoder.decode(data)
        if isinstance(message, ShareSum):
            parts[message.block.rsplit("#", 1)[0]].append(np.array(message.body))
    whole = {name: bodies for name, bodies in parts.items() if len(bodies) == len(example.islands)}
    return {name: fixedpoint.decode(reduce(fixedpoint.add, bodies)) for name, bodies in whole.items()}


# ---- two islands are told different things ----


@pytest.mark.parametrize(
    ("change", "about", "added"),
    [
        (changing(AgreedFields, LAST, names=lambda names: names[::-1]), "the columns", set()),
        (changing(Units, LAST, centre=shifted), "the number of rows and the units", {"survey"}),
        (
            changing(Units, LAST, unit=lambda unit: unit * 2.0),
            "the number of rows and the units",
            {"survey"},
        ),
        (changing(Units, LAST, n=lambda n: n + 1), "the number of rows and the units", {"survey"}),
        (changing(Point, LAST, values=lambda v: None if v is None else shifted(v)), "point 0", {"survey"}),
        (changing(Point, LAST, values=None), "point 0", {"survey"}),
    ],
)
def test_two_accounts_are_found_out_before_anything_is_added(
    change: Change, about: str, added: set[str]
) -> None:
    example = learning("classifier")
    example = Example(
        structs.replace(example.study, parameters={"target": "outcome", "columns": None}), example.islands
    )
    error, tap = observed(example, change)
    assert "was told something else than" in str(error)
    assert f"about {about}" in str(error)
    assert set(opened(example, tap)) == added


@pytest.mark.parametrize("protocol", ["glm", "least-squares", "classifier", "kmeans"])
def test_every_kind_compares_its_points(protocol: str) -> None:
    example = learning(protocol)
    for step in range(1 if protocol == "least-squares" else 2):

        def change(to: Address, message: Message, step: int = step) -> Message:
            if isinstance(message, Point) and message.step == step and to.party == LAST:
                return structs.replace(message, values=shifted(message.values))
            return message

        error, tap = observed(example, change)
        assert f"about point {step}" in str(error)
        assert set(opened(example, tap)) == {"survey", *(f"point {i}" for i in range(step))}


def test_two_centres_of_a_description_are_found_out() -> None:
    example = description()
    error, tap = observed(example, changing(describe.Centres, LAST, values=shifted))
    assert "about the means" in str(error)
    assert set(opened(example, tap)) == {"counts"}


def test_without_the_comparison_one_islands_curvature_comes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other islands are told a point at which every row is certain: they add nothing."""
    monkeypatch.setattr(rows, "compare", nothing)
    seen: list[tuple[np.ndarray, Setting]] = []

    def watching(task: Classifier, total: np.ndarray) -> None:
        seen.append((total, task.setting))
        raise RunError("enough seen")

    monkeypatch.setattr(Classifier, "advance", watching)
    example = learning("classifier")

    def saturate(to: Address, message: Message) -> Message:
        if isinstance(message, Point) and to.party != "hospital-0":
            values = np.array(message.values)
            values[0] = 1e5  # the intercept
            return structs.replace(message, values=values)
        return message

    with pytest.raises(RunError, match="enough seen"):
        run(example, "server", saturate)
    total, setting = seen[0]
    X = example.islands["hospital-0"].features(["age", "dose", "weight"])
    Z = np.column_stack([np.ones(len(X)), (X - setting.units.centre[:-1]) / setting.units.unit[:-1]])
    np.testing.assert_allclose(total[-10:], packed(Z.T @ Z / 4.0), rtol=1e-12)


# ---- messages that cannot be ----


def in_point(change: Any) -> Change:
    return changing(Point, values=lambda v: None if v is None else change(np.array(v)))


def put(place: int, value: float) -> Any:
    def change(values: np.ndarray) -> np.ndarray:
        values[place] = value
        return values

    return change


@pytest.mark.parametrize(
    ("protocol", "change", "wrong"),
    [
        ("glm", in_point(lambda v: v[:-1]), r"a point of shape \(6,\)"),
        ("classifier", in_point(lambda v: v.reshape(1, -1)), r"a point of shape \(1, 5\)"),
        ("kmeans", in_point(lambda v: v.astype(np.float32)), "float32"),
        ("least-squares", in_point(lambda v: np.append(v, 0.0)), r"a point of shape \(2,\)"),
        ("glm", in_point(put(0, np.nan)), "missing or infinite"),
        ("classifier", in_point(put(1, np.inf)), "missing or infinite"),
        ("glm", in_point(put(-1, 0.5)), "a point that cannot be"),
        ("glm", in_point(put(-1, 0.0)), "a point that cannot be"),  # with a dispersion of 0
        ("classifier", in_point(put(-1, 1.0)), "a point that cannot be"),
        ("kmeans", in_point(put(-1, 2.0)), "a point that cannot be"),
        ("glm", changing(Point, step=lambda step: step + 1), "is at point 1 where 0 was due"),
        ("glm", changing(Units, unit=lambda u: u * 3.0), "not powers of two"),
        ("glm", changing(Units, unit=lambda u: -u), "not all positive"),
        ("glm", changing(Units, centre=lambda c: c * np.nan), "missing or infinite"),
        ("glm", changing(Units, centre=lambda c: c[:-1]), "centres of shape"),
        ("glm", changing(Units, n=3), "3 as the number of all rows to one who has"),
        ("glm", changing(Units, n=1 << 60), "as the number of all rows"),
        (
            "classifier",
            changing(AgreedFields, levels={"outcome": ("ill",)}),
            "leaves out levels of 'outcome'",
        ),
        ("classifier", changing(AgreedFields, levels={}), "levels of other columns"),
        (
            "classifier",
            changing(AgreedFields, levels={"outcome": ("ill", "well", *map(str, range(1000)))}),
            "1,002 levels of 'outcome'",
        ),
        (
            "glm",
            changing(AgreedFields, names=("age", "dose", "outcome")),
            "other columns than were announced",
        ),
        ("glm", changing(AgreedFields, names=("age", "dose", "dose")), "other columns than were announced"),
        (
            "glm",
            changing(Model, values=lambda v: v | {"coefficients": v["coefficients"] * np.nan}),
            "a model",
        ),
        ("glm", changing(Fit, values=lambda v: v | {"deviance": np.inf}), "a fit that is not finite"),
        ("glm", changing(Count, n_samples=-1), "numbers of rows that cannot be"),
        ("glm", changing(Count, dropped=dict.fromkeys(REASONS, -1)), "numbers of rows that cannot be"),
        ("glm", changing(Count, dropped={"north": 3}), "numbers of rows that cannot be"),
        ("glm", changing(Count, islands=("hospital-0",)), "a list of islands"),
    ],
)
def test_a_message_that_cannot_be_is_refused(protocol: str, change: Change, wrong: str) -> None:
    with pytest.raises(MessageError, match=wrong):
        run(learning(protocol), "server", change)


def test_more_points_than_the_study_allows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def endless(net: Network, study: Any, record: Any, task: Any, sums: Any) -> None:
        for step in range(1000):
            await net.broadcast(study.who("provider"), Point(step, task.start()))
            asked.append(step)
            await sums.total(f"point {step}", task.longest)

    monkeypatch.setattr(rows, "_lead", endless)
    with pytest.raises(MessageError, match="more points than the study allows"):
        run(learning("kmeans", max_iter=1, n_clusters=2), "server", lambda _, message: message)
    assert max(asked) == 13  # three for each step and ten more, counted from 0: the next one is refused


def test_an_honest_server_that_does_not_settle_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KMeans, "advance", lambda task, _: task.start())
    with pytest.raises(RunError, match="did not settle within 13 sums"):
        run(learning("kmeans", max_iter=1, n_clusters=2), "server", lambda _, message: message)


def test_an_island_refuses_a_model_of_as_many_coefficients_as_rows() -> None:
    """It believes the told number of rows, which the others compare, and no server decides otherwise."""
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(8, 9)), columns=list("abcdefghy"))
    example = learning("least-squares")
    islands = as_islands({f"hospital-{i}": frame[2 * i : 2 * i + 2] for i in range(4)})
    study = structs.replace(example.study, parameters={"target": "y"})
    with pytest.raises(DataError, match="the islands together: 8 rows for 9 coefficients"):
        run(Example(study, islands), "server", lambda _, message: message)
    with pytest.MonkeyPatch.context() as patch:
        honest = rows._refuse_few_rows
        patch.setattr(
            rows, "_refuse_few_rows", lambda n, k, who: None if "together" in who else honest(n, k, who)
        )
        with pytest.raises(DataError, match=r"hospital-\d: 8 rows for 9 coefficients"):
            run(Example(study, islands), "server", lambda _, message: message)


# ---- where the numbers come from ----

FAMILIES = {"gaussian": "stay", "binomial": "ill", "poisson": "visits", "gamma": "cost"}


def of_family(family: str) -> Example:
    example = learning("glm")
    tables = {}
    for name, island in example.islands.items():
        X = island.features(["age", "dose", "weight", "stay"])
        frame = pd.DataFrame(X, columns=["age", "dose", "weight", "stay"])
        frame["ill"] = (np.sin(np.arange(len(X)) * 2.0) + 0.3 * X[:, 0] > 0).astype(float)
        frame["visits"] = np.round(np.abs(X[:, 1]) * 2.0)
        frame["cost"] = np.exp(X[:, 2] * 0.2) + 0.5
        tables[name] = frame
    link = {"link": "log"} if family == "gamma" else {}
    said = {"columns": ("age", "dose"), "target": FAMILIES[family], "family": family, **link}
    return Example(structs.replace(example.study, parameters=said), as_islands(tables))


def of_classes(target: str) -> Example:
    """Two classes without a penalty, which have a table; several share a softmax."""
    example = of_family("binomial")
    said: dict[str, Any] = {"columns": ("age", "dose"), "target": target}
    said |= {"C": None} if target == "ill" else {}
    study = structs.replace(example.study, protocol="classifier", analysis="classification", parameters=said)
    return Example(study, example.islands)


CASES: dict[str, tuple[Any, Any]] = {
    **{family: (lambda family=family: of_family(family), GLM) for family in FAMILIES},
    **{
        penalty: (lambda penalty=penalty: learning("least-squares", penalty=penalty, alpha=0.1), LeastSquares)
        for penalty in ("none", "l2", "l1")
    },
    **{
        loss: (lambda loss=loss: learning("classifier", loss=loss), Classifier)
        for loss in ("logistic", "squared_hinge", "hinge")
    },
    "kmeans": (lambda: learning("kmeans", n_clusters=2), KMeans),
    "logistic, no penalty": (lambda: of_classes("ill"), Classifier),
    "softmax": (lambda: of_classes("visits"), Classifier),
}


@pytest.mark.parametrize("case", CASES)
def test_every_released_number_follows_from_named_secure_sums(case: str) -> None:
    """The server's inbox holds column names and masked sums; what these open gives the result, bit by bit."""
    build, kind = CASES[case]
    example = build()
    protocol, tap = protocol_of(example.study.protocol), Tap()
    outcome = LocalEngine().run(protocol, example.study, example.own, observer=tap)
    decoder = Decoder[Message](protocol.all_messages(example.study))
    received = {type(decoder.decode(data)) for _, data in tap.received(SERVER)}
    assert received == {Fields, ShareSum}
    sums = opened(example, tap)
    assert list(sums) == ["survey", *(f"point {i}" for i in range(len(sums) - 1))]
    provider = Address("hospital-0", "provider")
    told = [decoder.decode(data) for _, data in tap.received(provider)]
    agreed = next(m for m in told if isinstance(m, AgreedFields))
    common = next(m for m in told if isinstance(m, Units))
    p = example.study.read_parameters(protocol.parameters)
    classes = agreed.levels.get(p.target or "", ())
    setting = Setting(p, agreed.names, classes, common, getattr(p, "fit_intercept", False))
    first = sums["survey"]
    task = kind(setting, Survey.of(first))
    task.start()
    ends = [task.advance(sums[f"point {i}"]) is None for i in range(len(sums) - 1)]
    assert ends == [False] * (len(ends) - 1) + [True]
    consumer = outcome.learned[Address("consumer", "consumer")].outputs
    again = task.found()
    for name, values in (("model", again.model), ("fit", again.fit)):
        assert values.keys() == consumer[name].keys()
        for key, value in values.items():
            np.testing.assert_array_equal(value, consumer[name][key], err_msg=key)
    assert consumer["n_samples"] == round(first[0]) == 60
    if "covariance" in again.fit:  # and the printed table from nothing but these
        known = {"model": again.model, "fit": again.fit, "n_samples": 60, "n_dropped": 0}
        known |= {"dropped": dict(zip(REASONS, Survey.of(first).left_out, strict=True))}
        again_summary = Summary.of(known | {"islands": consumer["islands"]})
        assert again_summary.as_dict() == Summary.of(consumer).as_dict()
        assert str(again_summary) == str(Summary.of(consumer))


def test_every_number_of_a_descent_follows_from_named_secure_sums() -> None:
    """The model, step by step, and the cost of every step, from the sums that the server opens alone."""
    example = descent()
    protocol, tap = protocol_of("gradient-descent"), Tap()
    outcome = LocalEngine().run(protocol, example.study, example.own, observer=tap)
    decoder = Decoder[Message](protocol.all_messages(example.study))
    assert {type(decoder.decode(data)) for _, data in tap.received(SERVER)} == {Columns, ShareSum}
    sums = opened(example, tap)
    assert list(sums) == ["rows", *(f"step {i}" for i in range(len(sums) - 1))]
    rate = example.study.parameters["learning_rate"]
    theta, curve = np.zeros(len(sums["step 0"]) - 2), []
    for cost, *gradient, rows_ in list(sums.values())[1:]:
        curve.append(cost / rows_)
        theta = theta - rate * (np.array(gradient) / rows_)
    consumer = outcome.learned[Address("consumer", "consumer")].outputs
    np.testing.assert_array_equal(consumer["model"]["coefficients"], theta)
    np.testing.assert_array_equal(consumer["fit"]["loss_curve"], curve)
    assert consumer["n_samples"] == round(sums["rows"][0])


def test_every_number_of_a_description_follows_from_two_secure_sums() -> None:
    example = description()
    protocol, tap = protocol_of("describe"), Tap()
    outcome = LocalEngine().run(protocol, example.study, example.own, observer=tap)
    sums = opened(example, tap)
    assert list(sums) == ["counts", "products"]
    p = example.study.read_parameters(protocol.parameters)
    agreed = AgreedFields(p.columns, True, dict(p.levels))
    shape = describe.Shape.of(agreed, p)
    parts = shape.apart(sums["counts"])
    again = describe.described(shape, parts, sums["products"], parts["total"] / parts["present"], p)
    released = outcome.learned[Address("consumer", "consumer")].outputs["description"]
    assert again.keys() == released.keys()
    for key in ("count", "missing", "mean", "std", "correlation"):
        np.testing.assert_array_equal(again[key], released[key])
    for key in ("rows", "numbers", "quantiles", "levels", "tables"):
        assert again[key] == released[key]


def test_the_examples_cover_every_kind_of_learning() -> None:
    assert {"glm", "least-squares", "classifier", "kmeans", "describe"} <= set(EXAMPLES)


def test_the_mean_of_very_few_values_is_told_to_nobody() -> None:
    """One patient at one island has a value: the joint mean would be it."""
    example = description()
    tables = {}
    for name, island in example.islands.items():
        tables[name] = pd.DataFrame({"age": island.features(["age"])[:, 0], "rare": np.nan})
    tables["hospital-0"].loc[0, "rare"] = 41.5
    study = structs.replace(example.study, parameters={"columns": ("age", "rare")})
    tap = Tap()
    few = Example(study, as_islands(tables))
    LocalEngine().run(protocol_of("describe"), study, few.own, observer=tap)
    decoder = Decoder[Message](protocol_of("describe").all_messages(study))
    told = [decoder.decode(data) for _, data in tap.received(Address("hospital-1", "provider"))]
    centres = next(message.values for message in told if isinstance(message, describe.Centres))
    pooled = np.concatenate([table["age"] for table in tables.values()])
    np.testing.assert_allclose(centres, [pooled.mean(), 0.0])
    released = next(m.values for m in told if isinstance(m, describe.Description))
    assert np.isnan(released["mean"][1])


def test_a_review_says_what_two_providers_learn_of_each_other() -> None:
    """And it is true: from the fit of least squares one of two has the other's products of columns."""
    example = learning("least-squares")
    two = {name: example.islands[name] for name in ("hospital-0", "hospital-1")}
    keep = {*two, "server", "consumer"}
    study = structs.replace(
        example.study,
        secure_sum="shares",
        parties=tuple(party for party in example.study.parties if party.name in keep),
        release={"model": ("provider",), "fit": ("provider",), "n_samples": ("provider",)},
    )
    protocol = protocol_of("least-squares")
    said = [d.learns for d in protocol.learns(study) if d.role == "provider"]
    assert any("with two providers: each learns the other's number of rows" in words for words in said)
    assert any("the products of the other's columns" in words for words in said)
    assert not any("two providers" in d.learns for d in protocol.learns(example.study))
    built = Example(study, two)
    known = LocalEngine().run(protocol, study, built.own).learned[Address("hospital-0", "provider")].outputs
    mine, theirs = (
        np.column_stack([np.ones(island.n_rows), island.features(["age", "dose", "weight"])])
        for island in two.values()
    )
    joint = np.linalg.inv(np.asarray(known["fit"]["covariance"]) / known["fit"]["dispersion"])
    np.testing.assert_allclose(joint - mine.T @ mine, theirs.T @ theirs, rtol=1e-8, atol=1e-8)
