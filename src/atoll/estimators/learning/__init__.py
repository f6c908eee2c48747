"""Estimators that learn from a target, or find clusters, with scikit-learn's names and objectives.

- :mod:`base`: tables with their targets, the study, and what was released
- :mod:`options`: options, each declared once
- :mod:`split`: rows or columns, and models that stay split
- :mod:`linear`: least squares, ridge and lasso
- :mod:`classifiers`: logistic regression and support vectors
- :mod:`glm`: generalized linear models, with the table that goes with them
- :mod:`cluster`: k-means
- :mod:`descent`: gradient descent for any cost
- :mod:`description`: ``atoll.describe``
"""
