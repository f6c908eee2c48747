"""Time and memory of a run before keys exist, and why it takes this recipe and not the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.protocols.base import Circumstances, Expectation, Forecast
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.beforehand import assumed_rows, own_columns
from atoll.protocols.pca.sfpca.parameters import (
    MAX_AUTO,
    MAX_DIRECT,
    SFPCAParameters,
    StudyLinks,
    decide,
    direct_shows_no_more,
    may_hide,
)
from atoll.protocols.pca.sfpca.planner import CountedRun, Shape, joint_rows, planned
from atoll.protocols.pca.sfpca.recipes.strict import OVERSAMPLING
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS
from atoll.secret_matrices.costs import rates as tables
from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.rates import Rates
from atoll.secret_matrices.costs.timing import Effort, Links, Timeline
from atoll.study.model import Study

_PROGRAM = 350_000_000
"""Bytes of the program itself with its libraries, keys and the tables of all rings."""
_IDLE = 512 << 20
"""Bytes that the library keeps, at most, for the next step: as much as is in use, up to that."""
_COPIES = 2.5
"""Copies of a table that a provider has at a time: as it came, as it is checked, and pieces on the grid."""


class Course(NamedTuple):
    """One recipe, planned to its end."""

    run: CountedRun
    together: float
    apart: float


def forecast(study: Study, given: Circumstances) -> tuple[Expectation, Forecast]:
    """What the run will take, by the rates of this machine."""
    p, rates = study.read_parameters(SFPCAParameters), tables.current()
    given = _on_the_studys_links(given, p.links)
    d = given.columns
    k, tries = decide(p, joint_rows(study, given.rows) if given.rows else None, d)
    rows = given.rows or (assumed_rows(d),) * len(study.who(PROVIDER))
    shape = Shape(rows, d, k)
    taken = planned_course(study, tries[0], given, shape, rates)
    costing = taken.run.machine.costing
    table_bytes = [int(8 * _COPIES * n * own_columns(study, d)) for n in rows]
    providers = [memory.most + own for memory, own in zip(costing.memories, table_bytes, strict=True)]
    keys = costing.key_parts
    return taken.run.expected, Forecast(
        taken.together,
        taken.apart,
        float(costing.effort.providers.max()),
        costing.effort.coordinator_seconds,
        _memory(sum(table_bytes) + keys + _in_one_process(costing, rates.cores)),
        _memory(max(providers) + keys),
        _memory(max(costing.coordinator_memory.most, 2 * keys)),
        tuple(_course(study, p, tries, taken, given, shape, rates)),
        tuple(_assumed(given, rows, rates)),
    )


def _on_the_studys_links(given: Circumstances, links: StudyLinks) -> Circumstances:
    """The study's links, unless somebody asks for others."""
    usual = Circumstances(given.columns, given.rows)
    return given if given != usual else usual._replace(latency=links.seconds, bandwidth=links.bytes_a_second)


def _memory(used: int) -> int:
    return _PROGRAM + used + min(used, _IDLE)


def _in_one_process(costing: Costing, cores: int) -> int:
    """What all keep, and as many steps as there are cores to do at a time."""
    roles = [*costing.memories, costing.coordinator_memory]
    return sum(role.lasting for role in roles) + sum(sorted(role.passing for role in roles)[-cores:])


def planned_course(study: Study, recipe: str, given: Circumstances, shape: Shape, rates: Rates) -> Course:
    """The run with one recipe, its clocks included."""
    links = Links(given.latency, given.bandwidth)
    n_providers = len(shape.rows)
    lines = [Timeline(n_providers, links, rates.cores, together=together) for together in (True, False)]
    run = planned(study, recipe, shape, Costing(rates, Effort(n_providers, lines)))
    return Course(run, lines[0].seconds, lines[1].seconds)


