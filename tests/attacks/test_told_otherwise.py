"""A server or coordinator that tells providers something else than the study says, or two different things.

The forms of 0.1.0 are put back by switching off single checks: each attack works there, and is refused now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, frames, pppca, sfpca, sfpca_columns
from tests.support.lying import lying

from atoll import fixedpoint
from atoll.codec import Message
from atoll.data.island import Island
from atoll.errors import AtollError, MessageError
from atoll.network import Network
from atoll.protocols import handshake, protocol_of
from atoll.protocols.handshake import AgreedColumns, JoinedColumns
from atoll.protocols.pca.pppca import outputs
from atoll.protocols.pca.pppca.told import JointMean, Transfer
from atoll.protocols.pca.sfpca.messages import DataRange, Names, RowCounts
from atoll.runtime.engine import Outcome
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.shares import ShareSum
from atoll.study.address import Address

Change = Callable[[Address, Any], Message]


class Deviating(Network):
    """A role's network that changes what the role sends."""

    def __init__(self, net: Network, change: Change) -> None:
        self.me, self._net, self._change = net.me, net, change

    async def send(self, to: Address, message: Message) -> None:
        await self._net.send(to, self._change(to, message))

    async def next(self, kind: Any, senders: Iterable[Address], *, absent: Any = None) -> Any:
        return await self._net.next(kind, senders, absent=absent)

    async def compute(self, step: Any, *args: object) -> Any:
        return await self._net.compute(step, *args)


def run(example: Example, role: str, change: Change) -> Outcome:
    """The example with one role that changes its messages."""
    protocol = protocol_of(example.study.protocol)
    honest = protocol.roles[role]

    async def deviating(net: Network, *rest: Any) -> Any:
        return await honest(Deviating(net, change), *rest)

    changed = replace(protocol, roles={**protocol.roles, role: deviating})
    return LocalEngine().run(changed, example.study, example.own)


def changing(kind: type[Message], to: str | None = None, **fields: Any) -> Change:
    """Other fields in every message of a kind (to one party); callables are given the old value."""

    def change(receiver: Address, message: Message) -> Message:
        if not isinstance(message, kind) or (to is not None and receiver.party != to):
            return message
        new = {name: v(getattr(message, name)) if callable(v) else v for name, v in fields.items()}
        return structs.replace(message, **new)

    return change


async def nothing(*_: Any, **__: Any) -> None: ...


# ---- columns ----


def of_two_columns() -> Example:
    example = pppca()
    parameters = {
        "n_components": 1,
        "columns": ("age", "dose"),
        "label": "outcome",
        "accept_determined": True,
    }
    return Example(structs.replace(example.study, parameters=parameters), example.islands)


def test_a_server_got_the_covariance_of_a_column_that_the_study_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake, "check_agreed", lambda *_: None)
    outcome = run(of_two_columns(), "server", changing(AgreedColumns, names=("age", "weight")))
    found = outcome.learned[Address("server", "server")].inherent["covariance"]
    rows = np.vstack([frame[["age", "weight"]] for frame in frames().values()])
    np.testing.assert_allclose(found, np.cov(rows.T), rtol=1e-12)


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (("age", "weight"), "for the column 'weight', which was not announced"),
        (("age", "outcome"), "for the column 'outcome', which was not announced"),
        (("age", "dose", "stay"), "for the column 'stay', which was not announced"),
        (("age", "age"), "twice for the column 'age'"),
        (("dose", "age"), "for its columns in another order than was agreed"),
    ],
)
def test_other_columns_than_the_studys_are_refused_before_a_table_is_read(
    names: tuple[str, ...], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    blocks = Island.blocks

    def reading(island: Island, columns: Any, rows: int | None = None) -> Any:
        read.append(island.name)
        return blocks(island, columns, rows)

    monkeypatch.setattr(Island, "blocks", reading)
    Island.from_array([[1.0]], name="probe").features(["x0"])
    assert read == ["probe"]  # nothing is read in another way
    with pytest.raises(MessageError, match=f"server/server asks hospital-2 {wrong}") as refused:
        run(of_two_columns(), "server", changing(AgreedColumns, "hospital-2", names=names))
    assert refused.value.role == "hospital-2/provider"
    assert "hospital-2" not in read


def test_a_column_left_out_is_refused() -> None:
    with pytest.raises(MessageError, match="server/server leaves out the column 'dose' of hospital-0"):
        run(of_two_columns(), "server", changing(AgreedColumns, "hospital-0", names=("age",)))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("meta", "server"), ("pppca-private", "server"), ("dpdpca-shares", "proxy")),
        *(("dpdpca-paper", "proxy"), ("privatelocal", "data_user"), ("sfpca", "coordinator")),
    ],
)
def test_every_protocol_checks_the_columns_it_is_asked_for(name: str, role: str) -> None:
    twice = changing(AgreedColumns, names=lambda names: (*names[:-1], names[0]))
    with pytest.raises(MessageError, match=r"asks \S+ twice for the column '(x0|age)'"):
        run(EXAMPLES[name](), role, twice)


