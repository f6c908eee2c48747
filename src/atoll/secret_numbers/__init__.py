"""Secret numbers: shares modulo a prime, and functions of them that polynomials approximate badly.

In topological order:

- :mod:`field`: the prime, and fixed-point numbers as its elements
- :mod:`machine`: what parties may do with shares, and what every machine does alike
- :mod:`together`: all parties in one, for tests and planning
- :mod:`messages`: the messages between parties, and with a dealer
- :mod:`party`: one party's machine
- :mod:`supplies`: where random products and bits come from
- :mod:`bits`: the bits of a secret number, its sign, its highest bit
- :mod:`functions`: square root, inverse square root, division
- :mod:`eigen`: eigenvectors of a small symmetric matrix
"""
