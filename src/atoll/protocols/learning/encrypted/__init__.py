"""Least squares and ridge under encryption: coefficients are opened, and nothing else of the rows.

- :mod:`program`: the joint Gram matrix and its inverse, on the secret-matrix machine
- :mod:`prepared`: an island's columns in units of their own length
- :mod:`protocol`: the roles where islands hold columns, and what they learn
- :mod:`moments`: the joint moments of rows that are split
- :mod:`rows`: the roles where islands hold rows, and what they learn
"""
