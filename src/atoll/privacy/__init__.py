"""Differential privacy: exact noise, true sensitivities, accounting, and the ledger.

| file             | what stands there                                                                  |
|------------------|------------------------------------------------------------------------------------|
| samplers.py      | exact discrete Laplace, discrete Gaussian and Polya draws from a seed               |
| calibration.py   | (epsilon, delta) <-> Gaussian DP <-> zCDP: numbers only, no noise                   |
| sensitivity.py   | how far one row moves a sum, a scatter matrix, a joint release                      |
| mechanisms.py    | what noise each owner adds (shares) and, apart from it, what that guarantees        |
| tails.py         | how far noise on a matrix reaches, for the masks that hide it                       |
| grid.py          | rows cut, quantised toward zero and multiplied in exact integers                    |
| dp_moments.py    | private mean, radius and second moments, step by step around any secure sum         |
| pairs.py         | the one stage without a mean: unit differences of row pairs                        |
| joint_moments.py | the one-round alternative: second moments, sum and count together                  |
| rehearsal.py     | all stages in one process with a plain sum, for benchmarks and audits              |
| audit.py         | a lower bound on the epsilon that a mechanism really has                           |
| paper_forms.py   | the published noise as printed, for reproduction; not private as claimed            |
| accountant.py    | what several releases cost together, as (epsilon, delta) and in words               |
| identities.py    | when two ways to write a data set's name are one data set                           |
| accounts.py      | budgets, releases, debits, and the account that they add up to                      |
| ledger.py        | what a site has spent on a data set, and what it still may                          |
| ledger_file.py   | where the ledger stands, how it is made, and what earlier versions left             |
"""