@pytest.mark.parametrize(("example", "role"), [(pppca, "server"), (sfpca, "coordinator")])
def test_two_orders_of_the_columns_are_found_out(example: Callable[[], Example], role: str) -> None:
    """Where the study names no columns, the order is the first island's, and the others cannot know it."""
    built = example()
    last = list(built.islands)[-1]
    with pytest.raises(MessageError, match=r"was told something else than .* about the columns"):
        run(built, role, changing(AgreedColumns, last, names=lambda names: names[::-1]))


def test_columns_without_names_keep_their_order_even_if_all_are_told_the_same() -> None:
    """Nobody could tell afterwards which column a component's entry belongs to."""
    turned = changing(AgreedColumns, names=lambda names: names[::-1])
    with pytest.raises(MessageError, match="for its columns in another order than was agreed"):
        run(EXAMPLES["dpdpca-shares"](), "proxy", turned)


@pytest.mark.parametrize(
    ("to", "fields", "wrong"),
    [
        ("island-0", {"widths": (1, 2, 1)}, "says that island-0 has 1 columns; it has 2"),
        ("island-0", {"widths": (2, 2)}, "sent island-0 numbers of columns that do not fit"),
        (
            "island-0",
            {"names": ("dose", "age", "weight", "stay")},
            "puts 'dose' in the place of the column 'age' of island-0",
        ),
        ("island-0", {"names": ("age", "dose", "age", "stay")}, "asks island-0 twice for the column 'age'"),
        ("island-0", {"named": False}, "says that island-0 has"),
        ("island-1", {"names": ("age", "dose", "x", "stay")}, "puts 'x' in the place of the column 'weight'"),
        ("island-1", {"names": ("a", "dose", "weight", "stay")}, "was told something else"),
    ],
)
def test_islands_that_hold_columns_find_theirs_in_their_place(to: str, fields: Any, wrong: str) -> None:
    with pytest.raises(MessageError, match=wrong):
        run(sfpca_columns(), "coordinator", changing(JoinedColumns, to, **fields))


# ---- PPPCA's joint mean and components ----

OFF = 1e6


def shifted(mean: np.ndarray) -> np.ndarray:
    return mean + np.array([OFF, 0.0, 0.0, 0.0])


def test_another_mean_for_one_provider_gave_its_rows_and_column_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    totals: list[np.ndarray] = []

    def seen(total: Any, n: int, d: int) -> np.ndarray:
        totals.append(fixedpoint.decode(total))
        return np.eye(d)

    monkeypatch.setattr("atoll.protocols.pca.pppca.told.compare", nothing)
    monkeypatch.setattr("atoll.protocols.pca.pppca.protocol.covariance", seen)
    monkeypatch.setattr("atoll.protocols.pca.pppca.protocol.check_transfer", lambda *_: None)
    outcome = run(pppca(), "server", changing(JointMean, "hospital-1", mean=shifted))
    mean = outcome.learned[Address("server", "server")].inherent["mean"]
    residual, scatter = totals[0][:4], totals[0][4:]
    n = -residual[0] / OFF
    assert round(n) == len(frames()["hospital-1"]) == 13
    # The victim's own sums about the joint mean stand beside the shift, in the first row of the triangle.
    about = np.array([(n * OFF**2 - scatter[0]) / (2 * OFF), *(-scatter[1:4] / OFF)])
    truth = frames()["hospital-1"].iloc[:, :4].sum()
    np.testing.assert_allclose(about + n * mean, truth, rtol=1e-3, atol=1e-3)


def test_another_mean_for_one_provider_is_found_out() -> None:
    with pytest.raises(MessageError, match=r"was told something else than .* about the joint mean"):
        run(pppca(), "server", changing(JointMean, "hospital-1", mean=shifted))


