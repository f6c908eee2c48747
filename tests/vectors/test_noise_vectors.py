"""Known draws: a seed recorded by one version or machine gives the same noise in another.

``noise.json`` pins them. Where an entry holds a digest it is the first 16 bytes of the SHA-256 of the
draws as little-endian int64. Draws do not depend on the last bit of a machine's exp(): a comparison
that close is decided in decimals.
"""

import hashlib
import json
from pathlib import Path

import pytest

from atoll.privacy import samplers

VECTORS = json.loads((Path(__file__).parent / "noise.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['sampler']} {case['width']:g}")
def test_known_draws(case):
    count = case.get("count", 6)
    holders = (case["holders"],) if "holders" in case else ()
    sampler = getattr(samplers, case["sampler"])
    drawn = sampler(bytes.fromhex(VECTORS["seed"]), case["width"], *holders, count, VECTORS["domain"])
    if "first" in case:
        assert drawn.tolist() == case["first"]
    else:
        assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest()[:32] == case["sha256"]
