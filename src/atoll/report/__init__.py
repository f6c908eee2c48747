"""Results and reviews for people: tables, pictures and texts.

- :mod:`units`: numbers as people read them; :mod:`steps`: steps of roles in plain words
- :mod:`agreement`: how well two sets of components agree
- :mod:`plots`: pictures, as PNG bytes
- :mod:`known`: who knows an output, in words
- :mod:`analyses`: how the results of each analysis are shown
- :mod:`assessment`: a review as text for an impact assessment
"""
