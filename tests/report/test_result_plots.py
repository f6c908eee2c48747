"""Pictures of a result in a notebook: axes that show themselves."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from tests.report.test_html import pca_result
from tests.support.examples import pppca

from atoll.errors import NotReleased
from atoll.runtime.execute import run_study


def test_each_picture_is_axes_that_a_notebook_shows() -> None:
    result = pca_result()
    drawn = {name: getattr(result.plot, name)() for name in ("scree", "projection", "biplot", "loadings")}
    for axes in drawn.values():
        assert isinstance(axes, Axes)
        assert axes._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert drawn["scree"].get_ylabel() == "Share of the variance"
    assert "PC1" in drawn["projection"].get_xlabel()
    np.testing.assert_allclose(
        sorted(patch.get_height() for patch in drawn["scree"].patches)[::-1],
        result["explained_variance"] / result["total_variance"],
    )


def test_own_rows_are_drawn_where_the_study_releases_none() -> None:
    example = pppca()
    run = run_study(example.study, example.own)
    name, result = next((n, r) for n, r in run.by_party.items() if n in example.islands and "components" in r)
    with pytest.raises(NotReleased, match="nothing to draw 'projections'"):
        result.plot.projection()
    axes = result.plot.projection(table=example.islands[name])
    assert sum(len(part.get_offsets()) for part in axes.collections) == example.islands[name].n_rows
    assert "projections" in result.plot.names(table=example.islands[name])
    assert "projections" not in result.plot.names()
