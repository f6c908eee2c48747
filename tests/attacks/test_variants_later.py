"""A coordinator that lies in a later step, when rows are projected on components that nobody knows.

The shares of a run are used again under new keys: what providers compare in a run they must compare here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.lying import lying

import atoll
from atoll import codec
from atoll.crypto import products as go
from atoll.crypto.identity import Identity
from atoll.errors import MessageError, ParameterError, RangeOverflow
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca import messages as m
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import later_study, own_share
from atoll.runtime.nats import kept as sealed
from atoll.runtime.nats.site import Site
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address

ROWS = np.random.default_rng(5).normal(size=(96, 4)) * [8, 4, 2, 1]


@pytest.fixture(scope="module")
def model() -> Any:
    pca = atoll.PCA(2, protocol="sfpca", release="encrypted", bounds=64.0, accept_determined=True)
    return pca.fit({"north": ROWS[:32], "south": ROWS[32:64], "west": ROWS[64:]}).encrypted_


def other_counts(*rows: int) -> Callable[[Any], Any]:
    return lambda _: m.RowCounts(rows)


def other_bytes(message: Any) -> Any:
    """The first residue of every limb one larger, or smaller."""
    body = bytearray(message.body)
    body[0] ^= 1
    return structs.replace(message, body=bytes(body))


def no_bytes(message: Any) -> Any:
    return structs.replace(message, body=bytes(len(message.body)))


def other_seeds(message: Any) -> Any:
    return mm.SessionSeed((*message.seeds[:2], bytes(32)))


NOBODY, WITHOUT_ROWS = frozenset[str](), frozenset({"west"})
LIES: dict[str, tuple[type, str | None, Callable[[Any], Any], type, frozenset[str]]] = {
    # What is lied about, to whom, how, what must not have left by then, and from whom it may have.
    "the owner's own number": (m.RowCounts, "north", other_counts(9, 8, 0), mm.SeedPart, NOBODY),
    "fewer rows of another": (m.RowCounts, "south", other_counts(4, 8, 0), mm.SeedPart, NOBODY),
    "rows of one that has none": (m.RowCounts, "north", other_counts(5, 8, 3), mm.SeedPart, NOBODY),
    "no rows of another": (m.RowCounts, "north", other_counts(5, 0, 0), mm.SeedPart, NOBODY),
    "rows in a second block": (m.RowCounts, "west", other_counts(5, 1200, 0), mm.SeedPart, NOBODY),
    "seeds": (mm.SessionSeed, "north", other_seeds, mm.KeyParts, NOBODY),
    "key parts": (mm.AllKeyParts, "south", no_bytes, mm.SecondHalves, NOBODY),
    # "west" has no rows, is sent no components and cannot check them: its share, under its mask, may leave
    # before it hears of it. The others' do not, and one share opens nothing.
    "the components, to who multiplies": (
        mm.EncryptedMatrix,
        "north",
        other_bytes,
        mm.MaskedShare,
        frozenset({"west"}),
    ),
    "no components": (mm.EncryptedMatrix, None, no_bytes, mm.MaskedShare, WITHOUT_ROWS),
    "second halves, to all": (mm.SecondHalves, None, other_bytes, mm.MaskedShare, NOBODY),
    "second halves, to one": (mm.SecondHalves, "west", other_bytes, mm.MaskedShare, NOBODY),
    "a masked total": (mm.MaskedTotal, None, other_bytes, mm.ReleasedShare, NOBODY),
}


@pytest.mark.parametrize("what", LIES)
def test_a_lie_in_a_later_step_is_found_out(what: str, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, to, say, none, may = LIES[what]
    left: list[tuple[str, type]] = []

    def lie(sender: Any, receiver: Any, message: Any) -> Any:
        told = isinstance(message, kind) and to in (None, receiver.party)
        if not told:
            left.append((sender.party, type(message)))
        return say(message) if told else message

    lying(monkeypatch, lie)
    # A masked total with another residue is wider than its masks, even before it is compared.
    with pytest.raises((MessageError, RangeOverflow)):
        model.project({"north": ROWS[:5], "south": ROWS[32:40]})
    assert {party for party, sent in left if sent is none} <= may


def test_nothing_in_a_later_opening_passes_through_the_coordinator(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares go from provider to provider: there is nothing that it could change, and nothing it sees."""
    met: set[tuple[str, str]] = set()

    def lie(sender: Any, receiver: Any, message: Any) -> Any:
        met.add((sender.role, receiver.role))
        return message

    first = model.open(to="north")
    lying(monkeypatch, lie)
    np.testing.assert_array_equal(model.open(to="north")["components"], first["components"])
    assert met == {("provider", "provider")}


# ---- kept shares ----


def test_all_shares_but_one_islands_are_far_wider_than_what_they_hide(model: Any) -> None:
    """The coordinator's holds nothing; without any one island's the others' sum is 2^50 times a component."""
    kept = {a: codec.decode(model.share_of(a), Kept) for a in model._shares}
    for words, fraction in (("components", "components_fraction"), ("offset", "offset_fraction")):
        shares = {a: go.to_ints(np.array(getattr(one, words))) for a, one in kept.items()}
        unit = 1 << getattr(next(iter(kept.values())), fraction)
        for missing, own in shares.items():
            rest = sum(share for a, share in shares.items() if a != missing)
            widths = sorted(abs(int(value)) // unit for value in rest.flat)
            if missing.role == "coordinator":
                assert not own.any()
                assert widths[-1] < 64
            else:
                assert widths[len(widths) // 2] > 1 << 50


def test_a_sealed_share_is_of_its_run_and_role_and_whole(model: Any, tmp_path: Path) -> None:
    site, key = Site.make(tmp_path / "site"), Identity.new()
    share = model.share_of(Address("north", "provider"))
    sealed.keep(site.kept, key.public, "run", "provider", share)
    path = site.kept / "run" / "provider.sealed"
    assert sealed.find(site.kept, key, model.session) == {"provider": share}
    assert share[100:140] not in path.read_bytes()
    whole = path.read_bytes()
    for at in (0, len(whole) // 2, len(whole) - 1):  # flipped
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ParameterError, match="kept no share"):
            sealed.find(site.kept, key, model.session)
    path.write_bytes(whole)
    path.rename(path.with_name("coordinator.sealed"))  # as another role's
    with pytest.raises(ParameterError, match="kept no share"):
        sealed.find(site.kept, key, model.session)


def test_a_share_that_somebody_else_put_there_is_of_another_holder(model: Any) -> None:
    """A seal is made with a public key: what it holds still has to be this role's own."""
    north, south = Address("north", "provider"), Address("south", "provider")
    study = later_study(model.study, model.session, {"components": ("provider",)})
    assert own_share(Own(kept={"provider": model.share_of(north)}), study, north).holder == str(north)
    with pytest.raises(MessageError, match="another session or another role"):
        own_share(Own(kept={"provider": model.share_of(south)}), study, north)
    other = later_study(model.study, bytes(32), {"components": ("provider",)})
    with pytest.raises(MessageError, match="another session or another role"):
        own_share(Own(kept={"provider": model.share_of(north)}), other, north)
