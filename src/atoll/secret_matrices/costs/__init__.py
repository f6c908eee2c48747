"""What a program of the secret-matrix machine costs, before keys exist.

- :mod:`rates`: processor seconds of every step, by kind of processor; :mod:`timing`: everybody's clocks
- :mod:`costing`: what steps cost the roles; :mod:`counted`: a machine that only counts
"""
