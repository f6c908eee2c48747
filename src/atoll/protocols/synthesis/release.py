"""What both synthesizers share around a secure sum: parameters, roles' common steps, words.

Owners have rows, the curator opens sums with noise in them and makes a model; nobody knows the noise. Each
owner looks at its whole table before anything is reserved in its ledger, and owners hear from each other
that all tables fit before any of them pays: one bad table costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from atoll import fixedpoint, randomness, secure_sums
from atoll.codec import Message
from atoll.errors import StudyError
from atoll.network import Compared, Network, Record
from atoll.privacy.dp_moments import Stage
from atoll.privacy.mechanisms import Cost, Crowd
from atoll.protocols import checked
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import Disclosure, Expectation, Output, PrivacyTerms
from atoll.protocols.booking import Booking, refuse_few_colluders
from atoll.protocols.noise_shares import crowd_of, noise_words, promise
from atoll.protocols.own import Own
from atoll.protocols.private_options import Privacy, PrivateParameters
from atoll.protocols.synthesis import models
from atoll.protocols.synthesis.moments import check_rows
from atoll.protocols.synthesis.schema import Codes, Column, Outside, encode, sizes_of
from atoll.secure_sums import SecureSum
from atoll.study.address import Address
from atoll.study.model import Study

OWNER, CURATOR = "owner", "curator"
RECORDED_NOISE = "privacy/noise"


class SynthesisParameters(PrivateParameters, frozen=True):
    """``schema``: the columns, in the order of the synthetic table; ``bins``: cells of a number whose column
    names no edges; ``outside``: whether a number beyond its bounds is refused, or counted as the bound."""

    needs = ("epsilon",)
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "noise", "colluders")
    fixed: ClassVar[Mapping[str, Any]] = {"neighbours": "add-remove"}

    privacy: Privacy
    schema: tuple[Column, ...]
    bins: int = 16
    outside: Outside = "refuse"

    @property
    def sizes(self) -> tuple[int, ...]:
        return sizes_of(self.schema, self.bins)


class SyntheticModel(Message, frozen=True):
    """Curator -> owner: the model that synthetic rows are drawn from."""

    values: dict[str, Any]


class NoisyMoments(Message, frozen=True):
    """Curator -> owner: the noisy numbers that the model was made of."""

    values: dict[str, Any]


_BOTH = (OWNER, CURATOR)
OUTPUTS = {
    "model": Output(("model",), _BOTH, "the model that synthetic rows are drawn from, any number of them"),
    "moments": Output(("moments",), _BOTH, "the noisy counts and moments that the model was made of"),
}


# ---- owners ----


def crowd(study: Study, asked: Privacy) -> Crowd:
    return crowd_of(study, asked, len(study.who(OWNER)))


def booking(study: Study, asked: Privacy, own: Own, record: Record, stages: Mapping[str, Cost]) -> Booking:
    """The owner's ledger during this run; refuses what the owner does not allow."""
    refuse_few_colluders(own, crowd(study, asked).colluders)
    return Booking(study, own, record, stages, asked.neighbours)


class Read:
    """Rows as the release uses them, for the ledger's fingerprint."""

    def __init__(self, codes: Codes) -> None:
        self._codes = codes

    def blocks(self) -> Any:
        yield np.asarray(self._codes, dtype=np.float64)


async def read_rows(net: Network, study: Study, own: Own, p: SynthesisParameters) -> Codes:
    """This owner's rows as cells, once every owner's table is known to fit."""
    check_rows(own.table.n_rows, p.sizes, own.table.name)
    codes = await net.compute(encode, own.table, p.schema, p.bins, p.outside)
    await compare(net, "that all tables fit the schema", study.digest, study.who(OWNER))
    return codes


def noisy(exact: Any, stage: Stage, seed: bytes, owners: int) -> fixedpoint.Limbs:
    """Contribution and noise share together: the only form in which an owner's numbers leave it."""
    return fixedpoint.from_int64(exact + stage.draw_share(seed), contributors=owners)


def noise_seed(record: Record) -> bytes:
    return record(RECORDED_NOISE, randomness.fresh_seed)


