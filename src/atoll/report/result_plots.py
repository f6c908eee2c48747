"""Pictures of a result for notebooks: ``result.plot.scree()`` and others, as matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atoll.data.island import as_island
from atoll.errors import NotReleased
from atoll.report.analyses import renderer_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from atoll.runtime.result import Result


class Plots:
    """What can be drawn of a result, by name; ``table``: the holder's own, for pictures of its own rows.

    Each method returns the axes, which a notebook shows, and whose ``figure`` saves itself:
    ``result.plot.scree().figure.savefig("scree.pdf")``.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __repr__(self) -> str:
        return f"<Pictures of {self._result.study.name!r}: {', '.join(self.names()) or 'none'}>"

    def names(self, table: Any = None) -> list[str]:
        """What :meth:`draw` knows for this result."""
        return [chart.name for chart in self._charts(table)]

    def draw(self, name: str, table: Any = None) -> Axes:
        """One of the pictures that a report shows, by its name."""
        charts = {chart.name: chart for chart in self._charts(table)}
        if name not in charts:
            known = ", ".join(charts) or "none"
            raise NotReleased(
                f"there is nothing to draw {name!r} from in this result (there is: {known})",
                hint="it was not released to you, or the picture needs your own table: table=...",
            )
        axes: Axes = charts[name].draw().axes[0]
        return axes

    def scree(self) -> Axes:
        """Each component's share of the variance, and the share of all up to it."""
        return self.draw("scree")

    def projection(self, table: Any = None) -> Axes:
        """Records on the first two components: those that the study releases, else the rows of ``table``."""
        return self.draw("projections", table)

    def biplot(self, table: Any = None) -> Axes:
        """Records and columns in one picture."""
        return self.draw("biplot", table)

    def loadings(self) -> Axes:
        """The largest entries of the first component; the axes of others stand in the same figure."""
        return self.draw("loadings")

    def _charts(self, table: Any) -> list[Any]:
        own = None if table is None else as_island("own", table)
        return list(renderer_of(self._result.study.analysis).charts(self._result, own))
