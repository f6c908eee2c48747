"""Two of five providers of SF-PCA stop at random points, three are enough: what comes of it, 200 times.

    python -m benchmarks.sfpca_stops [--runs 200] [--seed 0] [--check]

Half of the stops are anywhere in the run, half after outputs have begun to be dealt. Every run must end with
the result, or with the error of a party that left; and no role may ever send two different shares of one
ciphertext, opening or output. ``--check`` fails where one does.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import AtollError, PartyLeft
from atoll.estimators.base import parties
from atoll.protocols.own import owned
from atoll.protocols.pca.sfpca.protocol import PROTOCOL
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address
from atoll.study.model import Study

PROVIDERS, ENOUGH, STOPS = 5, 3, 2
NEAR = 1e-5
"""Of two runs, whose released digits have other noise."""


class Shares(Observer):
    """What every role sent as its share of something, and how many messages."""

    def __init__(self, study: Study) -> None:
        self._decoder = Decoder[Message](PROTOCOL.all_messages(study))
        self.bodies: dict[tuple[Any, ...], set[bytes]] = defaultdict(set)
        self.sent_by: dict[str, list[type[Message]]] = defaultdict(list)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message: Any = self._decoder.decode(bytes(data))
        self.sent_by[sender.party].append(type(message))
        if isinstance(message, mm.MaskedShare | mm.OpenedShare):
            self.bodies[type(message), sender, message.step].add(bytes(data))
        elif isinstance(message, mm.ReleasedPoint):
            self.bodies[type(message), sender, message.which].add(bytes(data))
        elif isinstance(message, mm.DealtShare):
            self.bodies[type(message), sender, message.step, receiver].add(bytes(data))


class Ended(NamedTuple):
    """How a run ended."""

    components: np.ndarray[Any, Any] | None
    error: AtollError | None
    shares: Shares


def tables() -> dict[str, np.ndarray[Any, Any]]:
    rows = np.random.default_rng(0).normal(size=(300, 4)) * [3.0, 2.0, 1.0, 0.3]
    return {f"island-{i}": part for i, part in enumerate(np.array_split(rows, PROVIDERS))}


def run(crash: Mapping[str, int]) -> Ended:
    """One run, in which parties stop before their so many-th message."""
    islands = as_islands(tables())
    study = Study(
        name="stops",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator", "consumer"),
        parameters={"n_components": 2, "bounds": 16.0, "threshold": ENOUGH, "accept_determined": True},
        release={"components": ("provider", "consumer")},
    )
    shares = Shares(study)
    faults = Faults(crash={f"{name}/provider": at for name, at in crash.items()})
    try:
        outcome = LocalEngine(faults=faults).run(PROTOCOL, study, owned(islands), observer=shares)
    except AtollError as error:
        return Ended(None, error, shares)
    found = outcome.learned[Address("consumer", "consumer")].outputs["components"]
    return Ended(np.asarray(found), None, shares)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    draw, whole = random.Random(options.seed), run({})
    assert whole.components is not None
    said, twice, wrong = Counter[str](), 0, 0
    for i in range(options.runs):
        crash = {}
        for name in draw.sample(list(tables()), STOPS):
            kinds = whole.shares.sent_by[name]
            least = 1 if i % 2 else kinds.index(mm.DealtShare) + 1
            crash[name] = draw.randint(least, len(kinds))
        ended = run(crash)
        twice += sum(len(bodies) > 1 for bodies in ended.shares.bodies.values())
        if ended.components is not None:
            said["the result was released"] += 1
            wrong += bool(np.abs(ended.components - whole.components).max() > NEAR)
        else:
            known = isinstance(ended.error, PartyLeft) and ended.error.hint is not None
            wrong += not known
            said[f"{type(ended.error).__name__}: {ended.error.hint if ended.error else ''}"] += 1
    for words, count in said.most_common():
        print(f"{count:5} {words}")
    print(f"{twice:5} times two different shares of one thing; {wrong} wrong endings")
    return 1 if options.check and (twice or wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
