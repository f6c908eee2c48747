"""What a role keeps of components that nobody may open yet: its own share, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import codec
from atoll.codec import Message
from atoll.crypto.products import Integers
from atoll.protocols.base import Outputs
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.machine import Shared
from atoll.secret_matrices.openings import check_masked
from atoll.study.model import Study


class Kept(Message, frozen=True):
    """One role's share of components and offset (integers / 2^fraction), and what is public about them."""

    session: bytes
    holder: str
    columns: tuple[str, ...]
    named: bool
    exponent: int
    centre: np.ndarray[Any, Any]
    components: np.ndarray[Any, Any]
    components_fraction: int
    components_bits: int
    offset: np.ndarray[Any, Any]
    offset_fraction: int
    offset_bits: int
    offset_factor: float

    def __repr__(self) -> str:
        return f"Kept({self.holder}, {self.components.shape[0]} x {self.components.shape[1]})"


async def keep(
    study: Study,
    machine: LocalMachine,
    columns: tuple[tuple[str, ...], bool],
    range_: Range,
    found: Found,
) -> Outputs:
    """The role's share, where the study leaves the components with all holders of shares."""
    if not study.releases("encrypted", machine.net.me):
        return {}
    W, offset = found.components, found.offset
    assert offset is not None, "a study keeps no components of standardised columns"
    check_masked(W)
    check_masked(offset)
    share = Kept(
        machine.session,
        machine.me,
        *columns,
        range_.exponent,
        range_.centre,
        await _whole(machine, W),
        W.fraction,
        W.bits,
        await _whole(machine, offset),
        offset.fraction,
        offset.bits,
        found.offset_factor,
    )
    return {"share": codec.encode(share)}


async def _whole(machine: LocalMachine, x: Shared) -> Integers:
    """A provider's share, the carrier's with the coordinator's, to whom nothing is left."""
    own = await machine.own_part(x)
    return np.zeros((*x.shape, 1), np.uint64) if own is None else np.ascontiguousarray(own)
