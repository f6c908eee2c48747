"""Plots are drawn for whatever a study may release."""

from __future__ import annotations

import io
import string

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from atoll.report import plots


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What is drawn, before it becomes a picture."""
    kept: list[Figure] = []

    def keep(figure: Figure) -> bytes:
        kept.append(figure)
        return b""

    monkeypatch.setattr(plots, "_png", keep)
    return kept


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


def many(islands: int, rows: int, classes: list[str]) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    draw = np.random.default_rng(0)
    scores = {f"the hospital of town {i}": draw.normal(size=(rows, 2)) for i in range(islands)}
    return scores, {name: [classes[j % len(classes)] for j in range(rows)] for name in scores}


def legends(figure: Figure) -> list[Legend]:
    return [artist for artist in figure.axes[0].get_children() if isinstance(artist, Legend)]


def test_twelve_islands_and_26_labels_are_all_named_and_all_drawn() -> None:
    scores, labels = many(12, 250, list(string.ascii_uppercase))
    figure = plots.projection_figure(scores, "letters", labels=labels, label_name="letter")
    said = [{text.get_text() for text in legend.get_texts()} for legend in legends(figure)]
    assert set(scores) in said
    assert set(string.ascii_uppercase) in said
    points = figure.axes[0].collections
    assert len(points) == 12 * 26
    assert sum(len(drawn.get_offsets()) for drawn in points) == 3000
    assert len({tuple(drawn.get_facecolor()[0]) for drawn in points}) == 12
    shapes = {drawn.get_paths()[0].to_polygons()[0].tobytes() for drawn in points}
    assert len(shapes) == 26


@pytest.mark.parametrize("classes", [["ill", "well"], [f"cultivar number {i}" for i in range(26)]])
def test_two_legends_begin_at_the_same_place_and_stay_apart_and_inside(classes: list[str]) -> None:
    scores, labels = many(12, 100, classes)
    figure = plots.projection_figure(scores, "a title", labels=labels)
    drawn(figure._repr_png_())  # lays it out
    boxes = sorted((legend.get_window_extent() for legend in legends(figure)), key=lambda box: box.y0)
    below, above = boxes
    assert below.x0 == pytest.approx(above.x0)
    assert below.y1 < above.y0
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    assert min(box.y0 for box in boxes) >= 0
    assert above.x0 > figure.axes[0].bbox.x1


def test_classes_are_in_the_order_of_their_numbers() -> None:
    assert plots._classes({"a": ["ward 10", "ward 2", "lab"]}) == ["lab", "ward 2", "ward 10"]


def test_what_has_no_line_in_a_legend_is_said() -> None:
    scores, labels = many(50, 80, [str(i) for i in range(80)])
    figure = plots.projection_figure(scores, "a title", labels=labels)
    said = [text.get_text() for legend in legends(figure) for text in legend.get_texts()]
    assert "80 values: not drawn" in said
    assert "50 islands, from" in said


def test_markers_are_seen_among_3000() -> None:
    """At 150 dots an inch, 15 square points are a disc of 8 to 9 pixels; 8 square points were six."""
    for islands in (1, 3):
        scores, _ = many(islands, 3000 // islands, ["a"])
        (axes,) = plots.projection_figure(scores, "a title").axes
        assert 14 < axes.collections[0].get_sizes()[0] < 20
        assert axes.collections[0].get_linewidths()[0] <= 0.4


def test_bars_are_shares_of_the_total_and_the_line_adds_them_up(figures: list[Figure]) -> None:
    """The total counts components that are not shown: 4 + 3 + 1 of 10."""
    plots.scree(np.array([4.0, 3.0, 1.0]), 10.0, "a title")
    (axes,) = figures[0].axes
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in axes.patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(bars, [(1, 0.4), (2, 0.3), (3, 0.1)])
    (line,) = axes.lines
    np.testing.assert_allclose(np.column_stack(line.get_data()), [(1, 0.4), (2, 0.7), (3, 0.8)])
    assert {text.get_text() for text in axes.texts} == {"40%", "30%", "70%", "10%", "80%"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Principal component", "Share of the variance")


def test_the_first_component_goes_to_the_right_and_the_second_upwards(figures: list[Figure]) -> None:
    scores = {"north": np.array([[1.0, 10.0, 5.0], [2.0, 20.0, 5.0]]), "south": np.array([[3.0, 30.0, 5.0]])}
    plots.projection(scores, "a title", shares=np.array([0.6, 0.3, 0.1]))
    (axes,) = figures[0].axes
    places = np.vstack([points.get_offsets() for points in axes.collections])
    np.testing.assert_allclose(places, [(1, 10), (2, 20), (3, 30)])
    assert axes.get_xlabel() == "PC1 (60.0% of the variance)"
    assert axes.get_ylabel() == "PC2 (30.0% of the variance)"


def test_every_record_has_the_marker_of_its_class(figures: list[Figure]) -> None:
    scores = {"north": np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])}
    plots.projection(scores, "a title", labels={"north": ["ill", "ill", "well", "ill"]})
    (axes,) = figures[0].axes
    drawn = [sorted(points.get_offsets()[:, 0].tolist()) for points in axes.collections]
    assert drawn == [[1.0, 2.0, 4.0], [3.0]]  # classes in the order of their names


def test_loadings_are_the_largest_entries_of_each_component() -> None:
    names = [f"column {i}" for i in range(20)]
    components = np.vstack([np.linspace(-1.0, 0.9, 20), np.linspace(0.1, 2.0, 20)])
    figure = plots.loadings_figure(components, names, "wine: loadings", np.array([0.6, 0.3]))
    first, second = figure.axes
    bars = [bar.get_width() for bar in first.patches]  # type: ignore[attr-defined]
    assert bars[:3] == pytest.approx([-1.0, -0.9, 0.9])
    assert [label.get_text() for label in first.get_yticklabels()][:3] == [
        "column 0",
        "column 1",
        "column 19",
    ]
    assert second.get_yticklabels()[0].get_text() == "column 19"
    assert figure.get_suptitle() == "wine: loadings (the largest 15 of 20 columns)"
    drawn(figure._repr_png_())


def test_the_names_of_narrow_axes_lie_within_the_picture() -> None:
    names = [f"a column with a long name, {i}" for i in range(13)]
    components = np.random.default_rng(0).normal(size=(3, 13))
    figure = plots.loadings_figure(components, names, "wine: loadings", np.array([0.362, 0.192, 0.111]))
    drawn(figure._repr_png_())
    for axes in figure.axes:
        box = axes.xaxis.label.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
