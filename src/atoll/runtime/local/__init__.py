"""The local engine: every role in this process.

- :mod:`faults`: faults to try a protocol against; :mod:`links`: emulated links; :mod:`meter`: whose work
- :mod:`engine`: the engine itself
"""
