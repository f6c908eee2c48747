"""Benchmarks that ship with the package: ratios measured in one run, on the machine that asks."""
