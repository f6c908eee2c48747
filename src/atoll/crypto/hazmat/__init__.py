"""Low-level primitives. Easy to misuse: only the recipes in ``atoll.crypto`` call them.

- :mod:`golib`: the Go library: loading it, calling it, its errors
- :mod:`parameters`: the numbers of lattice encryption, their security and their limits
- :mod:`lattice`: exact sums under lattice encryption
- :mod:`integers`: matrices of exact integers, as the Go library takes them
- :mod:`rings`: the rings of products, their limits and sizes
- :mod:`product`: an encrypted matrix times a matrix in the clear
- :mod:`slots`: encrypted vectors of real numbers in slots, and what computes on them
- :mod:`slot_secrets`: what needs a secret of these: key parts, refreshing, opening, shares
- :mod:`group`: ElGamal encryption in a group, for mixing
- :mod:`fixedbase`: many powers of one base, from a table
- :mod:`paillier`: Paillier's keys, encryption and decryption
- :mod:`packing`: many numbers in one big integer
- :mod:`ciphertexts`: whole vectors under Paillier encryption
- :mod:`gilboa`: products of two parties' numbers, as shares for both
- :mod:`significands`: the encoding of numbers that the papers use
"""
