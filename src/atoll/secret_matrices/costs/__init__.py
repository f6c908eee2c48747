"""What a program of the secret-matrix machine costs, before keys exist.

- :mod:`rates`: processor seconds of every step, by kind of processor; :mod:`timing`: everybody's clocks
- :mod:`costing`: what steps cost the roles; :mod:`wires`: messages of all roles, counted
- :mod:`counted`: a machine that only counts; :mod:`foreseen`: the same for programs on vectors in slots
"""
