"""The Go core's product scheme as Python sees it: no two of its random streams are the same, margins hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atoll.crypto import products as go
from atoll.crypto.products import Clearing, Layout
from atoll.errors import ParameterError

RING = go.rings()["deep5"]
SIZE = 16
LAYOUT = Layout(SIZE, SIZE, SIZE, SIZE, RING.degree // SIZE // SIZE, SIZE)
IN_TWO = Layout(SIZE, SIZE, SIZE, SIZE // 2, RING.degree // SIZE // SIZE, SIZE)
RIGHT_BITS = 40
NOISE = go.noise_bits(RING, 2, RIGHT_BITS)
# What is promised, as numbers: 64 bits over the value, 60 over the noise.
CLEARING = Clearing(2, 100, RIGHT_BITS, NOISE + 60, 100 + 64)
SECRET = go.Secret(RING, b"k" * 32)
ZERO = go.from_ints(np.zeros((SIZE, SIZE), np.int64), 3)


def kept(layout: Layout = LAYOUT, seed: bytes = b"m" * 32, domain: bytes = b"") -> Any:
    """Minus the masks of a refresh, truncated."""
    second = bytes(layout.out_polys * RING.poly_size)
    return go.to_ints(SECRET.refresh(second, layout, CLEARING, seed, domain)[1])


def in_common(one: Any, other: Any) -> int:
    return int((np.asarray(one) == np.asarray(other)).sum())


def test_masks_follow_from_seed_and_domain() -> None:
    assert in_common(kept(), kept()) == SIZE * SIZE
    assert in_common(kept(), kept(seed=b"n" * 32)) == 0
    assert in_common(kept(), kept(domain=b"another step")) == 0


def test_every_block_has_masks_of_its_own() -> None:
    share = kept(IN_TWO)
    assert IN_TWO.out_polys == 2
    assert in_common(share[: SIZE // 2], share[SIZE // 2 :]) == 0


def test_masks_and_smudging_of_one_seed_have_nothing_in_common() -> None:
    width = CLEARING.mask_bits
    noise = go.to_ints(go.smudge(ZERO, width, b"m" * 32, b""))
    half = 1 << (CLEARING.truncate - 1)
    as_masks = np.array([[-((int(v) + half) >> CLEARING.truncate) for v in row] for row in noise])
    assert in_common(as_masks, kept()) < SIZE
    assert in_common(noise, go.to_ints(go.smudge(ZERO, width, b"m" * 32, b"another step"))) == 0
    assert in_common(noise, go.to_ints(go.smudge(ZERO, width, b"n" * 32, b""))) == 0


def test_encryptions_carry_errors_of_their_own() -> None:
    """Without errors a ciphertext of zero is a linear equation for the key."""
    small = go.from_ints(np.zeros((SIZE, SIZE), np.int64), 1)

    def encrypted(seed: bytes, common: bytes = b"c" * 32) -> bytes:
        return bytes(SECRET.encrypt(small, 1, 20, LAYOUT, common, seed))

    assert encrypted(b"e" * 32) == encrypted(b"e" * 32)
    assert encrypted(b"e" * 32) != encrypted(b"f" * 32)
    assert SECRET.key_share(b"c" * 32, b"e" * 32) != SECRET.key_share(b"c" * 32, b"f" * 32)


@pytest.mark.parametrize(
    "clearing",
    [
        Clearing(2, 100, RIGHT_BITS, NOISE + 60, 100 + 63),
        Clearing(2, 100, RIGHT_BITS, NOISE + 59, 100 + 64),
    ],
    ids=["masks", "truncation"],
)
def test_the_library_itself_refuses_margins_below_those_promised(clearing: Clearing) -> None:
    second = bytes(LAYOUT.out_polys * RING.poly_size)
    with pytest.raises(ParameterError, match="hide"):
        SECRET.refresh(second, LAYOUT, clearing, b"m" * 32, b"")
    SECRET.refresh(second, LAYOUT, CLEARING, b"m" * 32, b"")
