"""Islands: tables that stay where they are, read and checked there.

- :mod:`tables`: what rows are read from, piece by piece, one module per kind
- :mod:`headers`: names of columns, checked before they leave
- :mod:`readers`: files that hold tables, one module per format
- :mod:`capacity`: as many rows as a table could ever have
- :mod:`numbers`: values as doubles, and blocks of them
- :mod:`chosen`: some columns of an island, read here or computed on where they lie
- :mod:`island`: one party's table, read from a file, a frame or an array
- :mod:`levels`: levels of columns with categories
- :mod:`prepared`: a table as a study prepares it: categories as indicators, missing values filled or dropped
- :mod:`ids`: ids of rows as text that is the same everywhere
- :mod:`columns`: the column names and the number of rows of a file, without reading all of it
- :mod:`summary`: what an island would bring, for its owner's eyes
- :mod:`statistics`: count, mean and scatter of an island's rows, in one pass
"""
