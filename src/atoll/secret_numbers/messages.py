"""The messages between parties, and with a dealer."""

from __future__ import annotations

from atoll.codec import Message
from atoll.errors import MessageError

__all__ = [
    "MESSAGES",
    "DealerSeed",
    "Factors",
    "MaskedShares",
    "Remainder",
    "Supplied",
    "Wanted",
    "check_step",
]


class MaskedShares(Message, frozen=True):
    """Party -> every other party: its shares of numbers that are uniform or masked."""

    step: int
    body: memoryview


class DealerSeed(Message, frozen=True):
    """Dealer -> a party: what its shares of all triples and bits are expanded from."""

    seed: bytes


class Wanted(Message, frozen=True):
    """First party -> dealer: so many more triples and random bits are needed; none of either: no more."""

    triples: int
    bits: int


class Remainder(Message, frozen=True):
    """Dealer -> last party: what the others' shares lack."""

    body: memoryview


class Factors(Message, frozen=True):
    """Party -> another party: its summands of random factors, encrypted under its own key."""

    key: bytes
    body: bytes


class Supplied(Message, frozen=True):
    """Party -> another party: these times its own summands, masked."""

    body: bytes


MESSAGES = (MaskedShares, DealerSeed, Wanted, Remainder, Factors, Supplied)


def check_step(found: int, due: int) -> None:
    """Refuse what is not of this step."""
    if found != due:
        raise MessageError(f"shares for step {found} arrived where those for step {due} were due")
