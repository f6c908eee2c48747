"""The secret-matrix machine: programs on matrices that nobody sees, under a collective lattice key.

In topological order:

- :mod:`machine`: what a secret matrix is, and what every machine can do with it
- :mod:`widths`: how wide shifts, masks and blocks of a product must be
- :mod:`messages`: what travels; :mod:`carried`: the coordinator's part, as its carrier knows it
- :mod:`checks`: what providers compare before anything is opened
- :mod:`simulated`: the same programs on plain integers, with the rounding of a real run
- :mod:`local`: what a role does with its shares alone; :mod:`openings`: shares added up by whoever may
- :mod:`courses`: products on their way; :mod:`roles`: the machines of provider and coordinator
- :mod:`rotations`: secret rotations; :mod:`polynomials`: functions of secret matrices
- :mod:`entrywise`: functions of secret numbers one by one
- :mod:`costs`: what a program costs, before keys exist
"""
