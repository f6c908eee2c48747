"""A curator that deviates: owners who pay for nothing, two trees, models that hurt whoever draws from them.

``nothing`` puts back what would be there without a comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_told_otherwise import changing, nothing, run
from tests.support.examples import synthesis
from tests.support.lying import lying

from atoll.codec import Message
from atoll.errors import MessageError, StudyError
from atoll.protocols import booking, resolve
from atoll.protocols.synthesis import marginal, models, release
from atoll.protocols.synthesis.marginal import Tree
from atoll.protocols.synthesis.release import SyntheticModel
from atoll.runtime.execute import run_study
from atoll.secure_sums.shares import Shares, ShareSum
from atoll.study.address import Address

CURATOR = Address("curator", "curator")


@pytest.mark.parametrize("protocol", ["ppca-synthesis", "marginal-synthesis"])
def test_owners_know_that_all_tables_fit_before_they_pay(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the secure sum waits for: one bad table must not cost the others their budget."""
    told, paid = dict[str, list[str]](), list[str]()
    compare, settle = release.compare, booking.Booking.settle

    async def comparing(net: Any, about: str, *rest: Any) -> None:
        await compare(net, about, *rest)
        told.setdefault(str(net.me), []).append(about)

    def settling(self: Any, stage: str) -> None:
        assert [about[0] for about in told.values()] == ["that all tables fit the schema"] * 3
        paid.append(stage)
        settle(self, stage)

    monkeypatch.setattr(release, "compare", comparing)
    monkeypatch.setattr(booking.Booking, "settle", settling)
    example = synthesis(protocol)
    run_study(example.study, example.own)
    assert len(paid) >= 3


@pytest.mark.parametrize("protocol", ["ppca-synthesis", "marginal-synthesis"])
def test_a_sum_leaves_after_it_was_paid_for(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends in between has spent, and released nothing; never the other way round."""
    paid: list[tuple[str, str]] = []
    settle, contribute = booking.Booking.settle, Shares.contribute

    def settling(self: Any, stage: str) -> None:
        settle(self, stage)
        paid.append((self._own.table.name, stage))

    async def contributing(self: Any, stage: str, values: Any) -> None:
        assert (self.net.me.party, stage) in paid
        await contribute(self, stage, values)

    monkeypatch.setattr(booking.Booking, "settle", settling)
    monkeypatch.setattr(Shares, "contribute", contributing)
    example = synthesis(protocol)
    run_study(example.study, example.own)
    assert len(paid) == (6 if protocol == "marginal-synthesis" else 3)


# ---- two trees ----

CHAIN, STAR = ((0, 1), (1, 2), (2, 3)), ((1, 0), (1, 3), (1, 2))


def sums_left(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rounds of which owners sent parts."""
    left: list[str] = []

    def note(sender: Address, receiver: Address, message: Message) -> Message:
        if isinstance(message, ShareSum) and receiver == CURATOR:
            left.append(message.block)
        return message

    lying(monkeypatch, note)
    return left


def two_trees(to: Address, message: Message) -> Message:
    return Tree(CHAIN if to.party == "hospital-0" else STAR) if isinstance(message, Tree) else message


def test_tables_of_two_trees_were_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise shares are as wide as the own tree asks for: too narrow, if the others' tree is a cheaper one."""
    monkeypatch.setattr(marginal, "compare", nothing)
    left = sums_left(monkeypatch)
    with pytest.raises(MessageError, match="a block of shape"):  # too late: the sums have left
        run(synthesis("marginal-synthesis"), "curator", two_trees)
    assert [block for block in left if block.startswith("tables")]


def test_two_trees_are_found_out_before_a_second_sum_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    left = sums_left(monkeypatch)
    with pytest.raises(MessageError, match=r"was told something else than .* about the tree"):
        run(synthesis("marginal-synthesis"), "curator", two_trees)
    assert not [block for block in left if block.startswith("tables")]
    assert left


# ---- models ----


def other(**fields: Any) -> Any:
    return changing(SyntheticModel, values=lambda model: {**model, **fields})


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"kind": "pickle"}, "not one of the study's columns"),
        ({"sizes": [3, 2, 4]}, "not one of the study's columns"),
        ({"count": 1e18}, "a number of rows that cannot be"),
        ({"count": "many"}, "a number of rows that cannot be"),
        ({"values": {}}, "no row can be drawn from"),
        ({"kind": "tree"}, "no row can be drawn from"),
        ({"kind": "tree", "values": {"edges": [[0, 9]], "tables": np.ones(4)}}, "no row can be drawn from"),
        (
            {"kind": "latent-classes", "values": {"theta": np.ones((2, 3)), "pi": np.ones(2)}},
            "no row can be drawn",
        ),
        (
            {"kind": "latent-classes", "values": {"theta": np.zeros((2, 11)), "pi": np.ones(2)}},
            "no row can be drawn",
        ),
        ({"kind": "gaussian"}, "no row can be drawn from"),
        ({"noise_variance": float("nan")}, "a model that is not finite"),
    ],
)
def test_a_model_that_nobody_can_draw_from_is_refused(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(MessageError, match=f"curator/curator sent .*{wrong}"):
        run(synthesis(), "curator", other(**fields))


def test_a_model_of_a_table_that_no_memory_holds_is_refused() -> None:
    """Of forty columns of four cells the largest entropy is a table of 4^40 numbers, made to draw rows."""
    sizes = [4] * 40
    bomb = {"kind": "maximum-entropy", "sizes": sizes, "count": 60.0, "values": {"numbers": np.ones(3)}}
    with pytest.raises(MessageError, match="no row can be drawn from"):
        models.check(bomb, sizes, CURATOR)


@pytest.mark.parametrize("protocol", ["ppca-synthesis", "marginal-synthesis"])
@pytest.mark.parametrize(("secure_sum", "options"), [("lattice", {"key": "server"}), ("paillier", {})])
def test_an_owner_that_adds_up_for_the_curator_is_refused(
    protocol: str, secure_sum: str, options: dict[str, str]
) -> None:
    """Together they open single inputs, each with only its share of the noise."""
    study = structs.replace(synthesis(protocol).study, secure_sum=secure_sum, sum_options=options)
    with pytest.raises(StudyError, match="the secure sum withstands 0"):
        resolve(study)


def test_a_model_has_the_cells_of_the_studys_columns_and_no_table_that_fits_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Any] = []
    monkeypatch.setitem(models.SAMPLERS, "maximum-entropy", lambda *given: drawn.append(given))
    model = {"kind": "maximum-entropy", "sizes": [2, 3], "count": 10.0, "values": {}}
    models.check(model, (2, 3), CURATOR)
    assert len(drawn) == 1
    with pytest.raises(MessageError, match="not one of the study's columns"):
        models.check(model, (3, 2), CURATOR)
    wide = (1000,) * 6
    with pytest.raises(MessageError, match="no row can be drawn from"):
        models.check({**model, "sizes": list(wide)}, wide, CURATOR)
    assert len(drawn) == 1
