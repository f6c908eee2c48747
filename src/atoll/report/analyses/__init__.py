"""One renderer for each analysis: what the command line shows and writes, and what reports share.

- :mod:`base`: what a renderer gives
- :mod:`pca`: principal component analysis
- :mod:`sum`: a secure sum
- :mod:`learning`: regressions, classifiers and clusters
- :mod:`description`: a joint "Table 1"

A package brings a renderer as an entry point of ``atoll.analyses``, named for its analysis.
"""

from __future__ import annotations

from atoll.registry import Registry
from atoll.report.analyses.base import Analysis

RENDERERS: Registry[type[Analysis]] = Registry(
    "atoll.analyses",
    "a renderer of results",
    Analysis,
    {
        "pca": "atoll.report.analyses.pca:PCA",
        "sum": "atoll.report.analyses.sum:Sum",
        "regression": "atoll.report.analyses.learning:Regression",
        "classification": "atoll.report.analyses.learning:Classification",
        "clusters": "atoll.report.analyses.learning:Clusters",
        "description": "atoll.report.analyses.description:Description",
    },
)
"""By the name of the analysis."""


def renderer_of(analysis: str) -> Analysis:
    """The renderer of an analysis; for one that has none, a renderer that shows nothing."""
    return RENDERERS.get(analysis, Analysis)(analysis)
