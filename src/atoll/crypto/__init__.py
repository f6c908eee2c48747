"""Cryptography: recipes over the primitives in ``hazmat``.

- :mod:`hazmat`: the primitives, easy to misuse; nothing outside this package imports them
- :mod:`envelope`: bytes that only the holder of one key can read
- :mod:`identity`: an organisation's keys, its fingerprint, what it signs
- :mod:`onion`: bytes under one envelope for each of several readers
- :mod:`shamir`: a secret in n shares, of which t are enough
- :mod:`lattice`: sums under lattice encryption; :mod:`paillier`: sums and products under Paillier's
- :mod:`products`: encrypted matrices times matrices in the clear
- :mod:`slots`: encrypted vectors of real numbers in slots, computed on under a key that all providers share
- :mod:`mixing`: layers of ElGamal encryption, stripped hop by hop
- :mod:`intersection`: ids as group elements under several parties' secrets, to find common ones
- :mod:`digest`: of large messages, made on vectors
- :mod:`fingerprint`: short numbers that tell long vectors apart, and add as they do
"""
