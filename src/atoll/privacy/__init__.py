"""Differential privacy: exact noise, true sensitivities, accounting, and the ledger.

- :mod:`samplers`: exact discrete Laplace, discrete Gaussian and Polya draws from a seed
- :mod:`normal`: the normal distribution function, without SciPy
- :mod:`calibration`: (epsilon, delta) <-> Gaussian DP <-> zCDP: numbers only, no noise
- :mod:`sensitivity`: how far one row moves a sum, a scatter matrix, a joint release
- :mod:`mechanisms`: what noise each owner adds (shares) and, apart from it, what that guarantees
- :mod:`tails`: how far noise on a matrix reaches, for the masks that hide it
- :mod:`grid`: rows cut, quantised toward zero and multiplied in exact integers
- :mod:`dp_moments`: private mean, radius and second moments, step by step around any secure sum
- :mod:`noise_statement`: how much of private components is noise, from released numbers
- :mod:`pairs`: the one stage without a mean: unit differences of row pairs
- :mod:`paper_forms`: the published noise as printed, for reproduction; not private as claimed
- :mod:`accountant`: what several releases cost together, as (epsilon, delta) and in words
- :mod:`identities`: when two ways to write a data set's name are one data set
- :mod:`accounts`: budgets, releases, debits, and the account that they add up to
- :mod:`history`: which exact studies were made of a data set, against differencing
- :mod:`ledger_file`: where the ledger stands, how it is made, and what earlier versions left
- :mod:`ledger`: what a site has spent on a data set, and what it still may
- :mod:`lab`: what only tests, benchmarks and reproduction use
"""
