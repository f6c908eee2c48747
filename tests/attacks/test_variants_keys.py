"""Keys, attacked again: a member too many, parts that are no parts, a coin known before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.attacks.test_lattice_receiver import HEADER, KEY_ID, SEED, with_id
from tests.attacks.test_lattice_receiver import run as summed
from tests.attacks.test_sfpca_coordinator import honest, run
from tests.support.examples import summation

from atoll.crypto.hazmat import lattice
from atoll.errors import AtollError, MessageError
from atoll.runtime.records import MemoryRecord
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import roles
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.machine import EVERY_PRECISION
from atoll.secret_matrices.widths import rings_for
from atoll.secure_sums.encrypted import SumKey
from atoll.secure_sums.lattice import EncryptedInput, KeyShare, Lattice
from atoll.study.address import Address

# ---- the collective lattice key ----


def test_a_key_with_a_member_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its residues are the sum of all shares, so fingerprints agree; the names of its members do not."""

    async def collect(self: Lattice) -> None:
        shares = await self.net.gather(KeyShare, self.contributors)
        public = bytearray(lattice.aggregate([message.share for message in shares.values()]))
        ids = HEADER + SEED + KEY_ID * len(shares)
        public[ids:ids] = b"\x07" * KEY_ID
        public[4:8] = (len(shares) + 1).to_bytes(4, "little")
        await self.net.broadcast(self.contributors, SumKey(with_id(public)))

    monkeypatch.setattr(Lattice, "_collect_key", collect)
    wire, _, problem = summed(summation("lattice"))
    assert "is not for this session" in str(problem)
    assert not wire.sent_by_kind[EncryptedInput]


def test_a_coin_is_known_to_nobody_before_all_have_told_their_nonces() -> None:
    """Of the sum alone it would be known to the receiver, who could send a wrong sum that passes at it."""

    def tossed(*notes: bytes) -> bytes:
        class Session(Lattice):
            def __init__(self) -> None:
                self.session, self.record = "s", MemoryRecord()

            async def _compare(self, topic: str, digest: bytes, note: bytes) -> list[bytes]:
                return list(notes)

        return asyncio.run(Session()._toss("block", b"digest", b""))

    one, other, third = (bytes([i]) * 32 for i in range(3))
    assert tossed(one, other) == tossed(one, other)
    assert len({tossed(one, other), tossed(one, third), tossed(third, other), tossed(other, one)}) == 4


# ---- SF-PCA's key parts ----


@pytest.mark.parametrize(
    "instead",
    [lambda _: b"", lambda part: part[:-13], lambda part: b"\xff" * len(part)],
    ids=["nothing", "shorter", "residues beyond their moduli"],
)
def test_a_provider_that_commits_to_no_key_part_ends_the_run(
    instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its promise, and the coordinator passes on what it is given."""
    whole = roles.Provider._key_part

    def part(self: Any, rings: Any) -> bytes:
        made = whole(self, rings)
        return bytes(instead(made)) if self.net.me.party == "p2" else made

    monkeypatch.setattr(roles.Provider, "_key_part", part)
    error, tap = run(honest, monkeypatch)
    assert isinstance(error, AtollError)
    for party in ("p0", "p1"):  # what was encrypted is under secrets of their own; no product was made
        assert not {mm.ProductPart, mm.MaskedShare, mm.OpenedShare} & set(tap.kinds[party])


@pytest.mark.parametrize("count", [0, len(EVERY_PRECISION) - 1, len(EVERY_PRECISION) + 1])
def test_a_provider_has_one_key_part_for_each_precision(count: int) -> None:
    me, other, coordinator = (Address(name, "provider") for name in ("p0", "p1", "c"))
    rings = [rings_for(one)[-1] for one in (*EVERY_PRECISION, EVERY_PRECISION[0])]
    given = tuple(bytes(ring.poly_size) for ring in rings[:count])

    class Net:
        async def send(self, to: Address, message: Any) -> None:
            if isinstance(message, mm.SeedPart):
                self.seeds = (message.seed, bytes(32))
            if isinstance(message, mm.KeyParts):
                self.body = memoryview(b"".join((*message.parts, *given)))

        async def receive(self, kind: Any, sender: Address) -> Any:
            return kind(self.seeds if kind is mm.SessionSeed else self.body)

        async def agree(self, topic: str, digest: bytes, group: Any, note: bytes) -> dict[Address, bytes]:
            return {me: note, other: digest_of(digest, str(other), *given) + bytes(32)}

    net: Any = Net()
    net.me = me
    provider = roles.Provider(net, MemoryRecord(), bytes(32), coordinator, (me, other))
    with pytest.raises(MessageError, match="bytes of key parts"):
        asyncio.run(provider.set_up())
