"""Openings: everybody's shares of a masked matrix, added up by whoever may have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Integers
from atoll.errors import MessageError, ParameterError
from atoll.network import Network
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.machine import Floats, Shared
from atoll.secret_matrices.messages import OpenedShare, ReleasedShare
from atoll.study.address import Address


async def release(machine: LocalMachine, x: Shared, receivers: frozenset[str]) -> Floats | None:
    """Every provider sends its share to every receiver, who alone can add them up."""
    check_masked(x)
    # What is released cannot be taken back: everything that it was made from is compared first.
    await machine.check(last=True)
    step, own = machine.next_step(), await machine.own_part(x)
    share = None
    if own is not None:
        share = ReleasedShare(step, x.fraction, own)
        for address in (machine.coordinator, *machine.providers, *machine.guests):
            if str(address) in receivers and address != machine.net.me:
                await machine.net.send(address, share)
    if machine.me not in receivers:
        return None
    return await collected(machine.net, [a for a in machine.providers if a != machine.net.me], share)


async def collected(net: Network, holders: Sequence[Address], own: ReleasedShare | None = None) -> Floats:
    """An output from everybody's shares of it."""
    arrived = [*(await net.gather(ReleasedShare, holders)).values(), *([own] if own else [])]
    first = arrived[-1]
    for message in arrived:
        check_step(message.step, first.step)
        check_words(message.words, first.words.shape[:2])
        if message.fraction != first.fraction:
            raise MessageError("shares of one output have different scales")
    return floats(added_up([np.array(message.words) for message in arrived]), first.fraction)


def added_up(shares: Sequence[Integers]) -> Integers:
    words = min(go.limits().max_words, max(share.shape[2] for share in shares) + 1)
    return go.combine(shares, [1] * len(shares), 0, words)


def share_words(message: OpenedShare, step: int, x: Shared) -> Integers:
    check_step(message.step, step)
    check_words(message.words, x.shape)
    return np.array(message.words)


def check_words(words: np.ndarray[Any, Any], shape: tuple[int, ...]) -> None:
    right = words.dtype == np.uint64 and words.ndim == 3 and words.shape[:2] == shape
    if not right or words.shape[2] > go.limits().max_words:
        raise MessageError("an opened share has the wrong shape")


def floats(words: Any, fraction: int) -> Floats:
    """Two's complement integers / 2^fraction, to a double's digits."""
    rest = np.array(words)
    negative = (rest[:, :, -1] >> np.uint64(63)).astype(bool)
    carry = negative.astype(np.uint64)
    total = np.zeros(rest.shape[:2])
    for k in range(rest.shape[2]):
        word = np.where(negative, ~rest[:, :, k], rest[:, :, k])
        sum_ = word + carry
        carry = (sum_ < word).astype(np.uint64)
        rest[:, :, k] = sum_
    for k in reversed(range(rest.shape[2])):
        total += np.ldexp(rest[:, :, k].astype(np.float64), 64 * k - fraction)
    return np.where(negative, -total, total)


def check_step(found: int, expected: int) -> None:
    if found != expected:
        raise MessageError(f"a message is for step {found}, not for step {expected}")


def check_masked(x: Shared) -> None:
    # The share of what a party knows is its data: only what a refresh has masked may be opened.
    if x.known:
        raise ParameterError(
            "a matrix of a party's own data must not be opened",
            hint="open the result of a product: only that is masked",
        )
