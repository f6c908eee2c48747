"""What a protocol is: parameters, messages, roles, outputs, and who learns what."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from atoll import secure_sums
from atoll.codec import Message
from atoll.errors import ParameterError, StudyError, one_of
from atoll.network import Network, Record
from atoll.privacy.mechanisms import Cost
from atoll.privacy.sensitivity import Neighbours
from atoll.protocols.own import Own
from atoll.secret_matrices.slots.counting import Tallies
from atoll.study.address import Address
from atoll.study.model import Parameters, Study, TablePlan

Outputs = dict[str, Any]


@dataclass(frozen=True)
class Learned:
    """What one role knows at the end that it did not know before: released outputs, by name."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    inherent: Mapping[str, Any] = field(default_factory=dict)
    """What the protocol shows this role by its nature (PPPCA's server: mean and covariance)."""

    def __repr__(self) -> str:
        seen = f"; by the protocol's nature: {described(self.inherent)}" if self.inherent else ""
        return f"<Learned: {described(self.outputs) or 'nothing'}{seen}>"


def described(values: Mapping[str, Any]) -> str:
    """Values by name and size. What they are is not shown: an object that is looked at reveals nothing."""
    return ", ".join(f"{name} ({_size(value)})" for name, value in values.items())


def _size(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return f"of {len(value)}"
    if isinstance(value, list | tuple):
        return str(len(value))
    return " x ".join(map(str, np.shape(value))) or "1"


def learned(study: Study, me: Address, outputs: Mapping[str, Output], known: Mapping[str, Any]) -> Learned:
    """Sort what a role knows into what the study releases to it and what it sees by the protocol's nature."""
    released = {name for output, o in outputs.items() if study.releases(output, me) for name in o.values}
    return Learned(
        {name: value for name, value in known.items() if name in released},
        {name: value for name, value in known.items() if name not in released},
    )


Role = Callable[[Network, Study, Own, Record], Coroutine[Any, Any, Learned]]


Timer = Callable[[Callable[[], object]], float]
"""The processor seconds of one call."""


class Disclosure(NamedTuple):
    """One thing that a role learns, in plain words, and the messages that bring it.

    The only source for who knows what: reviews, tables and errors all ask :meth:`Protocol.knowers`.
    """

    role: str
    learns: str
    messages: tuple[type[Message], ...] = ()
    values: tuple[str, ...] = ()
    """The values of outputs that the role knows by this, whether the study releases them to it or not."""
    parties: tuple[str, ...] = ()
    """Who of those that play the role; empty: all of them."""


class Output(NamedTuple):
    """One output that a study can release: its values, and to whom it can go."""

    values: tuple[str, ...]
    roles: tuple[str, ...]
    words: str = ""
    """The output in plain words, for ``atoll review``."""


class Expectation(NamedTuple):
    """What a run is expected to cost."""

    messages: int
    bytes_per_provider: int
    bytes_total: int
    memory_server: int
    rounds: int


class Circumstances(NamedTuple):
    """What a forecast is made for: tables, and links between every two parties."""

    columns: int
    rows: tuple[int, ...] = ()
    """Of every island; empty where nobody knows."""
    latency: float = 0.02
    bandwidth: float = 125e6


class Forecast(msgspec.Struct, frozen=True):
    """Time and memory of a run, and why it takes the course it takes."""

    seconds_together: float
    """All roles in one process."""
    seconds_apart: float
    """Every party on a machine of its own."""
    processor_provider: float
    processor_server: float
    memory_together: int
    memory_provider: int
    memory_server: int
    course: tuple[str, ...]
    assumes: tuple[str, ...]


class PrivacyTerms(NamedTuple):
    """What a study with an epsilon promises; ``costs`` are empty where nothing is promised."""

    epsilon: float
    delta: float | None
    neighbours: Neighbours
    costs: tuple[Cost, ...]
    words: tuple[str, ...]
    colluders: int | None = None
    """How many owners may use their own noise against the others; None: all, or nothing is promised."""


class Protection(NamedTuple):
    """How what islands contribute is hidden on its way, where that is not the work of a secure sum."""

    words: str
    """Whole sentences."""
    summed: str = ""
    """What alone goes through the study's secure sum, if anything does."""


@dataclass(frozen=True)
class Protocol:
    """One paper's protocol, as engines, loaders and ``review`` see it."""

    name: str
    title: str
    roles: Mapping[str, Role]
    data_roles: frozenset[str]
    messages: tuple[type[Message], ...]
    parameters: type[Parameters]
    outputs: Mapping[str, Output]
    learns: Callable[[Study], list[Disclosure]]
    adversary: str
    single_roles: frozenset[str]
    """Roles that exactly one party plays."""
    analysis: str = "pca"
    follows: str = ""
    """The protocol whose kept shares this one goes on from: a later step, which no estimator fits."""
    version: int = 1
    """Counted up when an approved study would mean something else, or roles of before and after could not
    work together: it is part of the digest."""
    judge: str = ""
    """The role, of one party, that receives the sums: across machines that party alone decides that a
    contributor has left. Empty where nobody may leave."""
    may_leave: Callable[[Study], int] | None = None
    """How many of those who bring data may leave before the end; None: as many as the secure sum allows."""
    apart: tuple[tuple[str, str], ...] = ()
    """Roles that no party may play together, because the protection rests on their not colluding."""
    uses_sum: bool = True
    protection: Callable[[Study], Protection | None] = lambda _: None
    """None where a secure sum hides every contribution, or nothing does."""
    partitions: tuple[str, ...] = ("horizontal",)
    expect: Callable[[Study, int], Expectation] | None = None
    """Expected cost for a study over tables of so many columns."""
    counted: Callable[[Study, Circumstances, int], Expectation] | None = None
    """The same for tables whose rows are known, where bytes follow from them, and so many steps more."""
    steps: Callable[[Study, int], int] | None = None
    """How many steps ``expect`` assumes, where a fit takes as many as it takes."""
    further: Callable[[Study, int], Expectation] | None = None
    """What one step more or less changes, where how many steps a fit takes is known only afterwards."""
    forecast: Callable[[Study, Circumstances], tuple[Expectation, Forecast]] | None = None
    """The same for tables and links that are known better, with time and memory."""
    unforeseen: Callable[[Study], str] = lambda _: ""
    """Why this study's cost is not said beforehand, although other studies' is; empty where it is."""
    operations: Callable[[Study, Circumstances], Tallies] | None = None
    """Operations on ciphertexts with slots, where a run is made of them."""
    reads_table: Callable[[Study, Address], bool] = lambda _, __: True
    """Whether a role that may have a table needs one in this study."""
    largest: Callable[[Study, int], int] | None = None
    """Bytes of the largest message, for tables of so many columns; None where nobody counted."""
    check: Callable[[Study], None] = lambda _: None
    settle: Callable[[Study], Study] = lambda study: study
    """Fills in options that follow from others, from the study alone: every party must come to the same."""
    privacy: Callable[[Study], PrivacyTerms | None] = lambda _: None
    """The study's differential privacy, where it asks for any."""
    determines: Callable[[Study, Circumstances], tuple[str, ...]] = lambda _, __: ()
    """From how many components on the outputs say all second moments of the tables."""
    timed: Callable[[Timer], Mapping[str, Any]] = lambda _: {}
    """Rates of the protocol's own work on a table, by name: what ``atoll bench calibrate`` adds to the
    machine's."""

    prepare: Callable[[Protocol, Study], Protocol] = lambda protocol, study: refuse_table(protocol, study)
    """The same protocol, started on tables as the study's [table] prepares them."""
    guard: Callable[[Protocol, Study], Protocol] = lambda protocol, study: _guarded(protocol, study)
    """The same protocol, whose islands keep the guard rails before anything leaves."""

    def table_holders(self, study: Study) -> tuple[str, ...]:
        """The parties that bring a table, in the study's order."""
        return tuple(
            party.name
            for party in study.parties
            if any(
                role in self.data_roles and self.reads_table(study, Address(party.name, role))
                for role in party.roles
            )
        )

    def knowers(self, study: Study, value: str) -> tuple[Address, ...]:
        """Everybody who knows a value of an output at the end, by a release or by the protocol's nature."""
        by_nature = {
            Address(party, said.role)
            for said in self.learns(study)
            if value in said.values
            for party in said.parties or tuple(address.party for address in study.who(said.role))
        }
        released = {a for name, o in self.outputs.items() if value in o.values for a in study.receivers(name)}
        able = {role for o in self.outputs.values() if value in o.values for role in o.roles}
        known = by_nature | {address for address in released if address.role in able}
        return tuple(address for address in study.addresses() if address in known)

    def all_messages(self, study: Study) -> tuple[type[Message], ...]:
        """Every message that may travel in this study."""
        summing = secure_sums.chosen(study).messages() if self.uses_sum else ()
        return tuple(dict.fromkeys((*self.messages, *summing)))


def _guarded(protocol: Protocol, study: Study) -> Protocol:
    from atoll.protocols.guards import guarded  # which wraps what is defined here

    return guarded(protocol, study)


def refuse_table(protocol: Protocol, study: Study) -> Protocol:
    """Of a protocol that takes tables as they are."""
    if study.table != TablePlan():
        raise StudyError(
            f"{protocol.name} prepares no tables",
            hint="leave [table] out; models have categorical, levels and missing under [parameters]",
            path=("table",),
        )
    return protocol


def with_helpers(protocol: Protocol, study: Study) -> Protocol:
    """The protocol as the study has it: on prepared tables, with the roles that its secure sum brings."""
    protocol = protocol.prepare(protocol, study)
    protocol = protocol.guard(protocol, study)
    named = secure_sums.helpers(study) if protocol.uses_sum else {}
    if not named:
        return protocol
    helpers = secure_sums.method(study.secure_sum).helpers
    contributors = tuple(a for role in protocol.data_roles for a in study.who(role))
    brought = {name: _helping(helpers[name], contributors) for name in named}
    said = [Disclosure(name, helpers[name].learns, helpers[name].messages) for name in named]
    return replace(
        protocol,
        roles={**protocol.roles, **brought},
        single_roles=protocol.single_roles | set(named),
        apart=(*protocol.apart, *((name, role) for name in named for role in protocol.data_roles)),
        learns=lambda study: [*protocol.learns(study), *said],
    )


def _helping(helper: secure_sums.Helper, contributors: tuple[Address, ...]) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        await helper.serve(net, study, record, contributors)
        return Learned()

    return role


MIN_ISLANDS = 2


def check_study(protocol: Protocol, study: Study) -> None:
    """Refuse a study that the protocol cannot run, before anybody sees it."""
    protocol = with_helpers(protocol, study)
    if study.analysis != protocol.analysis:
        raise StudyError(
            f"{protocol.name} does not do the analysis {study.analysis!r}",
            hint=f"analysis = {protocol.analysis!r}",
            path=("study", "analysis"),
        )
    _check_parties(protocol, study)
    _check_players(protocol, study)
    _check_releases(protocol, study)
    if study.partition not in protocol.partitions:
        raise StudyError(
            f"{protocol.name} does not run on data split by partition={study.partition!r}",
            hint=one_of(study.partition, protocol.partitions),
            path=("study", "partition"),
        )
    study.read_parameters(protocol.parameters)
    if protocol.uses_sum:
        _check_sum(protocol, study)
    protocol.check(study)


def resolve(protocol: Protocol, study: Study) -> Study:
    """The study, checked, with every option that it leaves out as the protocol has it by default.

    Its digest covers them all: whoever approved it has approved these. A resolved study stays as it is.
    """
    check_study(protocol, study)
    study = protocol.settle(study)
    if study.version not in (None, protocol.version):
        raise StudyError(
            f"the study was made for version {study.version} of {protocol.name}, which is now at "
            f"{protocol.version}",
            hint="load its file again, review it, and approve the new digest",
        )
    sum_options = msgspec.to_builtins(secure_sums.options(study)) if protocol.uses_sum else study.sum_options
    return study.filled_in(
        study.read_parameters(protocol.parameters).plain(), sum_options, version=protocol.version
    )


def _check_sum(protocol: Protocol, study: Study) -> None:
    contributors = sum(len(study.who(role)) for role in protocol.data_roles)
    method = secure_sums.chosen(study)
    try:
        method.check(contributors, secure_sums.options(study))
    except ParameterError as error:
        path = ("sum",) if error.option is None else ("sum", error.option)
        raise StudyError(error.message, hint=error.hint, path=path) from None


def _check_parties(protocol: Protocol, study: Study) -> None:
    seen: set[str] = set()
    for i, party in enumerate(study.parties):
        if party.name in seen:
            raise StudyError(
                f"party {party.name!r} is named twice",
                hint="merge its roles: roles = [...]",
                path=("party", i, "name"),
            )
        if not party.name.strip() or "/" in party.name or not party.name.isprintable():
            raise StudyError(
                f"a party cannot be called {party.name!r}",
                hint="a name of printable characters without '/'",
                path=("party", i, "name"),
            )
        if party.name in protocol.roles and party.roles != (party.name,):
            raise StudyError(
                f"a party can be called {party.name!r}, like a role, only if it has no other role",
                hint="rename it: releases name roles and parties, and must not mix them up",
                path=("party", i, "name"),
            )
        seen.add(party.name)
        for j, role in enumerate(party.roles):
            if role not in protocol.roles:
                raise StudyError(
                    f"party {party.name!r} has the unknown role {role!r}",
                    hint=one_of(role, protocol.roles, f"the roles of {protocol.name} are"),
                    path=("party", i, "roles", j),
                )
            if role in party.roles[:j]:
                raise StudyError(
                    f"party {party.name!r} has the role {role!r} twice", path=("party", i, "roles", j)
                )


def _check_players(protocol: Protocol, study: Study) -> None:
    for one, other in protocol.apart:
        for i, party in enumerate(study.parties):
            if one in party.roles and other in party.roles:
                raise StudyError(
                    f"party {party.name!r} cannot be both {one} and {other}",
                    hint=f"{protocol.name} protects islands only while {one} and {other} stay apart",
                    path=("party", i, "roles"),
                )
    for role in protocol.roles:
        playing = [i for i, party in enumerate(study.parties) if role in party.roles]
        if role in protocol.single_roles and len(playing) != 1:
            raise StudyError(
                f"{protocol.name} needs exactly one {role}, the study names {len(playing)}",
                hint=f"give one party roles = [..., {role!r}]",
                path=("party", playing[1], "roles") if playing else ("party",),
            )
        if role in protocol.data_roles and len(playing) < MIN_ISLANDS:
            raise StudyError(
                f"{protocol.name} needs at least {MIN_ISLANDS} islands ({role}), "
                f"the study names {len(playing)}",
                hint="add islands; for one table use scikit-learn",
                path=("party",),
            )


def _check_releases(protocol: Protocol, study: Study) -> None:
    for output, targets in study.release.items():
        if output not in protocol.outputs:
            raise StudyError(
                f"release names the output {output!r}, which {protocol.name} does not have",
                hint=one_of(output, protocol.outputs, "its outputs are"),
                path=("release", output),
            )
        for j, target in enumerate(targets):
            _check_target(protocol, study, output, j, target)


def _check_target(protocol: Protocol, study: Study, output: str, j: int, target: str) -> None:
    parties = {party.name: party.roles for party in study.parties}
    roles = parties.get(target, (target,))
    if not set(roles) & set(protocol.roles):
        raise StudyError(
            f"release of {output!r} names {target!r}, neither a role nor a party here",
            hint=one_of(target, [*protocol.roles, *parties]),
            path=("release", output, j),
        )
    if target not in parties and not study.who(target):
        raise StudyError(
            f"release of {output!r} names the role {target!r}, which no party here plays",
            hint=f"give a party the role {target!r}, or release to others",
            path=("release", output, j),
        )
    if not set(roles) & set(protocol.outputs[output].roles):
        raise StudyError(
            f"{protocol.name} cannot release {output!r} to {target!r}",
            hint=f"it can go to {', '.join(protocol.outputs[output].roles)}",
            path=("release", output, j),
        )
