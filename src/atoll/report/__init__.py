"""Results and reviews for people: tables, pictures and texts.

- :mod:`units`: numbers as people read them; :mod:`steps`: steps of roles in plain words
- :mod:`runs`: how far a site's runs are, in words
- :mod:`agreement`: how well two sets of components agree
- :mod:`charts`: what a chart of a report is
- :mod:`plots`: pictures, as PNG bytes; :mod:`pca_plots`, :mod:`learning_plots`, :mod:`traffic_plots`: more of
  them, for reports
- :mod:`synthesis_plots`: pictures of synthetic rows; :mod:`synthetic`: how they compare with an owner's own
- :mod:`known`: who knows an output, in words
- :mod:`own_rows`: an owner's rows, projected or predicted
- :mod:`analyses`: how the results of each analysis are shown
- :mod:`result_plots`: pictures of a result for notebooks
- :mod:`assessment`: a review as text for an impact assessment
- :mod:`html`: a result as one page
"""
