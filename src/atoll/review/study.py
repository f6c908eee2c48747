"""What a study means, before it runs: who learns what, who gets what, and what it will cost.

Everything here is said by the protocol itself (``learns``, ``adversary``, ``expect``) and by the
secure sum (``trust``); a test compares the former with what really reaches each inbox.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from atoll import secure_sums
from atoll.data.columns import column_names, row_count
from atoll.errors import AtollError, ParameterError
from atoll.protocols import Protocol, protocol_of, resolve
from atoll.protocols.base import Circumstances, Expectation, Forecast, with_helpers
from atoll.protocols.guards import guards_words
from atoll.protocols.preparation.prepare import table_words
from atoll.review.budget import PrivacyReview, review_exact, review_privacy, will_refuse
from atoll.review.cautions import cautions
from atoll.runtime.studies import data_holders
from atoll.study.address import Address
from atoll.study.load import StudyFile
from atoll.study.model import Assessment, Local, Study, to_plain


class RoleReview(msgspec.Struct, frozen=True):
    """One role: who plays it and what it learns."""

    role: str
    parties: tuple[str, ...]
    brings_data: bool
    learns: tuple[str, ...]
    caveats: tuple[str, ...]
    """What follows from the above, rather than arriving in a message."""


class Knower(msgspec.Struct, frozen=True):
    """Somebody who knows an output, or a part of it, without its being released to them."""

    address: str
    whole: bool
    values: tuple[str, ...]
    """The values of the output that it knows."""


class OutputReview(msgspec.Struct, frozen=True):
    """One output: what it is, who receives it, and who else knows it by the protocol's nature."""

    output: str
    words: str
    released_to: tuple[str, ...]
    """Addresses (party/role)."""
    known_to: tuple[Knower, ...]


class CostReview(msgspec.Struct, frozen=True):
    """What a run is expected to cost."""

    columns: int
    messages: int
    bytes_per_provider: int
    bytes_total: int
    memory_server: int
    rounds: int
    projection_bytes_per_row: int
    """Projections come on top, unless the forecast has them: their bytes grow with the rows."""
    forecast: Forecast | None = None
    """Time and memory, where the protocol can say them."""
    steps: int | None = None
    """How many steps of a fit the figures are for, where that is known only afterwards."""
    further: dict[str, int] | None = None
    """What one step more adds: messages, bytes, rounds."""


