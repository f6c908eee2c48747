"""Cryptography: recipes over the primitives in ``hazmat``."""
