"""A study: the one immutable description of a run, and what everybody approves.

Estimators build it, TOML loads it, ``atoll review`` prints it, engines run it; secure sums are
bound to its digest. What a study leaves out its protocol fills in (:func:`atoll.protocols.resolve`) before
anybody sees the digest, so that another default is another study. Local matters (data paths, addresses,
time-outs) stand in :class:`Local`, outside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec

from atoll.errors import StudyError
from atoll.shown import html_table, text_table
from atoll.study.address import Address
from atoll.study.tables import Path, read_table

FORMAT = 2
"""Of the bytes that the digest covers. Up to 1 these were only what a file stated."""
DEFAULT_SUM = "shares"
"""The secure sum of a study that names none."""

P = TypeVar("P", bound="Parameters")
S = TypeVar("S", bound=msgspec.Struct)


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of a protocol's parameters; each protocol declares its own."""

    @classmethod
    def read(cls, table: Mapping[str, Any], path: Path) -> Self:
        """From a table of a study, which stands at ``path`` in it."""
        return read_table(table, cls, path)

    def plain(self) -> dict[str, Any]:
        """As a table that reads the same, with every default filled in."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class Party(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One participant, the roles it plays and, across machines, its key's fingerprint."""

    name: str
    roles: tuple[str, ...]
    fingerprint: str | None = None


