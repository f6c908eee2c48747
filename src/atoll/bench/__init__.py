"""What runs take on this machine: seconds and bytes, measured side by side.

- :mod:`timing`: processor time of one call
- :mod:`sums`: every secure sum on the same vectors
- :mod:`figure5`: SF-PCA on the data sets of its paper, as in its Figure 5
- :mod:`slot_rates`: what operations on vectors in slots take
- :mod:`calibrate`: what single steps cost, for the predictions of ``atoll review``
- :mod:`paper_counts`: operations of the paper variant
- :mod:`paper`: that variant beside its paper, extrapolated from both
"""

FIGURE5 = "sfpca"
"""The protocol of :mod:`figure5`, and so its command's name."""
PAPER = "sfpca-paper"
"""The protocol of :mod:`paper`, and its command's name."""
