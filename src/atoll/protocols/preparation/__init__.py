"""What a study does to every island's table before its protocol reads it: the study's ``[table]``.

- :mod:`messages`: what islands and the leading role tell each other
- :mod:`joint`: joint categories, joint means of incomplete columns, and columns that are flat
- :mod:`prepare`: a protocol with this step before it

Where the study itself says everything (levels, rows to drop), each island prepares its table alone. Else one
role of the protocol leads: islands tell it column names and levels, and add up, with the study's secure sum,
how many values each column has and what those of incomplete columns sum up to.
"""
