"""Secret vectors in the slots of ciphertexts: the machine that the SF-PCA paper's own routines run on.

In topological order:

- :mod:`machine`: what a secret vector is, and what a program may do with it
- :mod:`levelled`: levels, whereabouts and counts, which every machine keeps in the same way
- :mod:`clear`: the machine on plain numbers; :mod:`counting`: the one that only counts
"""
