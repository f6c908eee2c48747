"""One renderer for each analysis: what the command line shows and writes, and what reports share.

- :mod:`base`: what a renderer gives
- :mod:`pca`: principal component analysis
- :mod:`sum`: a secure sum

A package brings a renderer as an entry point of ``atoll.analyses``, named for its analysis.
"""

from __future__ import annotations

from atoll.plugins import brought
from atoll.report.analyses.base import Analysis
from atoll.report.analyses.pca import PCA
from atoll.report.analyses.sum import Sum

GROUP = "atoll.analyses"

RENDERERS: dict[str, type[Analysis]] = {"pca": PCA, "sum": Sum}


def renderer_of(analysis: str) -> Analysis:
    """The renderer of an analysis; Atoll's own come first, and one that shows nothing comes last."""
    made = RENDERERS.get(analysis) or brought(GROUP, analysis) or Analysis
    return made(analysis)
