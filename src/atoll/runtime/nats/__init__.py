"""Runs across machines, over NATS: parties, the hub between them, and what survives a crash of either.

- :mod:`carrier`: what moves sealed frames between parties, and promises nothing else; one in this process
- :mod:`site`: one site's folder: keys, partners, proposals, runs
- :mod:`starts`: how a run starts: a signed proposal, an approval from every party
- :mod:`policy`: which studies a site takes part in
"""
