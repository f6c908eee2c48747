"""Makes ``wire.json``: what nodes of this version of the wire format say, byte by byte.

    python tests/vectors/make_wire.py > tests/vectors/wire.json

To be made anew only for a new version of the format, beside the old one, which is then the previous one and
is still read. Version 1 had digests of messages in the clear and was never released: nobody speaks it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll.codec import Message
from atoll.crypto import envelope
from atoll.crypto.identity import Identity
from atoll.runtime.nats import starts, wire

RUN, BOOT, KEY = b"run of a vector!", b"start of vector!", bytes(range(32))
NORTH = Identity(b"n" * 32)
LANE = (1, 4)
PAYLOAD = bytes(i % 251 for i in range(700))
LONG = bytes(i % 241 for i in range(wire.CHUNK + 9))
"""Two frames; the first is noted by its digest."""
TICKET = wire.Ticket(b"name of content!", b"t" * 32)
STATUS = wire.Status(
    3, b"n" * 16, (5, 0), (4,), (4,), (3,), (2, 1), 2, b"b" * 16, (1,), True, False, "PartyLeft", 1, True
)
KINDS = {name: getattr(wire, name) for name in ("HELLO", "STATE", "NEWS", "DONE", "ABORT", "ALIVE")}


def frames() -> dict[str, bytes]:
    """One frame of every kind, in the order of their numbers."""
    sealer = wire.Sealer(ChaCha20Poly1305(KEY), RUN, 2, BOOT)
    made = {"DATA": next(sealer.data(*LANE, 6, PAYLOAD, hashlib.sha256(PAYLOAD).digest(), 7))}
    first, second = sealer.data(*LANE, 8, LONG, hashlib.sha256(LONG).digest(), 9)
    made["DATA, part 1 of 2: SHA-256"], made["DATA, part 2 of 2"] = hashlib.sha256(first).digest(), second
    digest = hashlib.sha256(PAYLOAD).digest()
    made["SHARED"] = sealer.shared(*LANE, 10, len(PAYLOAD), digest, 11, TICKET)
    made |= {name: sealer.status(kind, *LANE, STATUS) for name, kind in KINDS.items()}
    (made["content"],) = wire.seal_content(TICKET, RUN, PAYLOAD)
    return made


def messages() -> dict[str, Message]:
    """One control message of every kind."""
    proposal = starts.Proposal(
        b'{"a study":1}', b"p" * 32, "a reason", 1_790_000_000, 1_790_600_000, "0.1.0", (2,)
    )
    key = envelope.public_key(b"e" * 32)
    approval = starts.Approval(b"i" * 32, "north", "d" * 64, b"a" * 32, key, 1_790_600_000, "0.1.0", (2,))
    ended = starts.Ended(b"i" * 32, "north", "failed", "PartyLeft", "south/provider", ("south",))
    return {
        type(one).__name__: one
        for one in (
            proposal,
            approval,
            starts.Decline(b"i" * 32, "north", "owner", "not this year"),
            starts.Cancel(b"i" * 32, "north"),
            ended,
            starts.Seen(b"s" * 32),
        )
    }


def vectors() -> dict[str, Any]:
    signed = {name: starts.sign(NORTH, one).hex() for name, one in messages().items()}
    return {"version": wire.VERSION, "frames": {n: f.hex() for n, f in frames().items()}, "signed": signed}


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
