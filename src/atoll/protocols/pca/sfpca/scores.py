"""Projections of a provider's own rows, for a provider that may not have the components."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2
from typing import Any

import numpy as np

from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.recipes.correlation import projection, score_bits
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.secret_matrices.machine import Job, Machine
from atoll.secret_matrices.widths import cut_for
from atoll.study.address import Address
from atoll.study.model import Study

SCORE_ROWS = 1024
"""Rows of one product: more would take too much memory."""
ROW_FRACTION = 40
_SCORE_FRACTION, _FACTOR_FRACTION = 44, 50


def score_owners(study: Study) -> list[Address]:
    """Providers that receive scores and cannot compute them by themselves."""
    return [
        address
        for address in study.who(PROVIDER)
        if study.releases("scores", address) and not study.releases("components", address)
    ]


def row_fraction(found: Found) -> int:
    """Fractional bits of a row's entries: standardising magnifies what is rounded away."""
    return ROW_FRACTION if found.standardised is None else 60


async def for_rows(machine: Machine, found: Found) -> Found:
    """The matrix that projects rows before they are standardised, and its product with the mean."""
    if found.standardised is None:
        return found
    WD, offset = await projection(machine, found.components, found.standardised)
    return found._replace(components=WD, offset=offset)


def score_job(machine: Machine, found: Found, m: int, owner: str, count: int, rows: Any) -> Job:
    """W X_i^T - offset for ``count`` rows that only their owner knows (elsewhere None)."""
    ones = None
    if rows is not None:
        ones = np.full((1, count), -round(found.offset_factor * 2**_FACTOR_FRACTION))
    # Blocks and shift of a full block of rows, whatever the number: the components are encrypted once.
    full = _job(machine, found, m, owner, SCORE_ROWS, None, None)
    return replace(_job(machine, found, m, owner, count, rows, ones), cut=cut_for(machine, full))


def _job(machine: Machine, found: Found, m: int, owner: str, count: int, rows: Any, ones: Any) -> Job:
    assert found.offset is not None, "rows are projected after for_rows"
    right = machine.private(owner, rows, (m, count), row_fraction(found), 1)
    minus = machine.private(owner, ones, (1, count), _FACTOR_FRACTION, 2)
    # Neither a projected row nor a projected mean is longer than sqrt(m).
    bits = 2 + ceil(log2(m) / 2) if found.standardised is None else score_bits(m)
    return Job(((found.components, right), (found.offset, minus)), _SCORE_FRACTION, bits, "scores")
