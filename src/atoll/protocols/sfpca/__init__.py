"""SF-PCA: PCA in which nothing but the agreed output is ever opened; see the modules below.

- :mod:`protocol`: the roles; :mod:`parameters`, :mod:`messages`, :mod:`disclosure`
- :mod:`held`: what they know before the first encryption; :mod:`releases`: what is released at the end
- :mod:`ranges`: the public range of the data; :mod:`moments`: a party's own sums
- :mod:`direct`, :mod:`strict`: the recipes; :mod:`certificate`: how accurate the result is
- :mod:`correlation`: standardised columns; :mod:`entrywise`: functions of secret numbers one by one
- :mod:`private`: with an epsilon, noise in the moments before they are encrypted
- :mod:`polynomials`: functions of secret matrices; :mod:`rotations`: secret Haar rotations
- :mod:`shared`: secret matrices as every role holds them, and what a machine can do with them
- :mod:`bounds`: how wide shifts, masks and blocks must be
- :mod:`parties`: machines across roles: provider and coordinator
- :mod:`simulated`: the same programs on plain integers, with the rounding of the real run
"""
