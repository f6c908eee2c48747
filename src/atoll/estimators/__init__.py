"""What Python users call: classes and functions that build a study and run it.

- :mod:`constraints`: what options may be, and the errors for others
- :mod:`progress`: a line that says what a long fit is doing
- :mod:`base`: parties made of islands, and runs
- :mod:`sum_options`: options that belong to a secure sum
- :mod:`summation`: ``atoll.secure_sum``
- :mod:`privacy_options`: options of differential privacy, and the ledger
- :mod:`encrypted_model`: components that stay encrypted
- :mod:`pca`: ``atoll.PCA``
- :mod:`alignment`: ``atoll.align``
- :mod:`learning`: ``atoll.GLM``, ``atoll.describe`` and others that learn by secure sums
- :mod:`synthesis`: ``atoll.PPCASynthesizer``, ``atoll.MarginalSynthesizer``
"""