def session(net: Network, study: Study, record: Record, longest: int) -> SecureSum:
    return secure_sums.between(net, study, record, OWNER, CURATOR, longest)


# ---- outputs ----


async def release(net: Network, study: Study, known: Mapping[str, Any], present: frozenset[Address]) -> None:
    for address in study.who(OWNER):
        if address in present and study.releases("model", address):
            await net.send(address, SyntheticModel(known["model"]))
        if address in present and study.releases("moments", address):
            await net.send(address, NoisyMoments(known["moments"]))


async def receive_released(net: Network, study: Study, p: SynthesisParameters) -> dict[str, Any]:
    curator, known = study.the(CURATOR), dict[str, Any]()
    if study.releases("model", net.me):
        known["model"] = finite((await net.receive(SyntheticModel, curator)).values, "a model", curator)
        models.check(known["model"], p.sizes, curator)
    if study.releases("moments", net.me):
        known["moments"] = finite((await net.receive(NoisyMoments, curator)).values, "moments", curator)
    return known


def finite(values: Any, what: str, sender: Address) -> Any:
    """Refuse numbers that are none, however deep they stand."""
    if isinstance(values, Mapping):
        return {key: finite(value, what, sender) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [finite(value, what, sender) for value in values]
    if isinstance(values, np.ndarray):
        checked.check_floats(values, values.shape, what, sender)
    elif isinstance(values, float):
        checked.check_number(values, what, sender)
    return values


_PUBLIC = (
    "columns, levels and bounds are the study's own, and must not come from the rows; rows drawn from the "
    "model cost nothing more, however many"
)
_CLEAN = (
    "a table with a missing value, an unknown level or a number outside its bounds is refused before "
    "anything is paid or released, and that alone tells the others that the island has such a table"
)


# ---- in words, and what it costs ----


def disclosures(study: Study, opened: str) -> list[Disclosure]:
    method = secure_sums.chosen(study)
    said = [
        Disclosure(OWNER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(OWNER, "whether the other owners' tables fit the schema, yes or no", (Compared,)),
        Disclosure(CURATOR, opened, method.to_receivers, ("model", "moments")),
    ]
    for output, kind in (("model", SyntheticModel), ("moments", NoisyMoments)):
        if any(address.role == OWNER for address in study.receivers(output)):
            said.append(Disclosure(OWNER, OUTPUTS[output].words, (kind,), OUTPUTS[output].values))
    return said


def terms(study: Study, p: SynthesisParameters, costs: Sequence[Cost]) -> PrivacyTerms:
    asked = p.privacy
    words = [
        *promise(costs, asked.delta, asked.neighbours),
        noise_words(asked, crowd(study, asked)),
        _PUBLIC,
        _CLEAN,
    ]
    return PrivacyTerms(
        asked.epsilon,
        asked.delta,
        asked.neighbours,
        tuple(costs),
        tuple(words),
        crowd(study, asked).colluders,
    )


def expected(study: Study, lengths: list[int], p: SynthesisParameters, told: int = 0) -> Expectation:
    """``told``: rounds in which the curator tells owners something, who compare it."""
    M, cells = len(study.who(OWNER)), sum(p.sizes)
    cost = secure_sums.expected(study, M, lengths)
    compared, message = (1 + told) * comparisons(M), 8 * (cells * cells + 64 * cells)
    released = sum(a.role == OWNER for output in OUTPUTS for a in study.receivers(output))
    return Expectation(
        messages=compared + told * M + cost.messages + released,
        bytes_per_provider=cost.bytes_per_contributor + compared // M * COMPARISON_BYTES,
        bytes_total=cost.bytes_total + compared * COMPARISON_BYTES + released * message,
        memory_server=4 * fixedpoint.BYTES_PER_VALUE * max(lengths),
        rounds=1 + 2 * told + cost.rounds + bool(released),
    )


def check_stays(study: Study) -> None:
    """Owners compare before they pay, and later sums are over the same rows: nobody may leave."""
    if secure_sums.may_leave(study):
        raise StudyError(
            f"{study.protocol} waits for every owner: none can leave in between",
            hint="dropouts = 0",
            path=("sum", "dropouts"),
        )