@pytest.mark.parametrize(
    ("kind", "fields", "wrong"),
    [
        (JointMean, {"n": 13}, "sent 13 as the number of all rows to one who has 14 of them"),
        (JointMean, {"n": 2**48}, "sent 281474976710656 as the number of all rows"),
        (JointMean, {"islands": ("hospital-0",)}, "sent a list of islands that are not those whose sum"),
        (JointMean, {"mean": lambda m: m * np.nan}, "sent a joint mean that holds missing or infinite"),
        (JointMean, {"mean": lambda m: m[:3]}, r"sent a joint mean of shape \(3,\)"),
        (Transfer, {"components": lambda c: 2 * c}, "sent components that are not orthonormal"),
        (Transfer, {"components": lambda c: c[:1]}, r"sent components of shape \(1, 4\) .* where 2 x 4"),
        (Transfer, {"scale": None}, "sent no divisors"),
        (Transfer, {"scale": lambda s: s / 1e3}, "sent divisors that are smaller than the rows here"),
        (Transfer, {"scale": lambda s: -s}, "sent divisors that are not all positive"),
    ],
)
def test_numbers_that_cannot_be_are_refused(kind: type[Message], fields: Any, wrong: str) -> None:
    with pytest.raises(MessageError, match=f"server/server {wrong}"):
        run(pppca(), "server", changing(kind, **fields))


# ---- SF-PCA's row counts and range ----


@pytest.mark.parametrize(
    ("to", "counts", "wrong"),
    [
        ("island-0", (7, 13, 13), "sent 7 as the number of rows of island-0, which has 14"),
        ("island-0", (14, 13), "sent 2 numbers of rows for 3 islands"),
        ("island-0", (14, -1, 13), "sent -1 as the number of rows of island-1"),
        ("island-0", (14, 0, 13), "sent no rows for island-1"),
        ("island-0", (14, 2**50, 13), "as the number of rows of island-1"),
        ("island-0", (14, 12, 13), "was told something else than .* about the columns and rows"),
    ],
)
def test_row_counts_are_everybodys_own(to: str, counts: tuple[int, ...], wrong: str) -> None:
    with pytest.raises(MessageError, match=wrong):
        run(sfpca(), "coordinator", changing(RowCounts, to, n=counts))


@pytest.mark.parametrize(
    ("to", "exponents", "wrong"),
    [
        (None, (-3,), r"sent a range to island-\d that the values of column 'age' exceed"),
        (None, (65,), "sent a range that is not 1 of the levels"),
        (None, (3, 3), "sent a range that is not 1 of the levels"),
        ("island-2", (9,), "was told something else than .* about the range of the data"),
    ],
)
def test_a_range_covers_the_islands_own_values(
    to: str | None, exponents: tuple[int, ...], wrong: str
) -> None:
    with pytest.raises(MessageError, match=wrong):
        run(sfpca(), "coordinator", changing(DataRange, to, exponents=exponents))


def test_a_consumer_is_told_the_studys_columns_and_no_others() -> None:
    """Entries of a component read as those of another column; in another order nobody could tell."""
    named = sfpca(columns=("age", "dose", "weight"))
    with pytest.raises(MessageError, match="components of other columns than the study's") as refused:
        run(named, "coordinator", changing(Names, columns=("age", "dose", "stay")))
    assert refused.value.role == "consumer/consumer"


def test_a_provider_refuses_what_would_be_determined_also_if_the_server_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server looks first, and here it looks away; no second moment leaves an island for that."""
    example, left = pppca(), list[str]()
    parameters = {**example.study.parameters, "n_components": 3, "accept_determined": False}
    honest, looked = outputs.check_outputs, list[int]()

    def looks_away(*given: Any) -> None:
        looked.append(1)
        if len(looked) > 1:
            honest(*given)

    def note(_: Address, __: Address, message: Message) -> Message:
        if isinstance(message, ShareSum):
            left.append(message.block)
        return message

    monkeypatch.setattr(outputs, "check_outputs", looks_away)
    lying(monkeypatch, note)
    study = structs.replace(example.study, parameters=parameters)
    with pytest.raises(AtollError, match=r"covariance|correlation") as caught:
        LocalEngine().run(protocol_of("pppca"), study, example.own)
    assert str(caught.value.role).endswith("/provider")
    assert set(left) == {"sums#0"}