class Review(msgspec.Struct, frozen=True):
    """Everything that ``atoll review`` says."""

    name: str
    analysis: str
    digest: str
    protocol: str
    title: str
    partition: str
    between_machines: bool
    """Each party on a machine of its own; else a rehearsal, all roles and all tables in one place."""
    secure_sum: str | None
    trust: str | None
    hides: str | None
    protection: str | None
    """How contributions are hidden, where a secure sum is not all that hides them."""
    summed: str | None
    """What alone goes through the secure sum in that case."""
    adversary: str
    parameters: dict[str, Any]
    sum_options: dict[str, Any]
    exchanges: bool
    """Whether any message travels at all."""
    roles: tuple[RoleReview, ...]
    combined: tuple[str, ...]
    """Parties that play several roles, and so put together what these learn."""
    outputs: tuple[OutputReview, ...]
    cost: CostReview | None
    cost_missing: str | None
    """Why there is no estimate, where there is none."""
    privacy: PrivacyReview | None = None
    """The privacy budget, where the study has one."""
    determined: tuple[str, ...] = ()
    """Where the outputs say the second moments of the joint table."""
    booking: tuple[str, ...] = ()
    """What an exact study means for the accounts of its data sets, where there is a ledger."""
    cautions: tuple[str, ...] = ()
    """What is easy to miss: numbers that promise little, islands that will refuse, islands of one row."""
    assessment: Assessment = Assessment()
    """What the study's author says for an impact assessment."""
    contact: str | None = None
    columns: tuple[str, ...] = ()
    """The names of the columns, where the study or a table says them."""
    table: tuple[str, ...] = ()
    """What is done to tables before the protocol reads them."""
    guards: tuple[str, ...] = ()
    """What every island asks for before it takes part."""

    def to_plain(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class Guess(NamedTuple):
    """What a caller knows, or wants to assume, of tables and network."""

    rows: tuple[int, ...] = ()
    latency: float = Circumstances(0).latency
    bandwidth: float = Circumstances(0).bandwidth


NO_GUESS = Guess()


def review_study(
    study: Study,
    columns: int | None = None,
    local: Local | None = None,
    guess: Guess = NO_GUESS,
    names: tuple[str, ...] = (),
) -> Review:
    """Say what ``study`` means; costs are for tables of so many columns, budgets from the local ledger.

    ``names``: of the columns, where a table says them.
    """
    study = resolve(study)
    _check_rows(study, guess.rows)
    protocol = with_helpers(protocol_of(study.protocol), study)
    privacy = review_privacy(study, local)
    protection = protocol.protection(study)
    sums = protocol.uses_sum and (protection is None or bool(protection.summed))
    method = secure_sums.chosen(study) if sums else None
    cost, missing = _cost(protocol, study, columns, guess)
    return Review(
        name=study.name,
        analysis=study.analysis,
        digest=study.digest,
        protocol=protocol.name,
        title=protocol.title,
        partition=study.partition,
        between_machines=study.between_machines,
        secure_sum=study.secure_sum if method else None,
        trust=_trust(protocol, study) if method else None,
        hides=method.hides if method else None,
        protection=protection.words if protection else None,
        summed=(protection.summed or None) if protection else None,
        adversary=protocol.adversary,
        parameters=to_plain(study)["parameters"],
        sum_options=to_plain(study)["sum_options"],
        exchanges=bool(protocol.all_messages(study)),
        roles=_roles(protocol, _of_columns(study, columns)),
        combined=_combined(protocol, study),
        outputs=_outputs(protocol, study),
        cost=cost,
        cost_missing=missing,
        privacy=privacy,
        determined=() if columns is None else protocol.determines(study, Circumstances(columns, *guess)),
        booking=review_exact(study, local),
        cautions=(*cautions(study, guess.rows), *(will_refuse(privacy) if privacy else ())),
        assessment=study.assessment,
        contact=local.contact if local else None,
        columns=tuple(study.table.columns or study.parameters.get("columns") or names),
        table=table_words(study.table),
        guards=guards_words(study),
    )


def _check_rows(study: Study, rows: tuple[int, ...]) -> None:
    holders = data_holders(study)
    if rows and len(rows) != len(holders):
        raise ParameterError(
            f"numbers of rows for {len(rows)} islands, where the study has {len(holders)}",
            hint=f"one for each of {', '.join(holders)}, in this order; or none",
        )
    if any(n < 0 for n in rows):
        raise ParameterError(f"an island cannot have {min(rows)} rows")


def _of_columns(study: Study, columns: int | None) -> Study:
    """The study as it reads for tables of so many columns: what is said of others then falls away."""
    if columns is None or columns < 1 or study.parameters.get("columns", columns) is not None:
        return study
    counted = tuple(f"column {i + 1}" for i in range(columns))
    return msgspec.structs.replace(study, parameters={**study.parameters, "columns": counted})


def _trust(protocol: Protocol, study: Study) -> str:
    method = secure_sums.chosen(study)
    contributors = sum(len(study.who(role)) for role in protocol.data_roles)
    return method.trust(contributors, secure_sums.options(study))


def review_file(file: StudyFile, columns: int | None = None, guess: Guess = NO_GUESS) -> Review:
    """The same for a study file; columns and rows are read from the local data where they can be."""
    columns = columns if columns is not None else count_columns(file)
    if not guess.rows:
        guess = guess._replace(rows=count_rows(file))
    return review_study(file.study, columns, file.local, guess, name_columns(file))


def expected_messages(file: StudyFile) -> int | None:
    """How many messages a run will take, where that can be said."""
    protocol = with_helpers(protocol_of(file.study.protocol), file.study)
    columns = count_columns(file)
    if columns is None or protocol.expect is None or protocol.unforeseen(file.study):
        return None
    if protocol.forecast is None:
        return protocol.expect(file.study, columns).messages
    return protocol.forecast(file.study, Circumstances(columns, count_rows(file)))[0].messages


def count_rows(file: StudyFile) -> tuple[int, ...]:
    """The rows of every island, where all tables are at hand; else nothing."""
    paths = [file.local.data.get(party) for party in data_holders(file.study)]
    try:
        return tuple(row_count(path) for path in paths if path is not None) if all(paths) else ()
    except (AtollError, OSError, ValueError):
        return ()  # what is wrong with a table is the run's business; here it only informs


def count_columns(file: StudyFile) -> int | None:
    """The columns that the study uses: those it names, those of the first island at hand or, where
    islands hold columns, those of all."""
    named = file.study.table.columns or file.study.parameters.get("columns")
    if named is not None:
        return len(named)
    beside = _beside(file.study)
    counts = [_columns_of(file.local.data.get(party), beside) for party in data_holders(file.study)]
    known = [count for count in counts if count is not None]
    if file.study.partition == "vertical":
        return sum(known) if len(known) == len(counts) else None
    return known[0] if known else None


def name_columns(file: StudyFile) -> tuple[str, ...]:
    """The names of the columns that tables at hand bring to the study, none twice."""
    beside = _beside(file.study)
    found: dict[str, None] = {}
    for party in data_holders(file.study):
        found |= dict.fromkeys(_names_of(file.local.data.get(party), beside) or ())
    return tuple(found)


def _beside(study: Study) -> set[Any]:
    """Columns that go along and are no features."""
    named = {study.parameters.get(name) for name in ("label", "row_ids", "target", "weights", "offset")}
    return {*named, *study.table.exclude}


def _columns_of(path: str | Path | None, beside: set[Any]) -> int | None:
    names = _names_of(path, beside)
    return None if names is None else len(names)


def _names_of(path: str | Path | None, beside: set[Any]) -> list[str] | None:
    if path is None or not Path(path).is_file():
        return None
    try:
        return [column for column in column_names(path) if column not in beside]
    except (AtollError, OSError, ValueError):
        return None  # what is wrong with a table is the run's business; here it only informs


def _roles(protocol: Protocol, study: Study) -> tuple[RoleReview, ...]:
    said = protocol.learns(study)
    return tuple(
        RoleReview(
            role,
            tuple(address.party for address in study.who(role)),
            role in protocol.data_roles,
            tuple(dict.fromkeys(d.learns for d in said if d.role == role and d.messages)),
            tuple(dict.fromkeys(d.learns for d in said if d.role == role and not d.messages)),
        )
        for role in protocol.roles
        if study.who(role)
    )


def _combined(protocol: Protocol, study: Study) -> tuple[str, ...]:
    said = []
    for party in study.parties:
        if len(party.roles) > 1:
            own = protocol.data_roles & set(party.roles)
            also = ", and knows its own rows" if own else ""
            said.append(
                f"{party.name} plays {' and '.join(party.roles)}: it puts together what these learn{also}"
            )
    return tuple(said)


def _outputs(protocol: Protocol, study: Study) -> tuple[OutputReview, ...]:
    return tuple(
        OutputReview(
            name,
            output.words or ", ".join(output.values).replace("_", " "),
            tuple(str(a) for a in _receivers(study, name, output.roles)),
            _knowers(protocol, study, name),
        )
        for name, output in protocol.outputs.items()
    )


def _knowers(protocol: Protocol, study: Study, name: str) -> tuple[Knower, ...]:
    """From the same statements as "Who learns what", so that the two cannot disagree."""
    output = protocol.outputs[name]
    released = set(_receivers(study, name, output.roles))
    known = {value: protocol.knowers(study, value) for value in output.values}
    found = []
    for address in study.addresses():
        values = tuple(value for value, who in known.items() if address in who)
        if values and address not in released:
            found.append(Knower(str(address), len(values) == len(known), values))
    return tuple(found)


def _receivers(study: Study, output: str, roles: tuple[str, ...]) -> tuple[Address, ...]:
    return tuple(address for address in study.receivers(output) if address.role in roles)


def _cost(
    protocol: Protocol, study: Study, columns: int | None, guess: Guess
) -> tuple[CostReview | None, str | None]:
    if protocol.expect is None:
        return None, f"{protocol.name} makes no estimate"
    if why := protocol.unforeseen(study):
        return None, why
    if columns is None:
        return None, "the number of columns is not known here: give it with --columns"
    if columns < 1:
        raise ParameterError(f"a table has at least one column, not {columns}", hint="--columns 30")
    expected, foreseen = protocol.expect(study, columns), None
    if protocol.forecast is not None:
        expected, foreseen = protocol.forecast(study, Circumstances(columns, *guess))
    steps = None if protocol.steps is None else protocol.steps(study, columns)
    further = None if protocol.further is None else protocol.further(study, columns)
    if protocol.counted is not None:
        expected, one_more = (
            protocol.counted(study, Circumstances(columns, *guess), more) for more in (0, 1)
        )
        more_each = Expectation(*(b - a for a, b in zip(expected, one_more, strict=True)))
        further = None if steps is None else more_each
    per_row = _projection_bytes(protocol, study, columns)
    return CostReview(
        columns, *expected, per_row, foreseen, steps, None if further is None else further._asdict()
    ), None


def _projection_bytes(protocol: Protocol, study: Study, columns: int) -> int:
    if not study.receivers("scores") or protocol.forecast is not None:  # which counts rows itself
        return 0
    k = getattr(study.read_parameters(protocol.parameters), "n_components", None)
    label = 8 if study.parameters.get("label") else 0
    return 8 * (k if isinstance(k, int) else columns) + label
