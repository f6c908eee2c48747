"""Synthetic data from many owners: rows that look like theirs, and are nobody's.

- :mod:`schema`: public columns, and rows as cells
- :mod:`moments`: the one release: noisy moments of coded rows
- :mod:`ppca`: probabilistic PCA of released moments
- :mod:`latent_classes`, :mod:`maximum_entropy`: models that are fitted to the same moments
- :mod:`trees`: trees of two-way tables
- :mod:`models`: which model when, and rows drawn from it
- :mod:`release`: what owners and curator do around a secure sum
- :mod:`paper`: PPCA-DP-MH to the letter, which is not private as stated
- :mod:`protocol`: PPCA-DP-MH, in a form whose promise holds
- :mod:`marginal`: a tree of two-way tables, selected and measured
"""
