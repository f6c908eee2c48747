"""A leader of prepared tables, and a server of ellipses, that swaps, invents or repeats what it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, pppca_ellipses
from tests.support.lying import lying
from tests.support.prepared_examples import ONLY_NUMBERS, prepared, wards

from atoll import fixedpoint
from atoll.codec import Message
from atoll.errors import MessageError
from atoll.protocols import protocol_of
from atoll.protocols.base import Learned
from atoll.protocols.fields import AgreedFields
from atoll.protocols.pca.pppca import protocol as pppca
from atoll.protocols.pca.pppca.ellipses import Ellipse
from atoll.protocols.pca.pppca.told import Transfer
from atoll.protocols.preparation import joint
from atoll.protocols.preparation.messages import Flat, Means, Wanted
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.shares import ShareSum
from atoll.study.address import Address

VICTIM = "island-1"


def run(example: Example) -> Any:
    return LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)


def told(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], kind: Any) -> list[str]:
    """Tell the victim alone something else; the blocks that any island sent to be added up."""
    left: list[str] = []

    def lie(_: Address, to: Address, message: Message) -> Message:
        if isinstance(message, ShareSum):
            left.append(message.block)
        return change(message) if isinstance(message, kind) and to.party == VICTIM else message

    lying(monkeypatch, lie)
    return left


@pytest.mark.parametrize(
    ("kind", "change", "about", "block"),
    [
        (AgreedFields, lambda m: structs.replace(m, names=m.names[::-1]), "the columns and levels", "counts"),
        (Wanted, lambda m: Wanted((*m.fill, 5), m.flat), "the columns whose means are due", "values"),
        (Means, lambda m: Means(m.values + 1.0), "the joint means", "differs"),
        (Flat, lambda _: Flat(()), "the columns that are flat", "sums"),
    ],
)
def test_one_island_that_is_told_something_else_adds_nothing_more(
    kind: Any, change: Any, about: str, block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the comparison the next sum would be of other columns at this island than at the others."""
    example = prepared()
    left = told(monkeypatch, change, kind)
    with pytest.raises(MessageError, match=f"was told something else than .* about {about}"):
        run(example)
    assert f"{block}#0" not in left


def test_a_level_twice_or_left_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for levels in (("a", "b", "b", "c"), ("a", "b")):
        with monkeypatch.context() as patched:
            lying(
                patched,
                lambda _, __, m, ward=levels: (
                    structs.replace(m, levels={**m.levels, "ward": ward})
                    if isinstance(m, AgreedFields)
                    else m
                ),
            )
            with pytest.raises(MessageError, match="leaves out levels of 'ward'"):
                run(prepared())


async def over(*_: Any) -> Learned:
    """A role that ends once its table is prepared."""
    return Learned()


def test_a_leader_can_wish_for_the_mean_of_a_complete_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not found out, as the threat model says: no island knows where the others have gaps. All islands are
    told the mean as well, so they see which columns were wished for."""
    decode = fixedpoint.decode

    def lied(limbs: Any) -> Any:
        counts = decode(limbs)
        if len(counts) == 7:  # rows; values of age, dose and site; where they vary
            counts[2] -= 1.0
        return counts

    seen = SimpleNamespace(decode=lied, encode=fixedpoint.encode, Limbs=fixedpoint.Limbs)
    monkeypatch.setattr(joint, "fixedpoint", seen)
    example, protocol = prepared("sfpca", ONLY_NUMBERS), protocol_of("sfpca")
    nothing_more = dict.fromkeys(protocol.roles, over)
    done = LocalEngine().run(replace(protocol, roles=nothing_more), example.study, example.own)
    frame = wards()
    for address in (example.study.the("coordinator"), *example.study.who("provider")):
        known = {**done.learned[address].outputs, **done.learned[address].inherent}["table"]
        assert known["fill"]["dose"] * (len(frame) - 1) == pytest.approx(frame["dose"].sum(), rel=1e-9)


# ---- ellipses ----


def columns_in_place_of_components(message: Any) -> Any:
    """Directions of the server's choice: the first columns themselves."""
    return structs.replace(message, components=np.eye(*message.components.shape))


async def nothing(*_: Any, **__: Any) -> None: ...


def test_other_directions_for_one_island_showed_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean and spread of single columns of one island, to a provider that is given ellipses."""
    example, seen = pppca_ellipses(), []

    def lie(me: Address, to: Address, message: Message) -> Message:
        if isinstance(message, Transfer) and to.party == "hospital-0":
            return columns_in_place_of_components(message)
        if isinstance(message, Ellipse) and me.party == "hospital-0":
            seen.append(message)
        return message

    lying(monkeypatch, lie)
    monkeypatch.setattr(pppca, "_compare_directions", nothing)
    run(example)
    island = example.islands["hospital-0"]
    rows = island.features([c for c in island.columns if c != "outcome"])[:, :3]
    correlation = np.corrcoef(rows.T)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(seen[0].correlation, correlation, atol=0.0051)


def test_other_directions_for_one_island_are_found_out_before_an_ellipse_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example, left = pppca_ellipses(), []

    def lie(_: Address, to: Address, message: Message) -> Message:
        if isinstance(message, Ellipse):
            left.append(message)
        other = isinstance(message, Transfer) and to.party == "hospital-0"
        return columns_in_place_of_components(message) if other else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=r"was told something else than .* about the components"):
        run(example)
    assert left == []


def test_the_divisors_are_compared_with_the_components(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(_: Address, to: Address, message: Message) -> Message:
        other = isinstance(message, Transfer) and to.party == "hospital-2"
        return structs.replace(message, scale=2.0 * message.scale) if other else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=r"was told something else than .* about the components"):
        run(pppca_ellipses())