class Assessment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an impact assessment says of a study beside what is computed.

    All of it is part of the digest. Who approves records for one purpose, on one legal basis, for so long and
    under one controller has not approved them for another. Only the person to ask may change meanwhile: the
    contact stands in :class:`Local`.
    """

    purpose: str | None = None
    legal_basis: str | None = None
    controller: str | None = None
    processors: tuple[str, ...] = ()
    data_categories: tuple[str, ...] = ()
    retention: str | None = None


class TablePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a study does to every island's table before its protocol reads it: the table ``[table]``.

    ``columns``, ``exclude``: the columns to use, or not to; ``categorical``: those that hold categories and
    become one indicator for each level; ``levels``: their levels, where the study says them (else islands
    tell theirs); ``missing``: refuse a table with missing values, drop such rows, or fill in each column's
    joint mean; "allele frequency": the same for genotypes (0, 1, 2), and for nothing else; ``flat``: columns
    that are constant, or have no value at all, on all islands together are not looked for, kept as zeros, or
    dropped.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = {}
    missing: Literal["refuse", "drop", "mean", "allele frequency"] = "refuse"
    flat: Literal["ignore", "zeros", "drop"] = "ignore"

    @property
    def fills(self) -> bool:
        """Whether missing values are filled in."""
        return self.missing in ("mean", "allele frequency")

    @property
    def adds(self) -> bool:
        """Whether islands have to add something up before the protocol starts."""
        return self.fills or self.flat != "ignore"

    @property
    def exchanges(self) -> bool:
        """Whether islands have to tell each other anything before the protocol starts."""
        return self.adds or not set(self.categorical) <= set(self.levels)


class Guards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every island asks for itself before it takes part: the table ``[guards]``."""

    min_rows: Annotated[int, msgspec.Meta(ge=0)] = 0
    min_islands: Annotated[int, msgspec.Meta(ge=0)] = 0


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one site knows and nobody signs: where the data lie, which data sets they are, the ledger in
    which releases from them are booked (the site's own unless named), for how many colluding owners the
    noise of a private study must be made for the site to take part, how many rows each data set could
    ever have, whom to ask about the study, and the result of the alignment that put each table's rows in
    order."""

    data: dict[str, str] = {}
    identities: dict[str, str] = {}
    ledger: str | None = None
    min_colluders: int = 0
    capacities: dict[str, int] = {}
    contact: str | None = None
    alignments: dict[str, str] = {}


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """What is computed, by whom, with which protection, and who gets what.

    ``version``: of the protocol that filled in all options; None while they are as stated.
    """

    name: str
    parties: tuple[Party, ...]
    protocol: str
    analysis: str = "pca"
    secure_sum: str = DEFAULT_SUM
    partition: str = "horizontal"
    sum_options: Mapping[str, Any] = MappingProxyType({})
    parameters: Mapping[str, Any] = MappingProxyType({})
    release: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    version: int | None = None
    assessment: Assessment = Assessment()
    table: TablePlan = TablePlan()
    guards: Guards = Guards()

    def __post_init__(self) -> None:
        for field in ("sum_options", "parameters", "release"):
            msgspec.structs.force_setattr(self, field, MappingProxyType(dict(getattr(self, field))))

    def __reduce__(self) -> tuple[Any, ...]:
        # Estimators are copied and stored by their users; frozen mappings need a way through.
        return from_plain, (to_plain(self),)

    def _rows(self) -> list[tuple[str, str]]:
        """What it is made of, for whoever looks at it."""
        sums = _options(self.sum_options)
        rows = [
            ("analysis", self.analysis),
            ("protocol", self.protocol),
            ("secure sum", f"{self.secure_sum} ({sums})" if sums else self.secure_sum),
            ("partition", self.partition),
            *(("party", f"{party.name}: {', '.join(party.roles)}") for party in self.parties),
            ("parameters", _options(self.parameters)),
            *(("release", f"{output}: {', '.join(to)}") for output, to in self.release.items()),
        ]
        return [(name, text) for name, text in rows if text]

    def __repr__(self) -> str:
        return f"Study {self.name!r}\n{text_table(('', ''), self._rows()).lstrip()}"

    def _repr_html_(self) -> str:
        return html_table(f"Study {self.name!r}", ("", ""), self._rows())

    @property
    def between_machines(self) -> bool:
        """Whether every party has a key, so that each runs its roles on a machine of its own.

        Else the study can only be rehearsed: all roles in one process, on one machine that holds all tables.
        """
        return bool(self.parties) and all(party.fingerprint is not None for party in self.parties)

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
        return self._read_once("parameters", kind, kind.read)

    def read_sum_options(self, kind: type[S]) -> S:
        """The options of the secure sum as the method's own typed struct."""
        return self._read_once("sum", kind, lambda table, path: read_table(table, kind, path))

    def _read_once(self, name: str, kind: type[S], read: Callable[[Mapping[str, Any], Path], S]) -> S:
        """A table as a struct, parsed at the first call: neither of them ever changes."""
        known = self.__dict__.setdefault("_read", {})
        if (name, kind) not in known:
            known[name, kind] = read(self.parameters if name == "parameters" else self.sum_options, (name,))
        struct: S = known[name, kind]
        return struct

    def filled_in(
        self, parameters: Mapping[str, Any], sum_options: Mapping[str, Any], *, version: int
    ) -> Study:
        """The same study with every option stated; they mean the same, so what was read stays read."""
        whole = msgspec.structs.replace(self, parameters=parameters, sum_options=sum_options, version=version)
        whole.__dict__["_read"] = self.__dict__.get("_read", {})
        return self if self == whole else whole

    def canonical(self) -> bytes:
        """The bytes that the digest covers: every field, keys sorted; further tables where they say
        something."""
        plain = to_plain(self)
        for name, nothing in _FURTHER.items():
            if getattr(self, name) == nothing:
                del plain[name]
        return msgspec.json.encode({"format": FORMAT, **plain}, order="sorted")

    @cached_property
    def digest(self) -> str:
        """What islands approve and messages are bound to."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @property
    def digest_as_stated(self) -> str:
        """The digest of format 1, which covered what a study stated and no defaults: in files of 0.1.0."""
        stated = {name: value for name, value in to_plain(self).items() if name not in ("version", *_FURTHER)}
        return hashlib.sha256(msgspec.json.encode({"format": 1, **stated}, order="sorted")).hexdigest()


_FURTHER: Mapping[str, object] = MappingProxyType(
    {"assessment": Assessment(), "table": TablePlan(), "guards": Guards()}
)
"""Tables that came later: a study that leaves one out has the digest that it always had."""


def _options(table: Mapping[str, Any]) -> str:
    """Options that say something; those left at nothing are not shown."""
    return ", ".join(f"{name} = {value!r}" for name, value in table.items() if value is not None)


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