def _course(
    study: Study,
    p: SFPCAParameters,
    tries: Sequence[str],
    taken: Course,
    given: Circumstances,
    shape: Shape,
    rates: Rates,
) -> list[str]:
    """Why this recipe, what the other one would cost, and what follows a refusal."""
    said = [f"{_name(tries[0])}, because {_reason(p, shape.k, shape.columns)}: {_cost(taken)}"]
    if p.epsilon is not None:
        return said
    if p.hides_spectrum:
        said.append(f'eigen = "masked" instead: {_masked_cost(study, given, shape, rates)}')
        return said + _second_try(study, tries, given, shape, rates)
    other = "default" if tries[0] == "direct" else "direct"
    possible = shape.columns <= MAX_DIRECT if other == "direct" else shape.k < joint_rows(study, shape.rows)
    if possible:
        instead = planned_course(study, other, given, shape, rates)
        said.append(f"{_name(other)} instead: {_cost(instead)}")
    if may_hide(study, p):
        hidden = planned_course(study, next(iter(EFFORTS)), given, shape, rates)
        said.append(f'eigen = "encrypted" instead, which opens no spectrum: {_cost(hidden)}')
    return said + _second_try(study, tries, given, shape, rates)


def _second_try(
    study: Study, tries: Sequence[str], given: Circumstances, shape: Shape, rates: Rates
) -> list[str]:
    if len(tries) == 1:
        return []
    again = planned_course(study, tries[1], given, shape, rates)
    more = f"{_name(tries[1])}, once more with new keys"
    return [f"should the certificate refuse the first result: {more}: {_cost(again)}"]


def _masked_cost(study: Study, given: Circumstances, shape: Shape, rates: Rates) -> str:
    """What the same study would take if it opened a spectrum."""
    recipe = "direct" if direct_shows_no_more(shape.k, shape.columns) else "default"
    return f"{_name(recipe)}, {_cost(planned_course(study, recipe, given, shape, rates))}"


def _name(recipe: str) -> str:
    if recipe in EFFORTS:
        return f"the encrypted eigenproblem ({'accurate' if 'accurate' in recipe else 'default'} course)"
    return recipe if recipe == "direct" else f"strict ({recipe} policy)"


def _cost(course: Course) -> str:
    sent = course.run.machine.provider_bytes / 1e6
    return f"{course.run.rounds} rounds, {sent:.0f} MB sent by each island, {course.apart:.2g} s"


def _reason(p: SFPCAParameters, k: int, m: int) -> str:
    ritz = min(k + OVERSAMPLING, m)
    if p.hides_spectrum:
        return "the study opens no spectrum and no total variance (eigen = 'encrypted')"
    if p.epsilon is not None:
        return "a noisy covariance may be indefinite, which strict cannot bound"
    if p.recipe != "auto":
        return f"the study asks for recipe={p.recipe!r}"
    if p.whole_spectrum:
        return f"all components are asked for, and with them all {m} eigenvalues"
    fewer = f"it opens {ritz} numbers of the spectrum where direct would open all {m}"
    if p.spectrum == "ritz":
        return f"{fewer}, which spectrum = 'ritz' forbids"
    if ritz == m:
        return f"it is exact, and opens what strict would open as well: all {m} eigenvalues"
    if direct_shows_no_more(k, m):
        return f"it opens all {m} eigenvalues where strict would open {ritz}, and is exact"
    if m <= p.direct_limit:
        return (
            f"up to {p.direct_limit} columns the study takes it, as the faster one on {p.links.words()}; "
            f"it is exact, and opens all {m} eigenvalues where strict would open {ritz} (spectrum = 'ritz' "
            "forbids that)"
        )
    beyond = f"; on {p.links.words()} the study takes direct up to {p.direct_limit} columns"
    return fewer + beyond if m <= MAX_AUTO else fewer


def _assumed(given: Circumstances, rows: Sequence[int], rates: Rates) -> list[str]:
    known = f"{sum(rows):,} rows in all" if given.rows else f"{rows[0]:,} rows on each island (--rows)"
    speed = f"{8 * given.bandwidth / 1e6:,.0f} Mbit/s" if given.bandwidth else "any bandwidth"
    return [
        known,
        f"links of {1000 * given.latency:g} ms and {speed} between every two parties",
        f"machines of {rates.cores} cores; speeds: {rates.origin}",
        "no second try is needed; bytes depend a little on the scale of the data",
    ]
