"""How SF-PCA finds components with the secret-matrix machine, in topological order.

- :mod:`moments`: a party's own sums, as integers; :mod:`columns`: the same where a party owns columns
- :mod:`certificate`: how accurate a result is; :mod:`correlation`: standardised columns
- :mod:`direct`: rotate the encrypted covariance and open it
- :mod:`covariance`, :mod:`scaled`, :mod:`rows`, :mod:`vertical`: products with the covariance, as parties
  hold the table
- :mod:`ahead`: products whose second halves travel ahead
- :mod:`strict`: power iterations on an encrypted sketch
- :mod:`deflation`: eigenvectors of a secret matrix; :mod:`verdict`: one bit of a secret number
- :mod:`unopened`: components of which nothing else is opened, by both
"""
