"""A party whose cable is pulled for minutes in the middle of a run, as nobody is told: the run goes on after.

    .venv/bin/python -m benchmarks.network_cut [SECONDS]

One provider of an SF-PCA study reaches the hub through a proxy that goes silent and keeps its connections
open. Everybody must finish; printed is how long after the cut.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.support.examples import EXAMPLES
from tests.support.hub import address, admit, in_background, make_hub, running
from tests.support.networks import ThreadedParties, identity_of
from tests.support.proxy import Proxy, proxy

from atoll.protocols import protocol_of
from atoll.runtime.nats.carrier import Carrier
from atoll.runtime.nats.nats_carrier import NatsCarrier
from atoll.runtime.nats.sending import Timing
from atoll.runtime.transcript import Transcript

CUT_OFF, AFTER = "island-1", 5
"""Who, and after how many messages of any one party."""


class Cut:
    """Pulls the cable once the run is under way, and puts it back."""

    def __init__(self, between: Proxy, seconds: float) -> None:
        self._between, self._seconds = between, seconds
        self._begun = threading.Lock()
        self.mended = 0.0

    def __call__(self, _: str, transcript: Transcript) -> None:
        if transcript.messages >= AFTER and self._begun.acquire(blocking=False):
            threading.Thread(target=self._pull, daemon=True).start()

    def _pull(self) -> None:
        self._between.loop.call_soon_threadsafe(self._between.cut)
        print(f"cut for {self._seconds:.0f} s", flush=True)
        time.sleep(self._seconds)
        self.mended = time.monotonic()
        self._between.loop.call_soon_threadsafe(self._between.mend)


def main(seconds: float = 300.0) -> None:
    example = EXAMPLES["sfpca-scores"]()
    keys = {identity_of(party.name).fingerprint: identity_of(party.name) for party in example.study.parties}
    with tempfile.TemporaryDirectory() as folder:
        hub = make_hub(Path(folder) / "hub")
        admit(hub, keys.values())
        way = address(hub)
        with in_background(running(hub)), in_background(proxy(hub.settings.port)) as between:
            cut = Cut(between, seconds)

            def carrier(fingerprint: str) -> Carrier:
                cut_off = fingerprint == identity_of(CUT_OFF).fingerprint
                url = f"tls://localhost:{between.port}" if cut_off else way.url
                return NatsCarrier(url, keys[fingerprint], way.ca)

            engine = ThreadedParties(carrier, timing=Timing(deadline=600.0), durable=True)
            outcome = engine.run(
                protocol_of(example.study.protocol), example.study, example.own, progress=cut
            )
            assert cut.mended, "the run was over before the cut"
            took = time.monotonic() - cut.mended
    print(f"{len(outcome.learned)} roles finished {took:.1f} s after a cut of {seconds:.0f} s")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
