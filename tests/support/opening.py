"""What only parties can do with frames: open them. For tests that look at everything on its way."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import MessageError
from atoll.runtime.nats import wire
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.starts import RunStart


class Opener:
    """Opens every frame of one run, with the keys of its parties, of whom one may be missing."""

    def __init__(self, starts: Mapping[str, RunStart]) -> None:
        self._starts = starts
        one = next(iter(starts.values()))
        self.run = one.run_id[:16]
        self._parties = [party.name for party in one.study.parties]
        self._by_key = {one.fingerprint(name): name for name in self._parties}
        self._keys = {name: RunKeys(start) for name, start in starts.items()}

    def __call__(self, to: str, frame: bytes) -> tuple[wire.Head, memoryview] | None:
        """Head and body of a frame on its way to a fingerprint; None for what no party of the run sealed."""
        try:
            cover = wire.read_cover(frame, self.run)
            sender, receiver = self._parties[cover.party], self._by_key[to]
            if receiver in self._keys:
                cipher = self._keys[receiver].receiving(sender, cover.boot)
            else:
                cipher = self._keys[sender].sending(receiver, cover.boot)
            return wire.unseal(cipher, cover, frame)
        except (MessageError, KeyError, IndexError):
            return None
