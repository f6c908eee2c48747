"""Columns split: what summed scores give away, and that encrypted least squares gives away coefficients only.

The first two tests are the reason for ``accept_scores``: they succeed, so the warning is true.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from scipy.linalg import qr
from sklearn.datasets import load_breast_cancer
from tests.attacks.test_told_otherwise import Deviating
from tests.support.examples import EXAMPLES, Example, encrypted_rows, learning_columns
from tests.support.lying import lying
from tests.support.taps import Tap, tapped

import atoll
from atoll import fixedpoint
from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import MessageError
from atoll.network import Network
from atoll.protocols import protocol_of
from atoll.protocols.learning.columns import kinds
from atoll.protocols.learning.columns.course import Told
from atoll.protocols.learning.columns.split import Due, Total
from atoll.protocols.learning.columns.table import Held, Joint, leader_of
from atoll.protocols.learning.descent.algorithm2 import Scores
from atoll.protocols.learning.rows import Fit
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.messages import OpenedMatrix, ReleasedShare
from atoll.secure_sums.shares import ShareSum
from atoll.study.address import Address


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def totals(example: Example, tap: Tap, me: Address, rows: int) -> Any:
    """The summed scores that one provider received, a column for each step."""
    decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
    heard = [decoder.decode(data) for _, data in tap.received(me)]
    return np.column_stack([np.array(m.values[:rows]) for m in heard if isinstance(m, Total)])


def fitted(X: Any, y: Any) -> tuple[Example, Tap]:
    names = [f"c{j}" for j in range(X.shape[1])]
    parts = np.array_split(np.arange(X.shape[1]), 3)
    tables = {
        f"hospital-{i}": pd.DataFrame(X[:, part], columns=[names[j] for j in part]).assign(outcome=y)
        for i, part in enumerate(parts)
    }
    example = learning_columns("classifier-columns", C=100.0, tol=0.0, max_iter=100)
    example = Example(structs.replace(example.study, release={"part": ("provider",)}), as_islands(tables))
    return example, tapped(example)


def test_the_scores_of_all_steps_span_the_others_columns() -> None:
    X, y = cancer()
    example, tap = fitted(X, y)
    S = totals(example, tap, Address("hospital-0", "provider"), len(X))
    own = np.column_stack([np.ones(len(X)), X[:, :10]])
    rank = np.linalg.matrix_rank(np.column_stack([own, S / np.linalg.norm(S, axis=0)]), tol=1e-7)
    assert rank == 31  # everything there is
    u, s, _ = np.linalg.svd(np.column_stack([own, S / np.linalg.norm(S, axis=0)]), full_matrices=False)
    known = u[:, s > 1e-9 * s[0]]
    left = X[:, 10:] - known @ (known.T @ X[:, 10:])
    assert np.linalg.norm(left) / np.linalg.norm(X[:, 10:]) < 1e-6


def test_binary_columns_of_a_third_party_come_back_exactly() -> None:
    rng = np.random.default_rng(3)
    hidden = (rng.random((300, 3)) < 0.5).astype(float)
    X = np.column_stack([rng.normal(size=(300, 6)), hidden])
    y = (X @ rng.normal(size=9) + rng.normal(size=300) > 0).astype(int)
    example, tap = fitted(X, y)
    own = np.column_stack([np.ones(300), X[:, :6]])  # two of the three islands together
    S = totals(example, tap, Address("hospital-0", "provider"), 300)
    u, s, _ = np.linalg.svd(np.column_stack([own, S / np.linalg.norm(S, axis=0)]), full_matrices=False)
    known = u[:, s > 1e-9 * s[0]]
    assert known.shape[1] == 10
    # A 0/1 vector in a known span of 10 dimensions: ten rows that decide it, and 2^10 guesses for them.
    _, _, order = qr(known.T, pivoting=True)
    rows = order[:10]
    guesses = np.array(list(product((0.0, 1.0), repeat=10)))
    words = guesses @ np.linalg.inv(known[rows]).T @ known.T
    binary = words[(np.abs(words * (words - 1)) < 1e-6).all(axis=1)].round()
    found = {tuple(word) for word in binary}
    for column in hidden.T:
        assert tuple(column) in found
    assert len(found) < 20  # of 2^300: the columns, their opposites, and the constants


KINDS = {kind.name: kind for kind in (kinds.LEAST_SQUARES, kinds.CLASSIFIER, kinds.KMEANS)}


@pytest.mark.parametrize(
    "example",
    [
        "least-squares-columns",
        "lasso-columns",
        "classifier-columns",
        "classifier-columns-held",
        "squared hinge",
        "hinge",
        "kmeans-columns",
    ],
)
def test_every_released_number_follows_from_named_sums(example: str) -> None:
    """The server's inbox holds names of columns and masked sums; these, with the target, give the fit."""
    loss = {"squared hinge": "squared_hinge", "hinge": "hinge"}.get(example)
    built = learning_columns("classifier-columns", loss=loss) if loss else EXAMPLES[example]()
    study, tap = built.study, tapped(built)
    kind, protocol = KINDS[study.protocol], protocol_of(study.protocol)
    decoder = Decoder[Message](protocol.all_messages(study))
    inbox = _server(tap, decoder)
    assert {type(m) for m in inbox} == {Held, Due, ShareSum}
    sums = opened(inbox, len(built.islands))
    p = study.read_parameters(kind.parameters)
    first = leader_of(p, study.who("provider"))
    heard = [decoder.decode(data) for _, data in tap.received(first)]
    told = [np.array(m.values) for m in heard if isinstance(m, Total)]
    assert list(sums) == [*(f"step {i}" for i in range(len(told))), *(["offsets"] if kind.offsets else [])]
    for i, values in enumerate(told):
        np.testing.assert_array_equal(values, sums[f"step {i}"])
    joint = next(m for m in heard if isinstance(m, Joint))
    leader = kind.leader(p, joint, target_of(built, first, joint))
    leader.first()
    for i in range(len(told)):
        leader.advance(sums[f"step {i}"])
    consumer = [decoder.decode(data) for _, data in tap.received(Address("consumer", "consumer"))]
    fit = next(m.values for m in consumer if isinstance(m, Fit))
    for name, value in leader.fit().items():
        np.testing.assert_array_equal(value, fit[name], err_msg=name)
    assert set(fit) - set(leader.fit()) <= {"classes"}


