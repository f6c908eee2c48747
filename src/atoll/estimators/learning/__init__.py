"""Estimators that learn from a target, or find clusters, with scikit-learn's names and objectives.

- :mod:`base`: tables with their targets, the study, and what was released
- :mod:`linear`: least squares, ridge and lasso
- :mod:`classifiers`: logistic regression and support vectors
- :mod:`glm`: generalized linear models, with the table that goes with them
- :mod:`cluster`: k-means
- :mod:`description`: ``atoll.describe``
"""
