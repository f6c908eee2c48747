"""Organisations for tests across machines: identities, and studies that pin them."""

from __future__ import annotations

import hashlib

from msgspec import structs

from atoll.crypto.identity import Identity
from atoll.protocols import resolve
from atoll.study.model import Study


def identity(name: str) -> Identity:
    """The same organisation's keys in every test."""
    return Identity(hashlib.sha256(f"test {name}".encode()).digest())


def identities(study: Study) -> dict[str, Identity]:
    """Keys for every party of a study."""
    return {party.name: identity(party.name) for party in study.parties}


def pinned(study: Study) -> Study:
    """The study with every party's fingerprint in it, resolved."""
    parties = tuple(
        structs.replace(party, fingerprint=identity(party.name).fingerprint) for party in study.parties
    )
    return resolve(structs.replace(study, parties=parties))
