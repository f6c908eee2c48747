"""A review as parts of a page: what ``atoll review`` says, for whoever reads it in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from atoll.report.analyses.base import Column, Table
from atoll.report.assessment import way_of_running
from atoll.report.html.section import Section
from atoll.report.known import also_known, released_to
from atoll.report.units import duration, listing, size
from atoll.review.budget import identity_missing

if TYPE_CHECKING:
    from atoll.protocols.base import Forecast
    from atoll.review.budget import PrivacyReview
    from atoll.review.study import CostReview, Review


_EXACT = (
    "The result is exact: no noise is added. What is released says as much as the same figures of the pooled "
    "rows."
)


def review_sections(review: Review) -> list[Section]:
    """Everything that somebody reads before approving a study."""
    return [learning(review, tense="learns"), _budget(review), _cost(review), study_facts(review)]


def learning(review: Review, tense: str = "learned") -> Section:
    """Who learns what, who gets the outputs, and what that rests on."""
    rows = [
        (
            role.role,
            listing(role.parties, 8),
            "yes" if role.brings_data else "no",
            _lines((*role.learns, *role.caveats)) or "nothing",
        )
        for role in review.roles
    ]
    heads = (Column("role"), Column("played by"), Column("brings rows"), Column("learns"))
    outputs = [
        (
            one.output,
            one.words,
            "\n".join(released_to(review, one)) or "nobody",
            _lines(also_known(review, one)) or "nobody else",
        )
        for one in review.outputs
    ]
    columns = (
        Column("output"),
        Column("what it is"),
        Column("released to"),
        Column("known by the protocol's nature to"),
    )
    words = [f"Against whom this protects: {review.adversary}"]
    if review.protection:
        words.append(review.protection)
    if review.trust:
        scope = f" (for {review.summed} only)" if review.summed else ""
        words.append(f"{review.secure_sum}{scope}: {review.trust}")
    warnings = [*review.combined, *review.determined, *review.cautions]
    tables = [Table("roles", "Roles", heads, rows), Table("outputs", "Outputs", columns, outputs)]
    return Section("learned", f"Who {tense} what", words, warnings, tables=tables)


def _lines(sentences: Sequence[str]) -> str:
    """One a line; pages keep the lines."""
    return "\n".join(f"• {one}" for one in sentences) if len(sentences) > 1 else "".join(sentences)


def privacy_words(review: Review) -> list[str]:
    """What the study promises, or that it promises nothing."""
    if review.privacy is None:
        return [_EXACT]
    return list(review.privacy.words)


def _budget(review: Review) -> Section:
    privacy = review.privacy
    if privacy is None:
        return Section("privacy", "Privacy budget", privacy_words(review), review.booking)
    warnings = [*privacy.refusals, *map(identity_missing, privacy.without_identity)]
    warnings += [account.refusal for account in privacy.accounts if account.refusal]
    words = [*privacy_words(review), *filter(None, (privacy.accounts_missing,))]
    if not privacy.private:
        words, warnings = [], [*words, *warnings]
    return Section("privacy", "Privacy budget", words, warnings, tables=_accounts(privacy))


def _accounts(privacy: PrivacyReview) -> list[Table]:
    if not privacy.accounts:
        return []
    rows = [
        (
            one.identity,
            "none" if one.budget is None else f"{one.budget:.4g}",
            f"{one.delta:g}",
            _epsilon(one.epsilon_before),
            _epsilon(one.epsilon_after),
            one.after,
        )
        for one in privacy.accounts
    ]
    names = ("data set", "budget (epsilon)", "at delta", "spent before", "spent after", "what that means")
    return [Table("accounts", "Before and after", tuple(map(Column, names)), rows)]


def _epsilon(value: float | None) -> str:
    return "not bounded" if value is None else f"{value:.4g}"


def _cost(review: Review) -> Section:
    cost = review.cost
    if cost is None:
        return Section("cost", "Expected cost", [review.cost_missing or "It cannot be said."])
    facts = [
        ("Messages", f"{cost.messages:,}"),
        ("Rounds", f"{cost.rounds}"),
        ("Sent by each island", size(cost.bytes_per_provider)),
        ("Sent in all", size(cost.bytes_total)),
        ("Memory for the sums, at the receiver", size(cost.memory_server)),
        *_further(cost),
        *_forecast(cost.forecast),
    ]
    if cost.projection_bytes_per_row:
        facts.append(("And for each record's projection", f"{cost.projection_bytes_per_row} B"))
    words = [] if cost.forecast is None else [*cost.forecast.course]
    return Section("cost", f"Expected cost, for {cost.columns} columns", words, facts=facts)


def _further(cost: CostReview) -> list[tuple[str, str]]:
    if cost.further is None:
        return []
    return [
        ("For how many steps of the fit", f"{cost.steps}"),
        ("Each step more: messages", f"{cost.further['messages']:,}"),
        ("Each step more: rounds", f"{cost.further['rounds']}"),
        ("Each step more: sent in all", size(cost.further["bytes_total"])),
    ]


def _forecast(forecast: Forecast | None) -> list[tuple[str, str]]:
    if forecast is None:
        return []
    return [
        ("Time, every party on its own machine", duration(forecast.seconds_apart)),
        ("The busiest island's processor", duration(forecast.processor_provider)),
        ("The busiest island's memory", size(forecast.memory_provider)),
    ]


def study_facts(review: Review, *more: tuple[str, str]) -> Section:
    """Which study it is."""
    given = {name: value for name, value in review.parameters.items() if value is not None}
    facts = [
        ("Study", review.name),
        ("Digest (SHA-256)", review.digest),
        ("Protocol", f"{review.protocol}: {review.title}"),
        ("Way of running", way_of_running(review)),
        ("Secure sum", review.secure_sum or "none"),
        ("Partition", "islands hold rows" if review.partition == "horizontal" else "islands hold columns"),
        *((f"Parameter {name}", repr(value)) for name, value in given.items()),
        *more,
    ]
    return Section("study", "The study", facts=facts)
