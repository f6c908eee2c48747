"""Secure gradient descent: the paper's Algorithms 1 and 2, for any cost and gradient.

Mehnaz, Bellala, Bertino: A Secure Sum Protocol and Its Application to Privacy-preserving Multi-party
Analytics (2017), sections 6 and 7.

- :mod:`pairs`: costs with their gradients, by name
- :mod:`settings`: options, batches, and when a descent has settled
- :mod:`scenarios`: sums in the clear, and pooled tables, for comparison only
- :mod:`algorithm1`: rows split; :mod:`algorithm2`: columns split
- :mod:`disclosed`: who learns what
- :mod:`protocol`: both as one protocol
"""
