"""PPPCA: PCA on row-split tables by two secure sums.

- :mod:`outputs`: when its outputs say the second moments; :mod:`told`: what the server tells providers
- :mod:`grid`: numbers that do not fit the fixed-point grid
- :mod:`private`: the same roles with an epsilon
- :mod:`parameters`: what a study may say
- :mod:`ellipses`: where each island's rows lie, as an output of its own
- :mod:`protocol`: messages, steps and roles
"""
