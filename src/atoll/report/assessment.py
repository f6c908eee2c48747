"""A study's review as Markdown, for a data protection impact assessment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from atoll.report.analyses import renderer_of
from atoll.report.known import also_known
from atoll.report.units import duration, listing, size
from atoll.review.budget import PrivacyReview, identity_missing
from atoll.review.study import CostReview, Review, RoleReview

_SPLITS = {
    "horizontal": "Each island holds rows (records) of its own with the same columns.",
    "vertical": "The islands hold different columns of the same records.",
}


_OPEN = "**to be filled in**"
_REHEARSAL = (
    "A rehearsal: all roles run in one process, on one machine that has every island's table. What is said "
    "of the parties holds for the roles there, not for whoever runs that machine."
)
_BETWEEN_MACHINES = (
    "A run between machines: every party has a key of its own and runs its own role on its own machine, "
    "where its table stays."
)


def as_markdown(review: Review) -> str:
    """The whole text; it states only what the study and its protocol say."""
    parts = (
        [f"# Privacy review of the study “{_cell(review.name)}”"],
        [_identity(review)],
        ["## Purpose and responsibility", _stated(review), _purpose(review)],
        ["## How it is run", way_of_running(review)],
        ["## Parties", _parties(review)],
        ["## Data flows", _flows(review), _cost(review)],
        ["## Who learns what", *_learning(review)],
        ["## Outputs", _outputs(review)],
        ["## Against whom this protects", review.adversary, *_trust(review)],
        ["## Privacy budget", *_budget(review)] if review.privacy else [],
        ["## Safeguards", _bullets(_safeguards(review))],
        ["## Residual risks", _bullets(_risks(review))],
        ["## Words", _bullets(_words(review))],
    )
    return "\n\n".join(text for part in parts for text in part if text) + "\n"


def way_of_running(review: Review) -> str:
    """Where the tables are when the study runs: on everybody's own machine, or all in one place."""
    return _BETWEEN_MACHINES if review.between_machines else _REHEARSAL


def _identity(review: Review) -> str:
    return (
        f"Study digest (SHA-256): `{review.digest}`\n\n"
        "The digest is a fingerprint of the study. It covers the analysis and its parameters, the parties, "
        "the protection, the releases and, of the table below, everything but the contact and the columns "
        "that only tables name. Any change to these gives another digest and needs a new approval."
    )


def _stated(review: Review) -> str:
    """What the study's author says, or that it is still to be said."""
    said = review.assessment
    columns = f"{len(review.columns)}: {listing(review.columns, 40)}" if review.columns else ""
    rows = (
        ("Purpose", said.purpose),
        ("Legal basis", said.legal_basis),
        ("Controller", said.controller),
        ("Processors", ", ".join(said.processors)),
        ("Categories of data", ", ".join(said.data_categories)),
        ("Columns", columns),
        ("Retention", said.retention),
        ("Contact", review.contact),
    )
    return _table(("", "As the study says"), [(name, value or _OPEN) for name, value in rows])


def _purpose(review: Review) -> str:
    what = renderer_of(review.analysis).words
    islands = [party for role in review.roles if role.brings_data for party in role.parties]
    # The columns stand in the table above.
    given = {name: value for name, value in review.parameters.items() if name != "columns"}
    parameters = ", ".join(
        f"`{name}` = {_value(value)}" for name, value in given.items() if value is not None
    )
    apart = ", without bringing the records together in one place."
    place = apart if review.between_machines else ". In this rehearsal one machine has all of them."
    together = f"{len(islands)} organisations compute {what} over all their records together{place}"
    alone = f"Each of {len(islands)} organisations computes {what} of its own records only."
    return (
        f"{together if review.exchanges else alone} {_SPLITS.get(review.partition, '')} "
        f"Method: {review.title}.\n\nParameters, as the reference of study files explains them: "
        f"{parameters or 'none'}."
        + _listed("Before that, every island's table is prepared:", review.table)
        + _listed("Every island asks for this before it takes part:", review.guards)
    )


def _listed(title: str, sentences: Sequence[str]) -> str:
    items = "\n".join(f"- {_cell(sentence)}" for sentence in sentences)
    return f"\n\n{title}\n\n{items}" if sentences else ""


