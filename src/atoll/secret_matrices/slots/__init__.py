"""Secret vectors in the slots of ciphertexts: the machine that the SF-PCA paper's own routines run on.

In topological order:

- :mod:`machine`: what a secret vector is, and what a program may do with it
- :mod:`levelled`: levels, whereabouts and counts, which every machine keeps in the same way
- :mod:`approximations`: square root, sign and inverse square root as series on agreed intervals
- :mod:`clear`: the machine on plain numbers; :mod:`counting`: the one that only counts
- :mod:`rates`: processor seconds of every operation
- :mod:`products`: rows times a matrix (the paper's M1 to M4); :mod:`packed`: small matrices (M5)
- :mod:`householder`, :mod:`orthogonal`, :mod:`eigen`: algorithms 2, 3 and 4 of the paper
- :mod:`costs`: what each routine costs, and the paper's formulas beside
- :mod:`integers`: whole numbers that are shares of rows
- :mod:`later`: local steps under encryption, done together on all cores; :mod:`steps`: the other heavy ones
- :mod:`shuffles`: a list in an order that nobody knows
- :mod:`messages`: the messages between encrypted machines
- :mod:`keys`: which keys there are; :mod:`sums`: whether they are the sums that they should be
- :mod:`openings`: outputs for those who may have them
- :mod:`party`: what provider and coordinator have in common
- :mod:`dealing`: outputs that a threshold of the providers release
- :mod:`provider`, :mod:`coordinator`: their encrypted machines; :mod:`roles`: both, and what a receiver uses
"""
