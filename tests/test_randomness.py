"""Seeds, domains and the expansion."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

import atoll
from atoll import randomness


def test_domains_do_not_collide() -> None:
    seed = bytes(32)
    pairs = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", ""), (b"ab", 1), ("ab", "1x")]
    assert len({randomness.derive(seed, *domain) for domain in pairs}) == len(pairs)


def test_expansion_is_pinned() -> None:
    """A changed expansion would break every recorded run."""
    stream = randomness.expand(bytes(range(32)), 16, "known answer")
    assert stream.hex() == PINNED
    assert randomness.expand(bytes(range(32)), 64, "known answer")[:16] == stream
    words = randomness.expand_words(bytes(range(32)), 2, "known answer")
    assert words.tobytes() == stream


PINNED = "05d4cae96aa63dedafdc301eaeee31f9"


def test_a_short_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        randomness.derive(b"short", "x")


def test_fresh_seeds_differ() -> None:
    assert len({randomness.fresh_seed() for _ in range(100)}) == 100


def test_a_seed_is_32_bytes_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it gave them: of 256 bits, none is made from the others."""
    given = [bytes(range(32)), bytes(range(100, 132))]
    drawn = iter(given)
    monkeypatch.setattr(randomness.secrets, "token_bytes", lambda n: next(drawn)[:n])
    assert [randomness.fresh_seed(), randomness.fresh_seed()] == given


def test_an_integer_below_a_bound_is_any_of_them_and_never_the_bound() -> None:
    assert {randomness.fresh_below(3) for _ in range(200)} == {0, 1, 2}
    assert {randomness.fresh_below(1) for _ in range(20)} == {0}


def test_public_draws_can_be_drawn_again_by_everybody() -> None:
    for seed in (7, [1, 2, 3]):
        numbers = randomness.public(seed).integers(0, 2**63, 4).tolist()
        assert randomness.public(seed).integers(0, 2**63, 4).tolist() == numbers
    assert randomness.public(7).random() == 0.625095466604667  # NumPy keeps its streams


def test_only_one_module_asks_the_operating_system_or_has_numpys_generators() -> None:
    source = pathlib.Path(atoll.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text()
        if path.name != "randomness.py":
            assert not re.search(
                r"\b(secrets|os)\.(token_|urandom|randbelow|getrandom)|import secrets", text
            ), path
            assert not re.search(r"np\.random|numpy\.random", text), path


def test_the_expansion_looks_uniform() -> None:
    counts = np.bincount(np.frombuffer(randomness.expand(bytes(32), 1 << 20, "chi"), np.uint8), minlength=256)
    expected = (1 << 20) / 256
    assert np.sum((counts - expected) ** 2 / expected) < 380  # 255 degrees of freedom, p about 1e-6
