"""SF-PCA: PCA on encrypted data; nothing but the agreed output is opened. In topological order:

- :mod:`recipes`: how components are found on secret matrices
- :mod:`messages`: the messages of its roles; :mod:`ranges`: the public range of the data
- :mod:`parameters`: the study's options; :mod:`schema`: the joint table's columns and rows
- :mod:`opened_range`: how everybody learns the data's range, where the study gives no bounds
- :mod:`scores`: projections of a provider's own rows; :mod:`private`: with an epsilon, noise in the moments
- :mod:`prepared`: public facts and local sums that a provider prepares before encryption
- :mod:`digits`: how many digits are released; :mod:`disclosure`: what each role learns
- :mod:`beforehand`: what comes before the recipe in every variant, counted
- :mod:`steps`: the steps of a run on the machine, for roles and planner alike
- :mod:`planner`: what a run costs in messages; :mod:`forecast`: its time and memory
- :mod:`settled`: which recipe a study takes, by the forecast on its links
- :mod:`releases`: what is released at the end; :mod:`kept`: shares that stay closed
- :mod:`timed`: what it does with an island's own table, for ``atoll bench calibrate``
- :mod:`protocol`: the roles; :mod:`later`: later steps on kept shares
- :mod:`paper`: the other variant, with the paper's own routines on ciphertexts with slots
"""
