"""Synthesizers: ``atoll.PPCASynthesizer`` and ``atoll.MarginalSynthesizer``.

- :mod:`columns`: what a user says of columns, as a study's schema
- :mod:`base`: fitting, sampling, saving: what synthesizers share
- :mod:`ppca`: ``atoll.PPCASynthesizer``
- :mod:`marginal`: ``atoll.MarginalSynthesizer``
"""
