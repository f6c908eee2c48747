"""Plots are drawn for whatever a study may release."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest

from atoll.report import plots


def drawn(png: bytes) -> np.ndarray:
    assert png.startswith(b"\x89PNG")
    return matplotlib.image.imread(io.BytesIO(png))


def ink(picture: np.ndarray, colour: str) -> int:
    wanted = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return int((np.abs(picture[..., :3] - wanted).max(axis=-1) < 0.02).sum())


@pytest.mark.parametrize("k", [1, 5, 40])
def test_scree(k: int) -> None:
    picture = drawn(plots.scree(np.arange(k, 0, -1.0), float(k * (k + 1) / 2), "a title"))
    assert ink(picture, plots.COLOURS[0]) > 100
    assert ink(picture, plots.COLOURS[5]) > 20


def test_scree_of_a_constant_table() -> None:
    drawn(plots.scree(np.zeros(3), 0.0, "nothing varies"))


@pytest.mark.parametrize("components", [1, 2, 6])
def test_every_island_has_its_colour(components: int) -> None:
    draw = np.random.default_rng(0)
    scores = {name: draw.normal(size=(200, components)) for name in ("north", "south", "west")}
    picture = drawn(plots.projection(scores, "a title", shares=np.full(components, 0.1)))
    for colour in plots.COLOURS[:3]:
        assert ink(picture, colour) > 20
    assert ink(picture, plots.COLOURS[5]) == 0


def test_many_islands_and_many_classes_are_drawn_without_a_crowd_of_legends() -> None:
    draw = np.random.default_rng(0)
    scores = {f"i{i}": draw.normal(size=(30, 2)) for i in range(50)}
    labels = {name: draw.normal(size=30).tolist() for name in scores}
    picture = drawn(plots.projection(scores, "a title", labels=labels))
    assert picture.shape[0] < 2000
