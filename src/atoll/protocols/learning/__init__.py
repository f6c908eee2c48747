"""Learning on secure sums: regression, classification and clustering.

- :mod:`families`: families and links of generalized linear models
- :mod:`design`: an island's rows as a model sees them, in common units
- :mod:`normal`: symmetric systems that sums make
- :mod:`newton`: Newton's method, driven by sums
- :mod:`task`: what islands add at a point, and where the server goes from the total
- :mod:`rows`: the roles, where islands hold rows
- :mod:`losses`: losses of a linear score
- :mod:`glm`: generalized linear models
- :mod:`least_squares`: least squares, ridge and lasso
- :mod:`classifier`: logistic regression and support vectors
- :mod:`kmeans`: k-means
- :mod:`columns`: where islands hold columns: models that stay split
- :mod:`encrypted`: least squares under encryption: coefficients only
- :mod:`descent`: secure gradient descent, the paper's Algorithms 1 and 2
- :mod:`suppression`: small counts are left out
- :mod:`describe`: the joint "Table 1"
- :mod:`summary`: the table that goes with a regression
"""
