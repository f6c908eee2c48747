"""The secret-matrix machine: programs on matrices that nobody sees, under a collective lattice key.

docs/howto/write-a-secret-matrix-program.md writes one. In topological order:

- :mod:`coefficients`: public numbers as exact integers
- :mod:`machine`: what a secret matrix is, and what every machine can do with it
- :mod:`widths`: the ring, shifts, masks and blocks of a product
- :mod:`messages`: the messages between machines
- :mod:`sessions`: the seed that makes a session a new one
- :mod:`blinds`: what hides fingerprints of masked shares until the total is out
- :mod:`carried`: the coordinator's part of a matrix, as providers know it too
- :mod:`checks`: accounts that providers compare before anything is opened
- :mod:`simulated`: a machine on plain integers, with the rounding of a real run
- :mod:`local`: linear steps, which a role does with its own shares
- :mod:`openings`: shares that are added up by whoever may
- :mod:`threshold`: outputs of which any t of the providers can send enough
- :mod:`courses`: products under way
- :mod:`party`: what provider and coordinator have in common
- :mod:`provider`, :mod:`coordinator`: their machines; :mod:`roles`: both, and the messages of a product
- :mod:`rotations`: secret rotations; :mod:`polynomials`: functions of secret matrices
- :mod:`entrywise`: functions of secret numbers one by one
- :mod:`slots`: the other machine, on vectors in the slots of ciphertexts
- :mod:`costs`: what a program costs, before keys exist
"""
