"""A coordinator that alters, zeroes or replays one message of a kind, in the newest programs of the machine.

SF-PCA with an opened sketch or standardised columns, encrypted least squares with rows and with columns
split: early, in the middle and late, told to one or to all. Whatever it does, the run ends, no decryption
share of what it touched leaves, and nothing is released.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, sfpca, sfpca_standardised
from tests.support.lying import lying

from atoll.codec import Message
from atoll.errors import AtollError, MessageError, RangeOverflow
from atoll.protocols import protocol_of
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address


def opened_sketch() -> Example:
    example = sfpca()
    parameters = {**example.study.parameters, "recipe": "opened-sketch"}
    return Example(structs.replace(example.study, parameters=parameters), example.islands)


def standardised() -> Example:
    example = sfpca_standardised()
    parameters = {**example.study.parameters, "recipe": "strict"}
    return Example(structs.replace(example.study, parameters=parameters), example.islands)


CASES = {
    "sketch": opened_sketch,
    "rows": EXAMPLES["least-squares-encrypted-rows"],
    "columns": EXAMPLES["least-squares-encrypted"],
    "standardised": standardised,
}


def altered(message: Any, before: Any) -> Any:
    """A bit of a ciphertext; of public numbers, a millionth."""
    del before
    if isinstance(message, mm.PublicNumbers):
        return mm.PublicNumbers(message.step, np.array(message.values) * (1 + 1e-6))
    if isinstance(message, mm.OpenedMatrix):
        words = np.array(message.words)
        words.flat[0] ^= np.uint64(1 << 20)
        return mm.OpenedMatrix(message.step, words)
    body = bytearray(message.body)
    body[len(body) // 2] ^= 1
    return structs.replace(message, body=bytes(body))


def zeroed(message: Any, before: Any) -> Any:
    del before
    return structs.replace(message, body=bytes(len(message.body)))


def replayed(message: Any, before: Any) -> Any:
    """What came before it, where that is as long."""
    same = before is not None and len(before.body) == len(message.body)
    return structs.replace(message, body=bytes(before.body)) if same else None


class Lying:
    """Tells one lie, at the first chance from a given message of its kind on; keeps what leaves then."""

    def __init__(self, kind: type, at: int, to: str | None, how: Any) -> None:
        self.kind, self.at, self.to, self.how = kind, at, to, how
        self.met: Counter[str] = Counter()
        self.before: dict[str, Any] = {}
        self.step: int | None = None
        self.left: list[tuple[str, Any]] = []

    def __call__(self, sender: Address, receiver: Address, message: Message) -> Message:
        if self.step is not None and sender.role == "provider":
            self.left.append((sender.party, message))
        told = sender.role in ("coordinator", "server") and isinstance(message, self.kind)
        if not told or self.to not in (None, receiver.party):
            return message
        name, before = receiver.party, self.before.get(receiver.party)
        self.met[name] += 1
        self.before[name] = message
        if self.met[name] < self.at or self.step not in (None, message.step):
            return message
        lie = self.how(message, before)
        if lie is None:
            return message
        self.step = message.step
        return lie


LIES = [
    ("sketch", mm.EncryptedMatrix, 20, None, replayed),
    ("sketch", mm.SecondHalves, 6, None, altered),
    ("sketch", mm.SecondHalves, 25, "island-2", replayed),
    ("sketch", mm.SecondHalves, 14, None, zeroed),
    ("sketch", mm.OpenedMatrix, 2, None, altered),
    # The weights of the sketch are not unique: all may be sent others, but the same.
    ("sketch", mm.PublicNumbers, 1, "island-1", altered),
    ("sketch", mm.PublicNumbers, 3, None, altered),
    ("rows", mm.EncryptedMatrix, 2, None, zeroed),
    ("rows", mm.SecondHalves, 20, None, replayed),
    ("rows", mm.MaskedTotal, 10, None, zeroed),
    ("rows", mm.OpenedMatrix, 2, None, altered),
    ("standardised", mm.SecondHalves, 3, None, replayed),
    ("standardised", mm.MaskedTotal, 6, None, zeroed),
    ("standardised", mm.EncryptedMatrix, 20, "island-1", altered),
    ("columns", mm.EncryptedMatrix, 1, "hospital-2", zeroed),
    ("columns", mm.SecondHalves, 30, None, altered),
    ("columns", mm.MaskedTotal, 3, None, altered),
    ("columns", mm.OpenedMatrix, 1, None, altered),
]


@pytest.mark.parametrize(("case", "kind", "at", "to", "how"), LIES)
def test_one_altered_message_ends_the_run(
    case: str, kind: type, at: int, to: str | None, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie, example = Lying(kind, at, to, how), CASES[case]()
    lying(monkeypatch, lie)
    with pytest.raises(AtollError) as refused:
        LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
    assert isinstance(refused.value, MessageError | RangeOverflow)
    assert lie.step is not None, "nothing was altered"
    assert not [one for _, one in lie.left if isinstance(one, mm.ReleasedShare)]
    if kind in (mm.SecondHalves, mm.EncryptedMatrix):
        # Of what it touched nobody gave a decryption share: the step, or a product that was made of it.
        # Those who were sent the right sum may have given theirs of it; of a product that goes ahead, that is
        # the step after the one of its left side.
        masked = [(who, one) for who, one in lie.left if isinstance(one, mm.MaskedShare)]
        given = [(who, one) for who, one in masked if one.step >= lie.step]
        assert not [who for who, _ in given if to in (None, who)]
        of = {lie.step, lie.step + 1} if kind is mm.EncryptedMatrix and to else {lie.step}
        assert all(one.step in of for _, one in given)


def test_public_weights_a_millionth_too_large_are_refused_by_whoever_computes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Told to all alike, so that comparing finds nothing: each computes them itself."""
    lie, example = Lying(mm.PublicNumbers, 3, None, altered), opened_sketch()
    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="are not those computed here"):
        LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
