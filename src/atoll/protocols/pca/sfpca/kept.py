"""What a role keeps of components that nobody may open yet: its own share, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import codec
from atoll.codec import Message
from atoll.crypto import shamir
from atoll.crypto.products import Integers
from atoll.protocols.base import Outputs
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.machine import Shared
from atoll.secret_matrices.openings import check_masked
from atoll.secret_matrices.threshold import Held
from atoll.study.model import Study


class Kept(Message, frozen=True):
    """One role's share of components and offset (integers / 2^fraction), and what is public about them."""

    session: bytes
    holder: str
    members: tuple[str, ...]
    """The providers of the session, in its order: a later step takes nobody else's numbers for a share."""
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
    threshold: int = 0
    """How many providers' shares are enough; 0 where all are needed. Then components and offset are residues
    of :mod:`atoll.crypto.shamir`, as bytes; what follows is of each of the two, in this order."""
    point: int = 0
    which: tuple[bytes, ...] = ()
    nonces: tuple[bytes, ...] = ()
    commitments: tuple[tuple[bytes, ...], ...] = ()

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
    if W.dealt is not None:
        return _keep_dealt(machine, columns, range_, found)
    share = Kept(
        machine.session,
        machine.me,
        tuple(map(str, machine.providers)),
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


def _keep_dealt(
    machine: LocalMachine, columns: tuple[tuple[str, ...], bool], range_: Range, found: Found
) -> Outputs:
    """A member's share, which a threshold of the others can do without."""
    W, offset = found.components, found.offset
    assert offset is not None, "a study keeps no components of standardised columns"
    parts: tuple[Held, Held] = (W.dealt, offset.dealt)
    if parts[0].point and parts[0].values is None:
        return {}  # somebody left before it had dealt to this member
    share = Kept(
        machine.session,
        machine.me,
        tuple(map(str, machine.providers)),
        *columns,
        range_.exponent,
        range_.centre,
        _residues(W, parts[0]),
        W.fraction,
        W.bits,
        _residues(offset, parts[1]),
        offset.fraction,
        offset.bits,
        found.offset_factor,
        parts[0].threshold,
        parts[0].point,
        tuple(part.which for part in parts),
        tuple(part.nonce for part in parts),
        tuple(part.commitments for part in parts),
    )
    return {"share": codec.encode(share)}


def _residues(x: Shared, held: Held) -> np.ndarray[Any, Any]:
    if held.values is None:
        return np.zeros((*x.shape, 1), np.uint8)
    return np.frombuffer(shamir.numbers_to_bytes(held.values), np.uint8).reshape(*x.shape, -1)


async def _whole(machine: LocalMachine, x: Shared) -> Integers:
    """A provider's share, the carrier's with the coordinator's, to whom nothing is left."""
    own = await machine.own_part(x)
    return np.zeros((*x.shape, 1), np.uint64) if own is None else np.ascontiguousarray(own)
