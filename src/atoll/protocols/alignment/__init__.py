"""Alignment: the rows that all islands have, in one order.

- :mod:`protocol`: private set intersection
"""
