"""One renderer for each analysis: what the command line shows and writes, and what reports share.

- :mod:`base`: what a renderer gives
- :mod:`pca_tables`: loadings, contributions, cos²; :mod:`pca_charts`: charts of components
- :mod:`pca`: principal component analysis
- :mod:`sum_charts`: the chart of a sum; :mod:`sum`: a secure sum
- :mod:`learning_charts`: charts of coefficients, classes and clusters
- :mod:`learning`: regressions, classifiers and clusters
- :mod:`description`: a joint "Table 1"
- :mod:`synthesis_charts`: charts of synthetic rows; :mod:`synthesis`: synthetic data
- :mod:`alignment_charts`: the chart of an alignment; :mod:`alignment`: rows that all islands have

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
        "synthesis": "atoll.report.analyses.synthesis:Synthesis",
        "alignment": "atoll.report.analyses.alignment:Alignment",
    },
)
"""By the name of the analysis."""


def renderer_of(analysis: str) -> Analysis:
    """The renderer of an analysis; for one that has none, a renderer that shows nothing."""
    return RENDERERS.get(analysis, Analysis)(analysis)
