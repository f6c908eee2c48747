"""Keys of one run: one for every pair of parties, one direction and one start of the sender's node.

A pair's secret is the agreement of the two keys that their approvals named for this run alone. The key that a
party seals frames with also follows from a random name that its node draws at every start (its *boot*). So a
node that was restored from a backup, or runs twice, never seals two frames under one key and nonce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll import randomness
from atoll.errors import MessageError

if TYPE_CHECKING:
    from atoll.runtime.nats.starts import RunStart

_DOMAIN: Final = "atoll/network/v1"


class RunKeys:
    """One party's keys of one run; its representation shows none."""

    def __init__(self, start: RunStart) -> None:
        self._start = start
        self._pairs: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<RunKeys of {self._start.me}>"

    def sending(self, to: str, boot: bytes) -> ChaCha20Poly1305:
        """What this party seals frames to ``to`` with, in the start called ``boot``."""
        return self._cipher(to, self._start.me, to, boot)

    def receiving(self, sender: str, boot: bytes) -> ChaCha20Poly1305:
        """What opens frames that ``sender`` sealed to this party in its start called ``boot``."""
        return self._cipher(sender, sender, self._start.me, boot)

    def _cipher(self, other: str, sender: str, receiver: str, boot: bytes) -> ChaCha20Poly1305:
        key = randomness.derive(self._pair(other), _DOMAIN, "frames", sender, receiver, boot)
        return ChaCha20Poly1305(key)

    def _pair(self, other: str) -> bytes:
        if other not in self._pairs:
            private = X25519PrivateKey.from_private_bytes(self._start.ephemeral_private)
            try:
                public = X25519PublicKey.from_public_bytes(self._start.approvals[other].ephemeral)
                agreed = private.exchange(public)
            except ValueError:
                raise MessageError(
                    f"the key that {other} approved the run with is none", hint="submit the study again"
                ) from None
            # The run's id covers both parties' approvals, and with them both keys.
            names = sorted((self._start.me, other))
            self._pairs[other] = randomness.derive(agreed, _DOMAIN, "pair", self._start.run_id, *names)
        return self._pairs[other]
