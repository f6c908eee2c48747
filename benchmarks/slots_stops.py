"""Two of five providers of a program on slots stop at random points, three are enough: what comes of it.

    python -m benchmarks.slots_stops [--runs 200] [--seed 0] [--check]

Half of the stops are anywhere in the run, half after outputs have begun to be dealt. Every run must end with
the result, or with the error of a party that left; and no role may ever send two different parts of one
ciphertext, or two different shares of an output. ``--check`` fails where one does. The program is that of
``tests/attacks/test_slots_threshold.py``: sums, a product, a refresh, and three rows, dealt and released.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

import numpy as np
from tests.attacks.test_slots_threshold import PARTIES, first, stopped, truth, whole
from tests.support.slot_runs import provider

from atoll.errors import PartyLeft
from atoll.secret_matrices.messages import DealtShare
from atoll.study.address import Address


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    said, twice, wrong = Counter[str](), 0, 0
    for run in range(options.runs):
        crash = {}
        for i in draw.sample(range(PARTIES), 2):
            last = len(whole().outboxes[Address(f"p{i}", "provider")])
            crash[provider(i)] = draw.randint(1 if run % 2 else first(DealtShare, f"p{i}") + 1, last)
        found, error, seen = stopped(crash)
        twice += sum(len(bodies) > 1 for bodies in seen.shares.values())
        if error is None:
            said["the result was released"] += 1
            pairs = zip(found, truth(), strict=True)
            wrong += any(np.abs(one - due).max() > 1e-4 for one, due in pairs)
        else:
            wrong += not (isinstance(error, PartyLeft) and error.hint is not None)
            said[f"{type(error).__name__}: {error.hint}"] += 1
    for words, count in said.most_common():
        print(f"{count:5} {words}")
    print(f"{twice:5} times two different shares of one thing; {wrong} wrong endings")
    return 1 if options.check and (twice or wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