def _value(value: object) -> str:
    """As a study file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{_cell(value)}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _parties(review: Review) -> str:
    rows = [
        (role.role, listing(role.parties, 20), "yes" if role.brings_data else "no") for role in review.roles
    ]
    return _table(("Role", "Played by", "Brings records"), rows)


def _flows(review: Review) -> str:
    if not review.exchanges:
        return "No message is sent."
    about = renderer_of(review.analysis).about_records(review)
    stays = "Records themselves never leave an island." if review.between_machines else ""
    return f"{_hidden(review)} {stays or 'No message has a record itself in it.'} {about}"


def _hidden(review: Review) -> str:
    if review.secure_sum is None:
        nothing = "This method uses no secure sum: what an island sends can be read by its receiver."
        return review.protection or nothing
    what = "What islands contribute travels only inside a secure sum"
    if review.protection:
        what = f"{review.protection} For {review.summed} there is a secure sum"
    return (
        f"{what} (`{review.secure_sum}`): each contribution is blinded so that only the total over all "
        "islands can be read."
    )


def _cost(review: Review) -> str:
    cost = review.cost
    if cost is None:
        return ""
    rows = f", plus {cost.projection_bytes_per_row} bytes for each record's projection"
    return (
        f"Expected volume for {cost.columns} columns: {cost.messages:,} messages in {cost.rounds} rounds, "
        f"{size(cost.bytes_per_provider)} sent by each island, {size(cost.bytes_total)} in all"
        f"{rows if cost.projection_bytes_per_row else ''}; about {size(cost.memory_server)} of memory for "
        "the sums at the receiving party." + _steps(cost) + _forecast(cost)
    )


def _steps(cost: CostReview) -> str:
    if cost.further is None:
        return ""
    return (
        f" This is for {cost.steps} steps of the fit, which takes as many as it needs: each one more adds "
        f"{cost.further['messages']:,} messages in {cost.further['rounds']} rounds and "
        f"{size(cost.further['bytes_total'])}."
    )


def _forecast(cost: CostReview) -> str:
    foreseen = cost.forecast
    if foreseen is None:
        return ""
    return (
        f" Expected time: {duration(foreseen.seconds_apart)} with every party on its own machine "
        f"({'; '.join(foreseen.assumes)}). Course: {'; '.join(foreseen.course)}."
    )


def _learning(review: Review) -> list[str]:
    said = ["Beyond what it knew before, and apart from what it can compute from that:"]
    for role in review.roles:
        said += [
            f"**{_title(role)}** ({listing(role.parties, 20)}) learns",
            _bullets(_learns(role)),
        ]
    return said


def _title(role: RoleReview) -> str:
    return role.role.replace("_", " ").capitalize()


def _learns(role: RoleReview) -> list[str]:
    return [*role.learns, *role.caveats] or ["nothing"]


def _outputs(review: Review) -> str:
    rows = [
        (
            f"`{output.output}`",
            output.words,
            listing(output.released_to, 20) or "nobody",
            "; ".join(also_known(review, output)) or "nobody",
        )
        for output in review.outputs
    ]
    return _table(("Output", "What it is", "Released to", "Known anyway to"), rows)


def _trust(review: Review) -> list[str]:
    scope = f" (for {review.summed} only)" if review.summed else ""
    return [f"Secure sum `{review.secure_sum}`{scope}: {review.trust}"] if review.trust else []


def _budget(review: Review) -> list[str]:
    privacy = review.privacy
    assert privacy is not None
    said = [_bullets(privacy.words)]
    if privacy.accounts_missing:
        said.append(f"Budgets of single islands: {privacy.accounts_missing}.")
    rows = [
        (
            f"{account.island}: {account.identity}",
            ("none set" if account.budget is None else f"{account.budget:.4g}")
            + f" (at delta {account.delta:g})",
            _spent(account.epsilon_before) + account.before,
            _spent(account.epsilon_after)
            + account.after
            + (f" — **{account.refusal}**" if account.refusal else ""),
        )
        for account in privacy.accounts
    ]
    if rows:
        said.append(_table(("Data set", "Budget", "Epsilon before", "Epsilon after"), rows))
    return [*said, _bullets(map(identity_missing, privacy.without_identity))]


def _spent(epsilon: float | None) -> str:
    return "" if epsilon is None else f"{epsilon:.4g}: "


def _safeguards(review: Review) -> Iterable[str]:
    if review.between_machines:
        yield "Records stay where they are; there is no central copy."
    if review.protection:
        yield "Contributions are hidden on their way, as “Data flows” says."
    elif review.secure_sum:
        yield f"Contributions are added exactly, as whole numbers of 192 bits; {review.hides}."
    yield (
        "Each party learns what is listed above under its role and no more; outputs go only to the parties "
        "listed there."
    )
    yield "Missing and infinite values are refused."
    yield "Fewer than two islands are refused."
    if review.privacy is not None and review.privacy.private:
        yield f"Releases are differentially private: {review.privacy.words[0]}."
        yield "What is released of a data set is booked in its owner's ledger before it leaves."


def _risks(review: Review) -> Iterable[str]:
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in review.cautions)
    if not review.between_machines:
        yield (
            "In a rehearsal all records are on one machine. Whoever can read that machine can read them all: "
            "it needs the protection, and the permission, of a central copy."
        )
    for role in review.roles:
        yield from (f"{_title(role)}: {caveat}." for caveat in role.caveats)
    yield from (f"{sentence}." for sentence in review.combined)
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in review.determined)
    yield (
        "Parties are assumed to follow the protocol. One that deviates from it, for example by "
        "contributing invented records, can falsify the result; this protection does not detect it."
    )
    yield (
        "“Against whom this protects” says which parties are trusted not to work together. If they do "
        "nevertheless, they can find out what a single island contributed."
    )
    if review.privacy is not None and not review.privacy.private:
        yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in review.privacy.words)
    yield from (f"{sentence}." for sentence in review.booking)
    if review.privacy is None:
        yield (
            "Results are exact. No noise is added, so they can reveal something about records that stand "
            "out, the more so when there are few records or several studies over nearly the same records."
        )
    if review.privacy is not None and review.privacy.private:
        yield from _private_risks(review.privacy)
    yield from renderer_of(review.analysis).risks(review)


def _private_risks(privacy: PrivacyReview) -> Iterable[str]:
    """What an epsilon does not cover."""
    yield (
        "The promise is for one row, and one row is not one person: somebody with two rows has twice the "
        f"epsilon ({2 * privacy.epsilon:g}), with ten rows ten times ({10 * privacy.epsilon:g})."
    )
    harmless = privacy.colluders
    if harmless is not None:
        yield (
            "Every island is trusted to add its part of the noise. One that adds none, or invents it, is not "
            f"detected; {harmless or 'not even one'} of them can do so without harm to the privacy of the "
            "others, more would harm it."
        )
    yield (
        "Studies without an epsilon are not counted in any epsilon, and are booked only where the site has a "
        "ledger and the study file names the data set. Over the same rows, one of them can show what the "
        "noise hides here."
    )


_GLOSSARY = {
    "island": "an organisation that holds records, with its table.",
    "component": "a weighted mix of the columns along which records differ most; it is about all records "
    "together.",
    "projection": "a record's values on the components: a few numbers for each record.",
    "variance": "how much values differ from their mean: the mean of the squared differences.",
    "covariance": "how much every two columns vary together, over all records.",
    "correlation": "the same, of columns that were divided by how much each of them varies.",
    "second moments": "sums of products of every two columns; the covariance is computed from them.",
    "coefficient": "how much one column counts in the model's prediction.",
    "information matrix": "sums over all records that say how sure the coefficients are.",
    "deviance": "how far the model's predictions are from what was observed, over all records.",
    "offset": "the components' values at the mean of all records.",
    "eigenvalue": "how much the records vary along one component.",
    "secure sum": "a way to add numbers of several parties so that only the total can be read.",
    "epsilon": "how much a release can tell about one record: the smaller, the less.",
    "delta": "the probability with which that promise may fail.",
}


def _words(review: Review) -> Iterable[str]:
    """The technical words that this text uses, explained."""
    used = " ".join(
        [review.title, *(line for role in review.roles for line in (*role.learns, *role.caveats))]
        + [output.words for output in review.outputs]
        + [*(review.determined), *((review.privacy.words) if review.privacy else ())]
    ).lower()
    yield f"*island*: {_GLOSSARY['island']}"
    for word, meaning in _GLOSSARY.items():
        if word != "island" and (word in used or (word == "secure sum" and review.secure_sum)):
            yield f"*{word}*: {meaning}"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    """A name must not break out of its cell, nor be read as HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")
