"""Columns split, attacked again: rows of two alignments, a scale for one owner, a cluster that is none.

``nothing`` puts back what was there before: the same run without the comparison.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.attacks.test_told_otherwise import Change, Deviating, nothing, run
from tests.support.examples import Example, learning_columns, sfpca_columns

from atoll.codec import Message
from atoll.data.island import as_islands
from atoll.errors import MessageError
from atoll.network import Network
from atoll.protocols import handshake, protocol_of
from atoll.protocols.handshake import JoinedColumns
from atoll.protocols.learning.columns import table
from atoll.protocols.learning.columns.course import Told
from atoll.protocols.learning.columns.table import Joint
from atoll.protocols.learning.encrypted import protocol as encrypted
from atoll.protocols.learning.encrypted.protocol import Scale
from atoll.runtime.engine import Outcome
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address


def one_role(example: Example, cheater: Address, change: Change) -> Outcome:
    """The example with one provider that changes its messages."""
    whole = protocol_of(example.study.protocol)
    honest = whole.roles[cheater.role]

    async def deviating(net: Network, *rest: Any) -> Any:
        return await honest(Deviating(net, change) if net.me == cheater else net, *rest)

    changed = replace(whole, roles={**whole.roles, cheater.role: deviating})
    return LocalEngine().run(changed, example.study, example.own)


# ---- rows of two alignments ----


def two_alignments(example: Example, monkeypatch: pytest.MonkeyPatch) -> Change:
    """Islands whose rows two alignments put in order, and a server that tells each the order that it has."""
    orders = {name: "one" if i else "other" for i, name in enumerate(example.islands)}
    for name, island in example.islands.items():
        monkeypatch.setattr(island, "order", orders[name])
    honest = handshake.join

    def joined(told: Any, wanted: Any) -> JoinedColumns:
        return honest({a: structs.replace(columns, order="") for a, columns in told.items()}, wanted)

    def change(to: Address, message: Message) -> Message:
        if isinstance(message, Joint | JoinedColumns):
            return structs.replace(message, order=orders.get(to.party, ""))
        return message

    monkeypatch.setattr(handshake, "join", joined)
    return change


def test_rows_of_two_alignments_were_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    example = learning_columns("least-squares-columns")
    change = two_alignments(example, monkeypatch)
    monkeypatch.setattr(table, "compare", nothing)
    found = run(example, "server", change)
    assert found.learned[Address("consumer", "consumer")].outputs["model"] is not None  # of whichever people


@pytest.mark.parametrize(
    ("example", "role"),
    [
        (lambda: learning_columns("least-squares-columns"), "server"),
        (lambda: learning_columns("least-squares-encrypted", condition_bits=6), "server"),
        (sfpca_columns, "coordinator"),
    ],
)
def test_rows_of_two_alignments_are_found_out(
    example: Any, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = example()
    with pytest.raises(MessageError, match=r"was told something else than .* about the columns and rows"):
        run(made, role, two_alignments(made, monkeypatch))


# ---- targets that differ ----


@pytest.mark.parametrize(
    "example",
    [
        lambda: learning_columns("least-squares-columns"),
        lambda: learning_columns("least-squares-encrypted", condition_bits=6),
    ],
)
def test_targets_that_differ_are_found_out(example: Any) -> None:
    """In one row: a model of two targets would be one of neither, and nobody would know."""
    made = example()
    made.islands["hospital-1"]._table.frame.loc[7, "stay"] += 1e-9
    with pytest.raises(MessageError, match="the target, which all islands must have alike, row by row"):
        run(made, "server", lambda _, message: message)


# ---- a scale for one owner ----

VICTIM = "hospital-2"
FAR = 40


def aside() -> Example:
    """The target with one island, and all columns far from zero."""
    example = learning_columns("least-squares-encrypted", condition_bits=4, y_holder="hospital-0")
    for island in example.islands.values():
        island._table.frame[island.columns[0]] += 10.0
    return example


def further(to: Address, message: Message) -> Message:
    if isinstance(message, Scale) and to.party == VICTIM:
        return structs.replace(message, exponent=message.exponent + FAR)
    return message


def test_a_scale_for_one_owner_showed_its_part_of_the_intercept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hospital-2 adds to every score, w times the mean of its column, which is in no output."""
    example = aside()
    columns = [next(iter(island.frame().items()))[1] for island in example.islands.values()]
    X, y = np.column_stack(columns), example.islands["hospital-0"].frame()["stay"].to_numpy()
    w = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    monkeypatch.setattr(encrypted, "compare", nothing)
    found = one_role(example, Address("hospital-0", "provider"), further)
    model = found.learned[Address("consumer", "consumer")].outputs["model"]
    shown = -float(model["coefficients"][0]) / 2.0**FAR
    assert shown == pytest.approx(w[2] * X[:, 2].mean(), rel=1e-6)


def test_a_scale_for_one_owner_is_found_out() -> None:
    with pytest.raises(MessageError, match=r"was told something else than .* about the target's scale"):
        one_role(aside(), Address("hospital-0", "provider"), further)


# ---- k-means ----


@pytest.mark.parametrize("cluster", [-1.0, 2.0, 0.5, 2.0**62])
def test_a_row_goes_into_no_cluster_that_is_none(cluster: float) -> None:
    """All owners are told the same, so comparing finds nothing; a negative one would be another cluster."""

    def change(_: Address, message: Message) -> Message:
        if isinstance(message, Told) and message.step == 1:
            message.rows[0, 0] = cluster
        return message

    example = learning_columns("kmeans-columns", n_clusters=2)
    with pytest.raises(MessageError, match="put a row into a cluster that is none"):
        one_role(example, Address("hospital-0", "provider"), change)


# ---- columns that an island makes up ----


def test_columns_of_single_rows_say_the_others_scores_of_these_rows() -> None:
    """No deviation that anybody could notice: whoever hands in a column that is one in one row and zero
    elsewhere is told, as its coefficient, how far that row is from the others' fit."""
    example, made_up = learning_columns("least-squares-encrypted", condition_bits=12), 20
    frames = {name: island.frame() for name, island in example.islands.items()}
    y = frames["hospital-1"]["stay"].to_numpy()
    rows = pd.DataFrame(np.eye(len(y), made_up), columns=[f"of row {i}" for i in range(made_up)])
    frames["hospital-1"] = rows.assign(stay=y)
    found = run(Example(example.study, as_islands(frames)), "server", lambda _, message: message)
    part = found.learned[Address("hospital-1", "provider")].outputs["part"]["hospital-1"]
    said = [one.learns for one in protocol_of(example.study.protocol).learns(example.study)]
    assert any("makes up columns of single rows" in words for words in said)
    scores = y[:made_up] - np.ravel(part["coefficients"])  # what it has of the others' columns: nothing else

    X = np.column_stack([frames[name].drop(columns="stay") for name in ("hospital-0", "hospital-2")])
    others = np.column_stack([X, np.ones(len(X))])
    fit = np.linalg.lstsq(others[made_up:], y[made_up:], rcond=None)[0]
    np.testing.assert_allclose(scores, (others @ fit)[:made_up], atol=1e-6)
