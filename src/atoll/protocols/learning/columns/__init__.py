"""Learning where islands hold columns of the same rows: models that stay split among their owners.

- :mod:`consent`: what summed scores give away, and the options that say that it is known
- :mod:`table`: the joint table's columns and rows, and an island's part of it
- :mod:`subspace`: a convex problem on the span of directions whose scores are known
- :mod:`course`: what the leader tells, what every owner adds, and what sizes they have
- :mod:`smooth`: least squares, ridge and classifiers
- :mod:`proximal`: the lasso
- :mod:`lloyd`: k-means
- :mod:`released`: what is released of a split model
- :mod:`split`: the roles
- :mod:`disclosed`: who learns what, and what it costs
- :mod:`kinds`: each kind as a protocol
"""
