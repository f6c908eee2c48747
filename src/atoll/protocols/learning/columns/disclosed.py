"""Who learns what of a fit with columns split, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from atoll import secure_sums
from atoll.network import Compared
from atoll.protocols.agreement import COMPARISON_BYTES, comparisons
from atoll.protocols.base import Circumstances, Disclosure, Expectation
from atoll.protocols.learning.columns import table
from atoll.protocols.learning.columns.consent import PAIR, SPAN, ColumnsParameters
from atoll.protocols.learning.columns.course import Told
from atoll.protocols.learning.columns.released import (
    CONSUMER,
    PROVIDER,
    SERVER,
    CommonRows,
    OwnPart,
    Rest,
)
from atoll.protocols.learning.columns.split import Due, Kind, Total, longest_sum
from atoll.protocols.learning.columns.table import Held, Joint
from atoll.protocols.learning.rows import Fit
from atoll.study.address import Address
from atoll.study.model import Study

_HEADER = 40
"""Bytes of a message beside its numbers, about."""


def learns(kind: Kind, study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    method, p, group = secure_sums.chosen(study), study.read_parameters(kind.parameters), study.who(PROVIDER)
    leader, levels = table.leader_of(p, group), ", and the classes of the target" if kind.classifies else ""
    others = tuple(address.party for address in group if address != leader)
    common = ("n_samples", "islands")
    said = [
        Disclosure(PROVIDER, f"the columns of all islands{levels}, and the number of rows", (Joint,), common),
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(
            PROVIDER, f"{leader.party} leads, and learns {kind.opened}", (Total,), ("fit",), (leader.party,)
        ),
        Disclosure(PROVIDER, f"in every step: {kind.told}", (Told,), (), others),
        Disclosure(PROVIDER, "its own part of the model", (), ("part",)),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(SERVER, f"each island's column names{levels}, and the number of rows", (Held,), common),
        Disclosure(SERVER, kind.opened, method.to_receivers),
        Disclosure(SERVER, "when a sum is due", (Due,)),
        *_what_follows(kind, p, group, leader),
    ]
    if kind.offsets and study.receivers("model"):
        said.append(Disclosure(SERVER, "the intercept of the joint model"))
    whole = (
        "every island's coefficients, and the intercept" if kind.offsets else "the centres, in all columns"
    )
    for output, messages, words in (
        ("model", (OwnPart, Rest), f"the whole model: {whole}"),
        ("fit", (Fit,), "how well the model fits"),
        ("n_samples", (CommonRows,), "the number of rows, and which islands hold their columns"),
    ):
        for role in dict.fromkeys(address.role for address in study.receivers(output)):
            arriving = tuple(m for m in messages if _arrives(m, role, study, leader, output))
            if arriving:
                said.append(Disclosure(role, words, arriving, ("fit",) if output == "fit" else ()))
    return said


def _arrives(message: type, role: str, study: Study, leader: Address, output: str) -> bool:
    if message is CommonRows:
        return role == CONSUMER
    if message is Rest and role == SERVER:
        return False
    receivers = [address for address in study.receivers(output) if address.role == role]
    return not (message is Fit and receivers == [leader])


def _what_follows(
    kind: Kind, p: ColumnsParameters, group: Sequence[Address], leader: Address
) -> list[Disclosure]:
    said = [Disclosure(role, f"what the steps give away together: {SPAN}") for role in (PROVIDER, SERVER)]
    if p.y_holder is not None:
        shown = "the class of every row" if kind.classifies else "the target, up to each row's summed score"
        said.append(Disclosure(PROVIDER, f"from the residuals that {leader.party} tells: {shown}"))
    if len(group) == 2:
        said.append(Disclosure(PROVIDER, PAIR))
    return said


def counted(kind: Kind, study: Study, at: Circumstances, more: int = 0) -> Expectation:
    """Messages, bytes and rounds for tables of so many columns and rows; ``more`` sums than usual."""
    p, group = study.read_parameters(kind.parameters), study.who(PROVIDER)
    M, d, rows = len(group), at.columns, at.rows[0] if at.rows else 0
    classes = 2 if kind.classifies else 0
    joint = Joint(tuple(map(str, range(d))), (), True, rows, tuple(map(str, range(classes))))
    sizes, sums = kind.sizes(p, joint), max(1, kind.usual(p, d) + more)
    receivers = study.receivers("model")
    offsets = [1] if kind.offsets and receivers else []
    cost = secure_sums.expected(study, M, [*(sizes.sum(step) for step in range(sums)), *offsets])
    same = 1 + (sums + 1) + (p.target is not None and p.y_holder is None)
    told = same * comparisons(M)
    leader = table.leader_of(p, group)
    fits = sum(address != leader for address in study.receivers("fit"))
    parts = sum(address != owner for address in receivers for owner in group)
    rests = sum(address.role != SERVER for address in receivers)
    counts = sum(address.role == CONSUMER for address in study.receivers("n_samples"))
    led = sum(8 * (rows * sizes.width + sizes.numbers(step)) + 2 * _HEADER for step in range(sums + 1))
    totals = sum(8 * sizes.sum(step) + _HEADER for step in range(sums))
    names = 20 * d
    sent = (M - 1) * led + totals + (sums + 1) * _HEADER + (M + 1) * names + M * 2 * _HEADER
    return Expectation(
        messages=2 * M
        + cost.messages
        + told
        + (sums + 1) * M  # to the other providers, and to the server
        + sums
        + fits
        + parts
        + rests
        + counts,
        bytes_per_provider=cost.bytes_per_contributor
        + told // M * COMPARISON_BYTES
        + max(names // M, (M - 1) * led),
        bytes_total=cost.bytes_total + told * COMPARISON_BYTES + sent + parts * (16 * d // M + _HEADER),
        memory_server=4 * 24 * longest_sum(sizes, p),
        rounds=_rounds(study, cost.rounds, sums, bool(fits or parts or rests or counts), p),
    )


def _rounds(study: Study, summing: int, sums: int, released: bool, p: ColumnsParameters) -> int:
    del study
    handshake = 3 + (p.target is not None and p.y_holder is None)
    return handshake + summing + 3 * sums + 2 + released
