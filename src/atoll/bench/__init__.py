"""What runs take on this machine: seconds and bytes, measured side by side.

- :mod:`sums`: every secure sum on the same vectors
- :mod:`figure5`: SF-PCA on the data sets of its paper, as in its Figure 5
- :mod:`paper`: its own form beside the paper, extrapolated from :mod:`paper_counts` and :mod:`slot_rates`
- :mod:`calibrate`: what single steps cost, for the predictions of ``atoll review``
"""

FIGURE5 = "sfpca"
"""The protocol of :mod:`figure5`, and so its command's name."""
PAPER = "sfpca-paper"
"""The protocol of :mod:`paper`, and its command's name."""
