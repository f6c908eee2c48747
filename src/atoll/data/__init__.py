"""Islands: tables that stay where they are, read and checked there.

- :mod:`readers`: files that hold tables, one module per format
- :mod:`headers`: names of columns, checked before they leave
- :mod:`island`: one party's table, read from a file, a frame or an array
- :mod:`columns`: the column names and the number of rows of a file, without reading all of it
- :mod:`statistics`: count, mean and scatter of an island's rows, in one pass
"""
