"""Secret vectors in the slots of ciphertexts: the machine that the SF-PCA paper's own routines run on.

In topological order:

- :mod:`machine`: what a secret vector is, and what a program may do with it
"""