def opened(inbox: list[Message], islands: int) -> dict[str, Any]:
    """What the sums say that reached a role, by their names."""
    parts: dict[str, list[Any]] = defaultdict(list)
    for message in inbox:
        if isinstance(message, ShareSum):
            parts[message.block.rsplit("#", 1)[0]].append(np.array(message.body))
    assert all(len(bodies) == islands for bodies in parts.values())
    return {name: fixedpoint.decode(reduce(fixedpoint.add, bodies)) for name, bodies in parts.items()}


def target_of(example: Example, first: Address, joint: Joint) -> Any:
    name = example.study.parameters.get("target")
    if name is None:
        return None
    values = example.islands[first.party].values(name)
    if not joint.classes:
        return np.asarray(values, dtype=np.float64)
    return np.array([joint.classes.index(str(value)) for value in values], dtype=np.float64)


@pytest.mark.parametrize("protocol", ["classifier-columns", "least-squares-columns", "kmeans-columns"])
def test_a_leader_that_tells_owners_different_things_is_found_out(protocol: str) -> None:
    """Slopes that are zero for all but one owner would make the sum that one's own score."""
    example = learning_columns(protocol, **({"n_clusters": 2} if protocol == "kmeans-columns" else {}))
    whole = protocol_of(protocol)

    def change(to: Address, message: Message) -> Message:
        if isinstance(message, Told) and to.party == "hospital-2":
            return structs.replace(message, rows=np.zeros_like(message.rows) + (message.step == 0))
        return message

    honest = whole.roles["provider"]

    async def deviating(net: Network, *rest: Any) -> Any:
        return await honest(Deviating(net, change) if net.me.party == "hospital-0" else net, *rest)

    with pytest.raises(MessageError, match=r"was told something else than .* about step 0"):
        LocalEngine().run(
            replace(whole, roles={**whole.roles, "provider": deviating}), example.study, example.own
        )


