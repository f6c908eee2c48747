"""A chart of a report: a picture that always works, and an interactive form where that helps.

Renderers say what there is to see; ``html`` puts it on a page, the command line writes pictures as files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from atoll.report.plots import Picture


class Choice(NamedTuple):
    """What a reader may choose: which column of the points stands on an axis."""

    label: str
    axis: str
    """``x`` or ``y``."""
    fields: Sequence[str]
    first: str


class Outline(NamedTuple):
    """An ellipse around most of a group's points, along any two of the columns that a reader may choose."""

    name: str
    colour: str
    mean: npt.NDArray[Any]
    deviation: npt.NDArray[Any]
    correlation: npt.NDArray[Any]


class Line(NamedTuple):
    """A line over bars, by the same fields."""

    name: str
    columns: Mapping[str, npt.NDArray[Any]]
    dashed: bool = False


class Points(NamedTuple):
    """Points (or bars) that a reader may zoom into, hover over, and see along other columns.

    ``columns``: values by field; ``titles``: the words on the axis for a field; ``groups``: a name for each
    point, shown by colour; ``hover``: the fields that are shown beside the pointer.
    """

    columns: Mapping[str, npt.NDArray[Any]]
    titles: Mapping[str, str]
    groups: npt.NDArray[np.int64] | None
    names: Sequence[str]
    colours: Sequence[str]
    choices: Sequence[Choice]
    hover: Sequence[str]
    arrows: bool = False
    """Lines from the origin to every point: variables rather than records."""
    circle: bool = False
    """A circle of radius one, and equal axes."""
    outlines: Sequence[Outline] = ()
    written: str = ""
    """The field whose words stand beside the points, of which there are few."""


class Bars(NamedTuple):
    """Bars by name, one set for each field that may be chosen."""

    names: Sequence[str]
    columns: Mapping[str, npt.NDArray[Any]]
    titles: Mapping[str, str]
    choices: Sequence[Choice]
    lines: Sequence[Line] = ()
    across: str = ""
    """What the bars are, in a word or two."""
    name: str = ""
    """What their height is, where lines need telling from it."""
    percent: bool = False


class Chart(NamedTuple):
    """One chart. ``caption``: how to read it, in plain words."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Picture]
    live: Points | Bars | None = None
