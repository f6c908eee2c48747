"""DPDPCA: differentially private PCA with owners, a proxy and a data user.

- :mod:`terms`: what both forms share; :mod:`paper`: the published form, which is not private as stated
- :mod:`protocol`: the corrected form, and the choice between the two
"""
