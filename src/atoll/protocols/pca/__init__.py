"""Principal component analysis, one protocol a folder or file, in topological order.

- :mod:`decompose`: from a joint covariance to components; :mod:`released`: what PCA protocols release
- :mod:`determined`: from how many components on the outputs say all second moments
- :mod:`private_pairs`, :mod:`private_release`: the stages of a differentially private release
- :mod:`pppca`: two secure sums; :mod:`dpdpca`: owners, a proxy and a data user
- :mod:`privatelocal`: owner after owner, each with noise of its own
- :mod:`baselines`: what the papers compare with
- :mod:`sfpca`: on encrypted data
"""
