"""SF-PCA's Algorithm 1 with the paper's own routines, on ciphertexts with slots. In topological order:

- :mod:`parameters`: the paper's letters as options, and what follows from them
- :mod:`messages`: the messages of its roles, but for those of the machines
- :mod:`sketch`: the public count-sketch
- :mod:`shared`: the steps that are no polynomials, on shares (D.1)
- :mod:`algorithm1`: Algorithm 1, a program for every role's machine
- :mod:`intervals`: the intervals of its approximations, from simulations in the clear
- :mod:`certificate`: how a wrong result is noticed
- :mod:`counts`: what a run takes in operations, counted on shapes
- :mod:`closed`: what its steps take, as closed forms beside the paper's
- :mod:`determined`: whether outputs say all second moments
- :mod:`noise`: of a shuffled list (D.3)
- :mod:`releases`: what is opened at the end, for whom
- :mod:`planner`: what a run costs in messages; :mod:`forecast`: its time and memory
- :mod:`reference`: the same in the clear, without series
- :mod:`disclosure`: what each role learns, and what can be released
- :mod:`protocol`: the roles
"""
