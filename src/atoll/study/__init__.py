"""Studies: what is computed, by whom, with which protection, and who gets what.

- :mod:`address`: one role of one party
- :mod:`tables`: plain tables to typed ones, with errors that say where
- :mod:`model`: the study itself, and its digest
- :mod:`places`: the line on which each key of a file stands
- :mod:`load`: a study file to a study
- :mod:`pins`: fingerprints written into a study file
"""
