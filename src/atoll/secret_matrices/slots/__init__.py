"""Secret vectors in the slots of ciphertexts: the machine that the SF-PCA paper's own routines run on.

In topological order:

- :mod:`machine`: what a secret vector is, and what a program may do with it
- :mod:`levelled`: levels, whereabouts and counts, which every machine keeps in the same way
- :mod:`approximations`: square root, sign and inverse square root as series on agreed intervals
- :mod:`clear`: the machine on plain numbers; :mod:`counting`: the one that only counts
- :mod:`products`: rows times a matrix (the paper's M1 to M4); :mod:`packed`: small matrices (M5)
- :mod:`householder`, :mod:`orthogonal`, :mod:`eigen`: algorithms 2, 3 and 4 of the paper
"""
