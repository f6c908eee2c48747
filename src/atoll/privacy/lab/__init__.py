"""What only tests, benchmarks and reproduction use.

- :mod:`rehearsal`: all stages of a private release in one process, with a plain sum
- :mod:`joint_moments`: the one-round alternative: second moments, sum and count together
- :mod:`audit`: a lower bound on the epsilon that a mechanism really has
"""
