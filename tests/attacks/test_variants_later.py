"""A coordinator that lies in a later step, when rows are projected on components that nobody knows.

The shares of a run are used again under new keys: what providers compare in a run they must compare here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.lying import lying

import atoll
from atoll.errors import MessageError, RangeOverflow
from atoll.protocols.pca.sfpca import messages as m
from atoll.secret_matrices import messages as mm

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


def other_keys(message: Any) -> Any:
    return mm.OthersKeyParts(tuple(tuple(bytes(len(p)) for p in parts) for parts in message.parts))


def other_seeds(message: Any) -> Any:
    return mm.SessionSeed((*message.seeds[:2], bytes(32)))


LIES: dict[str, tuple[type, str | None, Callable[[Any], Any], type, int]] = {
    # What is lied about, to whom, how, and what must not have left by then, or how often.
    "the owner's own number": (m.RowCounts, "north", other_counts(9, 8, 0), mm.SeedPart, 0),
    "fewer rows of another": (m.RowCounts, "south", other_counts(4, 8, 0), mm.SeedPart, 0),
    "rows of one that has none": (m.RowCounts, "north", other_counts(5, 8, 3), mm.SeedPart, 0),
    "no rows of another": (m.RowCounts, "north", other_counts(5, 0, 0), mm.SeedPart, 0),
    "rows in a second block": (m.RowCounts, "west", other_counts(5, 1200, 0), mm.SeedPart, 0),
    "seeds": (mm.SessionSeed, "north", other_seeds, mm.KeyParts, 0),
    "key parts": (mm.OthersKeyParts, "south", other_keys, mm.SecondHalves, 0),
    "the components, to who multiplies": (mm.EncryptedMatrix, "north", other_bytes, mm.MaskedShare, 0),
    "no components": (mm.EncryptedMatrix, None, no_bytes, mm.MaskedShare, 0),
    "second halves, to all": (mm.SecondHalves, None, other_bytes, mm.MaskedShare, 0),
    "second halves, to one": (mm.SecondHalves, "west", other_bytes, mm.MaskedShare, 0),
    "a masked total": (mm.MaskedTotal, None, other_bytes, mm.ReleasedShare, 0),
}


@pytest.mark.parametrize("what", LIES)
def test_a_lie_in_a_later_step_is_found_out(what: str, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, to, say, none, at_most = LIES[what]
    left: list[type] = []

    def lie(sender: Any, receiver: Any, message: Any) -> Any:
        told = isinstance(message, kind) and to in (None, receiver.party)
        if not told:
            left.append(type(message))
        return say(message) if told else message

    lying(monkeypatch, lie)
    # A masked total with another residue is wider than its masks, even before it is compared.
    with pytest.raises((MessageError, RangeOverflow)):
        model.project({"north": ROWS[:5], "south": ROWS[32:40]})
    assert left.count(none) <= at_most


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
