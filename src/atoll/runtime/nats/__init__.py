"""Runs across machines, over NATS: parties, the hub between them, and what survives a crash of either.

- :mod:`carrier`: what moves sealed frames between parties, and promises nothing else; one in this process
"""
