"""No seed of the machine on vectors in slots serves twice: two masks, or two noises, would be the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.slot_programs import LENGTH, PRIME, tables
from tests.support.slot_runs import encrypted, provider
from tests.support.streams import streams

from atoll.secret_matrices.slots import provider as providers
from atoll.secret_matrices.slots.machine import Slots

PUBLIC = {
    "Keys.__init__": "what everybody makes the keys with",
    "Secret.refresh_parts": "the common part of a new ciphertext",
    "Secret.switching_parts": "the common part of the receivers' key",
    "Secret.input_part": "the common part of what is encrypted",
    "from_inputs": "the same, where the parts are added up",
    "atoll/slots/rows/1": "weights of a check, which all providers draw from one coin",
}
"""What everybody takes, or all providers, of one seed that is nobody's own."""


async def program(m: Slots, own: Any) -> Any:
    """Two rows, so that each thing is done twice at one step; every verb that draws."""
    mine = None if own is None else list(own)
    rows = await m.broadcast(await m.refresh(await m.encrypted_total(mine, 2)))
    back = await m.from_shares(
        await m.to_shares([m.scaled(x, 3) for x in rows], [LENGTH] * 2), [LENGTH] * 2, PRIME
    )
    await m.total([m.own_inner([(x, None if mine is None else mine[0])]) for x in rows])
    await m.opened_own([m.own_inner([(x, None if mine is None else mine[0])]) for x in rows], [LENGTH] * 2)
    return await m.opened(back, [LENGTH] * 2, frozenset({provider(0)}))


@pytest.mark.parametrize(("verify", "at_once"), [(False, 1), (False, 8), (True, 8)])
def test_no_seed_of_the_machine_serves_twice(
    verify: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two rows, in a batch each and in one together."""
    monkeypatch.setattr(providers, "AT_ONCE", at_once)
    with streams() as stretched:
        encrypted(program, tables(), verify=verify)
    assert stretched.twice <= PUBLIC.keys()
    assert {"from", "row", "mask"} <= {purpose for purpose, *_ in stretched.noted}
