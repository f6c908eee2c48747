"""SF-PCA: PCA in which nothing but the agreed output is ever opened; see the modules below.

- :mod:`shared`: secret matrices as every role holds them, and what a machine can do with them
- :mod:`bounds`: how wide shifts, masks and blocks must be
- :mod:`simulated`: the same programs on plain integers, with the rounding of the real run
- :mod:`parties`: the same programs across roles: provider and coordinator
- :mod:`rotations`: secret Haar rotations at high precision
- :mod:`programs`: the recipes, direct and strict
"""
