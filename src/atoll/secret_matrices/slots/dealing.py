"""Outputs of which any t of the providers release enough: :mod:`atoll.secret_matrices.threshold`, for rows.

After appendix D.4 of the SF-PCA paper, which shares the key t of N; here the key stays N of N, and *outputs*
are dealt once all products are done. A row becomes whole numbers that add up to it (decryption under masks,
as protocol 1 of appendix D.1), to which every provider adds noise as wide as that of an opening, and each
deals its own by Shamir's scheme. From then on a member has one number for each of the output's, the same
whoever else is there: it has no second share to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atoll.randomness import derive, fresh_seed
from atoll.secret_matrices.slots.integers import wide_numbers
from atoll.secret_matrices.slots.machine import SHARE_FRACTION, Matrix
from atoll.secret_matrices.slots.party import Party
from atoll.secret_matrices.slots.steps import FLOODING_BITS
from atoll.secret_matrices.threshold import Held, Part, dealt

__all__ = ["Output", "deal", "flooding_bits"]


class Output(NamedTuple):
    """Rows of the coordinator or of everybody that are released together: so many first numbers of each."""

    rows: Matrix
    length: int


def flooding_bits(slots: int, scale_bits: int) -> int:
    """Of noise in a slot, as wide as N coefficients with noise of an opening make it."""
    return FLOODING_BITS + slots.bit_length() // 2 + SHARE_FRACTION - scale_bits


async def deal(m: Party, outputs: Sequence[Output], threshold: int) -> list[Held]:
    """What this role has of the outputs; providers may leave from now on, until ``threshold`` are left."""
    rows = await m.room([row for output in outputs for row in output.rows], 0)
    lengths = [output.length for output in outputs for _ in output.rows]
    shares = await m.to_shares(rows, lengths)
    # What is dealt can be opened without us: everything that it was made from is compared first.
    await m.check(last=True)
    step, parts, start = m.next_step(), [], 0
    bits = flooding_bits(m.slots, m.set.scale_bits)
    seed = b"" if shares is None else m.record(f"flooding {step}", fresh_seed)
    for output in outputs:
        numbers = None
        if shares is not None:
            own = [
                shares[i] + wide_numbers(derive(seed, "row", i), output.length, bits)
                for i in range(start, start + len(output.rows))
            ]
            numbers = np.concatenate(own)
        parts.append(Part((len(output.rows), output.length), SHARE_FRACTION, numbers))
        start += len(output.rows)
    return await dealt(m, parts, threshold)
