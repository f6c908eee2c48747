"""Products of the recipe that sends second halves ahead: sums of products that are short enough for it.

A product takes two round trips if its right side is encoded anew for each half and that is much of its work
(:func:`goes_ahead`): the rule is made for covariances. The sketch is as wide as the table, and k + 24 rows
high: encoding it twice is little beside a product with the covariance. So its products are sums of a few
shorter ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from atoll.protocols.pca.sfpca.recipes.columns import steps
from atoll.secret_matrices.courses import goes_ahead
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import widths_for

_MOST_TERMS = 8


def travelling(jobs: Sequence[Job], ahead: bool) -> list[Job]:
    """The same products, whose second halves may travel ahead or not."""
    return [replace(job, ahead=ahead) for job in jobs]


def in_terms(machine: Machine, job: Job) -> Job:
    """The same product, as the sum of as few terms as let its second halves travel ahead; at most eight."""
    ((left, right),) = job.terms
    for count in range(1, min(_MOST_TERMS, left.shape[1]) + 1 if job.ahead else 1):
        made = replace(job, terms=_terms(machine, left, right, count))
        widths = widths_for(machine.n_providers, made, precisions=machine.precisions)
        if goes_ahead(made, widths, right.shown):
            return made
    return job


def _terms(machine: Machine, left: Shared, right: Shared, count: int) -> tuple[tuple[Shared, Shared], ...]:
    if count == 1:
        return ((left, right),)
    inner, whole = left.shape[1], slice(None)
    return tuple(
        (machine.part(left, whole, slice(*some)), machine.part(right, slice(*some), whole))
        for some in steps(inner, -(-inner // count))
    )
