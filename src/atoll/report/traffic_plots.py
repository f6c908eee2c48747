"""Pictures of what travelled: bytes by role, and messages one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from atoll.report import plots
from atoll.report.plots import COLOURS, Picture
from atoll.report.units import size
from atoll.runtime.transcript import Noted

SHOWN = 16


def sent_figure(sent: Mapping[str, int], received: Mapping[str, int], title: str) -> Picture:
    """Bytes that each role sent and was sent."""
    names = sorted(sent, key=lambda name: -(sent[name] + received.get(name, 0)))
    shown = names[:SHOWN]
    if len(names) > SHOWN:
        title += f" (the {SHOWN} busiest of {len(names)} roles)"
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.0, 1.5 + 0.36 * len(shown))
        places = np.arange(len(shown))
        _bars(axes, places - 0.19, [sent[name] for name in shown], COLOURS[0], "sent")
        _bars(axes, places + 0.19, [received.get(name, 0) for name in shown], COLOURS[1], "was sent")
        axes.set_yticks(places, [plots.shortened(name) for name in shown])
        axes.invert_yaxis()
        axes.set(title=title, xlabel="bytes")
        axes.xaxis.set_major_formatter(lambda value, _: size(int(value)))
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower right", ncols=2)
        return figure


def _bars(axes: Axes, places: object, values: Sequence[int], colour: str, label: str) -> None:
    axes.barh(places, values, height=0.36, color=colour, label=label)  # type: ignore[arg-type]


_KINDS = 7
"""So many kinds of messages have a colour of their own."""


def course_figure(course: Sequence[Noted], title: str) -> Picture:
    """Every message as a mark on the line of its sender, larger for more bytes, by the time it was sent."""
    lines = list(dict.fromkeys(one.sender for one in course))
    shown = {name: place for place, name in enumerate(lines[:SHOWN])}
    if len(lines) > SHOWN:
        title += f" (of the first {SHOWN} of {len(lines)} senders)"
    common = [kind for kind, _ in Counter(one.kind for one in course).most_common(_KINDS)]
    with mpl.rc_context(plots.STYLE):
        figure, axes = plots.canvas(7.6, max(2.6, 1.5 + 0.34 * len(shown)))
        for number, kind in enumerate((*common, None)):
            these = [
                o
                for o in course
                if o.sender in shown and (o.kind == kind or (kind is None and o.kind not in common))
            ]
            if these:
                marks = np.array([(o.at, shown[o.sender], 6 + 5 * np.log10(1 + o.bytes)) for o in these])
                colour = COLOURS[number] if kind is not None else plots.QUIET
                label = kind or "others"
                axes.scatter(
                    marks[:, 0], marks[:, 1], s=marks[:, 2], color=colour, alpha=0.6, lw=0, label=label
                )
        axes.set_yticks(range(len(shown)), [plots.shortened(name) for name in shown])
        axes.invert_yaxis()
        axes.set(title=title, xlabel="seconds from the first message")
        figure.legend(loc="outside right upper", title="kind")
        return figure
