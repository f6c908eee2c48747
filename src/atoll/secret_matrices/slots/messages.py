"""The messages between machines on vectors in slots. Bodies are megabytes, and views of a message's bytes.

A message names its step, which all roles count alike, and its place in it. Every row is a message of its own,
so that sums are made as rows arrive, and no role has to hold what all the others send.
"""

from __future__ import annotations

from atoll.codec import Message
from atoll.errors import MessageError
from atoll.network import Compared
from atoll.secret_matrices.messages import SeedPart, SessionSeed
from atoll.study.address import Address

__all__ = [
    "MESSAGES",
    "AskedRow",
    "GivenRow",
    "InputPart",
    "KeyPart",
    "KeyTotal",
    "ListRow",
    "MaskedIntegers",
    "OthersKeyPart",
    "OwnPart",
    "OwnRow",
    "PlacedBody",
    "PublicShare",
    "ReceiverKey",
    "ReceiverSecret",
    "RefreshPart",
    "SentRow",
    "SharePart",
    "SumOfParts",
    "SwitchedRow",
    "SwitchingPart",
    "placed",
]


class PlacedBody(Message, frozen=True):
    """Something large, at its place in a step."""

    step: int
    place: int
    body: memoryview


class KeyPart(PlacedBody, frozen=True):
    """Provider -> coordinator: its part of one key."""


class OthersKeyPart(PlacedBody, frozen=True):
    """Coordinator -> provider: another provider's part of the public key."""


class KeyTotal(PlacedBody, frozen=True):
    """Coordinator -> provider: the sum of all parts of one key."""


class SentRow(PlacedBody, frozen=True):
    """Provider -> coordinator: an encrypted row of its own, re-randomised, to be added up."""


class GivenRow(PlacedBody, frozen=True):
    """Coordinator -> provider: an encrypted row for everybody."""


class AskedRow(PlacedBody, frozen=True):
    """Coordinator -> provider: what a part of a refresh or of an opening is made from."""


class RefreshPart(PlacedBody, frozen=True):
    """Provider -> coordinator: a decryption share under a mask, and the mask encrypted."""


class ReceiverKey(Message, frozen=True):
    """First receiver of an output -> provider: the public key under which it is encrypted again."""

    body: memoryview


class ReceiverSecret(Message, frozen=True):
    """First receiver of an output -> every other one: what their common key is made from."""

    seed: bytes


class SwitchingPart(PlacedBody, frozen=True):
    """Provider -> coordinator: a decryption share under a receiver's key, with noise."""


class SwitchedRow(PlacedBody, frozen=True):
    """Coordinator -> receiver: a row under the receiver's own key."""


class ListRow(PlacedBody, frozen=True):
    """Provider -> next provider, the last -> coordinator: one of a list that everybody shuffles in turn."""


class OwnRow(PlacedBody, frozen=True):
    """Provider -> every other provider: a row of its own that it wants to read."""


class OwnPart(PlacedBody, frozen=True):
    """Provider -> the owner of a row: a decryption share, with noise."""


class SharePart(PlacedBody, frozen=True):
    """Provider -> coordinator: a decryption share under the mask that, negated, is its share."""


class PublicShare(PlacedBody, frozen=True):
    """Coordinator -> first provider: the masked row, which it adds to its share."""


class SumOfParts(PlacedBody, frozen=True):
    """Coordinator -> provider, where providers verify: what all parts of one row add up to."""


class MaskedIntegers(PlacedBody, frozen=True):
    """Provider -> first provider: its shares of a row under its masks."""


class InputPart(PlacedBody, frozen=True):
    """Provider -> coordinator: its mask of a row, encrypted; the first provider adds what was masked."""


MESSAGES = (
    SeedPart,
    SessionSeed,
    KeyPart,
    OthersKeyPart,
    KeyTotal,
    SentRow,
    GivenRow,
    AskedRow,
    RefreshPart,
    ReceiverKey,
    ReceiverSecret,
    SwitchingPart,
    SwitchedRow,
    ListRow,
    OwnRow,
    OwnPart,
    SharePart,
    PublicShare,
    SumOfParts,
    MaskedIntegers,
    InputPart,
    Compared,
)


def placed(message: PlacedBody, sender: Address, step: int, place: int) -> memoryview:
    """A message's body, if it is for this place of this step."""
    if (message.step, message.place) != (step, place):
        raise MessageError(
            f"{sender} sent place {message.place} of step {message.step}, not place {place} of step {step}"
        )
    return message.body