def test_encrypted_least_squares_opens_the_trace_and_ones_own_coefficients_only() -> None:
    example = learning_columns("least-squares-encrypted", condition_bits=6)
    tap = tapped(example)
    decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
    for i in range(3):
        me = Address(f"hospital-{i}", "provider")
        heard = [decoder.decode(data) for _, data in tap.received(me)]
        shares = [m for m in heard if isinstance(m, ReleasedShare)]
        assert len(shares) == 2  # of its own single coefficient, from each of the others
        assert all(m.words.shape[:2] == (1, 1) for m in shares)
        opened = [m for m in heard if isinstance(m, OpenedMatrix)]
        assert len(opened) == 1
        assert opened[0].words.shape[:2] == (
            1,
            1,
        )  # one number: whether three columns decide three coefficients
    assert not any(isinstance(m, ReleasedShare) for m in _server(tap, decoder))


def _server(tap: Tap, decoder: Decoder[Message]) -> list[Message]:
    return [decoder.decode(data) for _, data in tap.received(Address("server", "server"))]


def test_two_encrypted_fits_with_one_model_look_alike_to_the_others() -> None:
    """Rows that differ but have the same coefficients give an island the same numbers, up to noise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    A -= A.mean(axis=0)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(60), rng.normal(size=(60, 3))]))
    B = Q[:, 1:] @ np.linalg.cholesky(A.T @ A).T  # other rows, same products
    w = np.array([1.0, -2.0, 0.5])
    seen = []
    for X in (A, B):
        model = atoll.LinearRegression(partition="vertical", condition_bits=6)
        model.fit([X[:, :1], X[:, 1:2], X[:, 2:]], X @ w)
        seen.append(model.parts_["island-0"]["coefficients"])
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-9)


def test_with_rows_split_too_the_coefficients_are_all_that_is_opened() -> None:
    example = encrypted_rows()
    tap = tapped(example)
    decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
    for i in range(4):
        heard = [decoder.decode(data) for _, data in tap.received(Address(f"hospital-{i}", "provider"))]
        shapes = sorted(m.words.shape[:2] for m in heard if isinstance(m, ReleasedShare))
        # The intercept and three coefficients, to whom the study names: from each of the others.
        assert shapes == ([(1, 1)] * 3 + [(3, 1)] * 3 if i == 1 else [])
        # The number of rows, and whether the scale fits.
        assert [m.words.shape[:2] for m in heard if isinstance(m, OpenedMatrix)] == [(1, 1), (1, 1)]
    assert not any(isinstance(m, ReleasedShare) for m in _server(tap, decoder))


def test_two_encrypted_fits_of_other_rows_with_one_model_look_alike() -> None:
    """An island that receives the model gets the same numbers from other rows of the others, up to noise."""
    rng = np.random.default_rng(5)
    w, mine, seen = np.array([0.7, -0.2]), rng.uniform(-0.9, 0.9, size=(30, 2)), []
    for size in (40, 70):
        others = [rng.uniform(-0.9, 0.9, size=(size, 2)) for _ in range(2)]
        tables = [mine, *others]
        model = atoll.LinearRegression(solver="encrypted", condition_bits=8)
        model.fit(tables, [X @ w + 0.05 for X in tables])
        seen.append([*model.coef_, model.intercept_])
    np.testing.assert_allclose(seen[0], [*w, 0.05], atol=1e-10)
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-10)


def test_scores_that_are_others_for_one_island_end_a_descent_before_its_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its next scores would say how its own columns answer to a direction that the mediator chose."""
    example, left = EXAMPLES["gradient-descent-columns"](), list[str]()
    victim = example.study.who("provider")[1]

    def lie(_: Address, to: Address, message: Any) -> Any:
        if isinstance(message, ShareSum):
            left.append(message.block)
        other = isinstance(message, Scores) and to == victim
        return Scores(message.step, message.values + 1.0) if other else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=r"was told something else than .* about step 0"):
        LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
    assert set(left) == {"step 0#0"}
