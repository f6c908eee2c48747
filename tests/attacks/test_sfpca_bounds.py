"""Values beyond their bounds would outgrow their masks: whoever has them stops before anything leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.sfpca_runs import direct, encrypted, strict

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.data.island import as_islands
from atoll.errors import RangeOverflow
from atoll.estimators.base import parties
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca import messages, protocol
from atoll.protocols.pca.sfpca.recipes import direct as direct_recipe
from atoll.protocols.pca.sfpca.recipes.columns import Split
from atoll.protocols.pca.sfpca.recipes.moments import Moments
from atoll.protocols.pca.sfpca.recipes.vertical import check_norm
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Study


class Sent(Observer):
    """The kinds of messages that each party sent."""

    def __init__(self, kinds: tuple[type[Message], ...]) -> None:
        self.decoder = Decoder[Message](kinds)
        self.by: dict[str, set[str]] = defaultdict(set)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.by[sender.party].add(type(self.decoder.decode(bytes(data))).__name__)


@pytest.mark.parametrize("recipe", ["direct", "strict"])
def test_rows_beyond_the_declared_range_leave_no_trace(recipe: str) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.uniform(-1, 1, (80, 46)))
    wrong = rows.copy()
    wrong.iloc[7, 3] = 1.25
    islands = as_islands({"north": rows, "south": wrong})
    study = Study(
        name="beyond",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator"),
        parameters={"n_components": 2, "recipe": recipe, "bounds": 1.0, "accept_determined": True},
        release={"components": ("provider",)},
    )
    sent = Sent(protocol.PROTOCOL.all_messages(study))
    with pytest.raises(RangeOverflow, match=r"south: column .* beyond its declared range"):
        LocalEngine().run(protocol.PROTOCOL, study, owned(islands), observer=sent)
    # Its column names: not even the number of its rows, nor a part of a key.
    assert sent.by["south"] == {"Columns"}


def bigger_gram(own: Moments) -> Moments:
    return own._replace(G=own.G * 4)


def one_large_entry(own: Moments) -> Moments:
    G = own.G.copy()
    G[0, 1] = G[1, 0] = 2 * max(G[0, 0], G[1, 1])
    return own._replace(G=G)


def smaller_squares(own: Moments) -> Moments:
    return own._replace(squares=own.squares // 4)


def larger_sums(own: Moments) -> Moments:
    return own._replace(u=own.u + (3 * own.n << 58))


LIES: dict[str, Callable[[Moments], Moments]] = {
    "second moments": bigger_gram,
    "one entry": one_large_entry,
    "squares": smaller_squares,
    "sums": larger_sums,
}
RECIPES: dict[str, Any] = {"direct": direct, "strict": strict}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("lie", LIES)
def test_sums_that_no_rows_have_are_never_encrypted(lie: str, recipe: str) -> None:
    async def lying(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        if inputs.moments is not None and inputs.me.startswith("p1"):
            inputs = inputs._replace(moments=LIES[lie](inputs.moments))
        return await RECIPES[recipe](machine, inputs, 1, receivers)

    rows = np.random.default_rng(2).uniform(-1, 1, (60, 6))
    sent = Sent(messages.MESSAGES)
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        encrypted(lying, [rows[:30], rows[30:]], observer=sent)
    # What is compared so far are the seeds, and promises of key parts.
    assert sent.by["p1"] <= {"SeedPart", "Compared", "KeyParts"}


def test_the_library_refuses_what_slips_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the check of the sums not there: entries are checked once more where they are encoded."""
    monkeypatch.setattr(direct_recipe, "check_moments", lambda *_: None)

    async def lying(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        if inputs.moments is not None and inputs.me.startswith("p1"):
            inputs = inputs._replace(moments=inputs.moments._replace(G=inputs.moments.G * 2**12))
        return await direct(machine, inputs, 1, receivers)

    rows = np.random.default_rng(2).uniform(-1, 1, (60, 6))
    sent = Sent(messages.MESSAGES)
    with pytest.raises(RangeOverflow):
        encrypted(lying, [rows[:30], rows[30:]], observer=sent)
    # Its sums u are in order and were encrypted; the product with G, and hence any share of it, never left.
    assert sent.by["p1"] <= {"SeedPart", "Compared", "KeyParts", "EncryptedShare"}


def test_entries_are_checked_where_they_are_encoded() -> None:
    ring = go.rings()["wide4"]
    layout = go.Layout(4, 4, 4, 4, 4, 4)
    inside, beyond = (go.from_ints(np.full((4, 4), value), 1) for value in ((1 << 20) - 1, 1 << 20))
    secret = go.Secret(ring, b"s" * 32)
    go.Right(ring, inside, 20, layout)
    secret.encrypt(inside, 20, 10, layout, b"c" * 32, b"e" * 32)
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        go.Right(ring, beyond, 20, layout)
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        secret.encrypt(beyond, 20, 10, layout, b"c" * 32, b"e" * 32)


def test_columns_that_are_longer_than_the_total_variance_are_refused() -> None:
    """Their masks are made for columns of length one, however little longer these are."""
    table = np.full((4, 1), 0.5)
    check_norm(Split(4, ("a",), (1,), 0, {"a": table}), 1.0)
    with pytest.raises(RangeOverflow, match="longer than the total variance allows"):
        check_norm(Split(4, ("a",), (1,), 0, {"a": table}), 1.01)
