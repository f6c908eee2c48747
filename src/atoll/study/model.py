"""A study: the one immutable description of a run, and what everybody approves.

Estimators build it, TOML loads it, ``atoll review`` prints it, engines run it; secure sums are
bound to its digest. Local matters (data paths, addresses, time-outs) stand in :class:`Local`, outside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from atoll.errors import StudyError
from atoll.study.address import Address
from atoll.study.tables import read_table

FORMAT = 1
DEFAULT_SUM = "shares"
"""The secure sum of a study that names none."""

P = TypeVar("P", bound="Parameters")


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of a protocol's parameters; each protocol declares its own."""


class Party(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One participant, the roles it plays and, across machines, its key's fingerprint."""

    name: str
    roles: tuple[str, ...]
    fingerprint: str | None = None


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one site knows and nobody signs: where the data lie, which data sets they are, the ledger in
    which releases from them are booked (the site's own unless named), for how many colluding owners the
    noise of a private study must be made for the site to take part, and how many rows each data set could
    ever have."""

    data: dict[str, str] = {}
    identities: dict[str, str] = {}
    ledger: str | None = None
    min_colluders: int = 0
    capacities: dict[str, int] = {}


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is computed, by whom, with which protection, and who gets what."""

    name: str
    parties: tuple[Party, ...]
    protocol: str
    analysis: str = "pca"
    secure_sum: str = DEFAULT_SUM
    partition: str = "horizontal"
    sum_options: Mapping[str, Any] = MappingProxyType({})
    parameters: Mapping[str, Any] = MappingProxyType({})
    release: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __post_init__(self) -> None:
        for field in ("sum_options", "parameters", "release"):
            msgspec.structs.force_setattr(self, field, MappingProxyType(dict(getattr(self, field))))

    def __reduce__(self) -> tuple[Any, ...]:
        # Estimators are copied and stored by their users; frozen mappings need a way through.
        return from_plain, (to_plain(self),)

    def who(self, role: str) -> tuple[Address, ...]:
        """Every address that plays ``role``, in the study's order."""
        return tuple(Address(party.name, role) for party in self.parties if role in party.roles)

    def the(self, role: str) -> Address:
        """The one address that plays ``role``."""
        found = self.who(role)
        if len(found) != 1:
            raise StudyError(f"the study needs one {role}, it names {len(found)}")
        return found[0]

    def addresses(self) -> tuple[Address, ...]:
        """Every role of every party."""
        return tuple(Address(party.name, role) for party in self.parties for role in party.roles)

    def releases(self, output: str, address: Address) -> bool:
        """Whether ``output`` may reach ``address`` (named by its role or its party)."""
        named = self.release.get(output, ())
        return address.role in named or address.party in named

    def receivers(self, output: str) -> tuple[Address, ...]:
        """Every address that ``output`` is released to."""
        return tuple(address for address in self.addresses() if self.releases(output, address))

    def read_parameters(self, kind: type[P]) -> P:
        """The parameters as the protocol's own typed struct."""
        return read_table(self.parameters, kind, ("parameters",))

    def canonical(self) -> bytes:
        """The bytes that the digest covers: every field, keys sorted."""
        return msgspec.json.encode({"format": FORMAT, **to_plain(self)}, order="sorted")

    @property
    def digest(self) -> str:
        """What islands approve and messages are bound to."""
        return hashlib.sha256(self.canonical()).hexdigest()


def to_plain(study: Study) -> dict[str, Any]:
    """The study as plain data, without defaults left out."""
    fields = {name: getattr(study, name) for name in study.__struct_fields__}
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in fields.items()}
    builtins: dict[str, Any] = msgspec.to_builtins(plain)
    return builtins


def from_plain(plain: Mapping[str, Any]) -> Study:
    """The inverse of :func:`to_plain`, checked."""
    try:
        return msgspec.convert(dict(plain), Study)
    except msgspec.ValidationError as error:
        raise StudyError(str(error)) from None
