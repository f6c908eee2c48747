"""``atoll.PCA`` and, for each protocol that serves it, an adapter; in topological order.

- :mod:`columns`: which columns a fit uses
- :mod:`by_island`: tables of several islands in, their projections out
- :mod:`tables`: how a fit prepares tables, and how its model prepares those that it projects
- :mod:`adapter`: what a protocol needs to serve ``atoll.PCA``
- :mod:`joint`: fitted attributes and projections of protocols that release components and a mean
- :mod:`pppca`, :mod:`dpdpca`, :mod:`privatelocal`, :mod:`baselines`, :mod:`sfpca`: the adapters, each named
  for its protocol's module; :mod:`sfpca_paper`: that of SF-PCA's variant with the paper's own routines
- :mod:`registry`: which adapter serves which protocol, and where other packages add theirs
- :mod:`sklearn_twin`: a fitted estimator as scikit-learn knows it
- :mod:`model`: a fitted PCA in use: projections, likelihoods, pictures
- :mod:`estimator`: ``atoll.PCA`` itself
"""
