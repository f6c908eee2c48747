"""What an island reads its rows from: one module per kind of table, all read piece by piece.

- :mod:`base`: what a table is
- :mod:`arrays`: NumPy arrays
- :mod:`frames`: pandas frames
- :mod:`arrow`: columns of Apache Arrow, and tables that lie in memory
- :mod:`scratch`: rows that were read once and are kept until the run is over, in memory or in a private file
- :mod:`streams`: Arrow tables and readers, and polars frames, by what they can do
- :mod:`cluster`: Dask arrays and data frames, with statistics computed where they lie
- :mod:`sql`: what a query to a database answers
- :mod:`joined`: several files that are one table
"""
