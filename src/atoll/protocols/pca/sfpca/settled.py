"""Up to how many columns ``recipe = "auto"`` takes direct: by the planner's forecast on the study's links.

Direct takes a sixth of strict's rounds and fewer bytes, but more computing: which is faster depends on
the links. It opens all eigenvalues, strict only some. So the choice is part of what everybody approves: it
is made from the study alone (islands, components, links), with the table of rates that comes with the
package and rows of a usual number, and filled in before the study has its digest. No party measures
anything, and all have the same.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from atoll.protocols.base import Circumstances
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.beforehand import assumed_rows
from atoll.protocols.pca.sfpca.forecast import planned_course
from atoll.protocols.pca.sfpca.parameters import DIRECT_MARGIN, MAX_AUTO, MAX_DIRECT, SFPCAParameters
from atoll.protocols.pca.sfpca.planner import Shape
from atoll.secret_matrices.costs import rates
from atoll.study.model import Study, from_plain

_STEP = 8
"""Columns between two that are compared."""


def settle(study: Study) -> Study:
    """The study with ``direct_up_to`` filled in, where it leaves the choice to the planner."""
    p = study.read_parameters(SFPCAParameters)
    if p.recipe != "auto" or p.epsilon is not None or p.direct_up_to is not None:
        return study
    if p.spectrum == "ritz" or p.n_components is None or p.hides_spectrum:
        return study
    limit = p.n_components + DIRECT_MARGIN
    if p.columns is None or len(p.columns) > limit:
        limit = max(limit, _faster_up_to(study.canonical()))
    limit = min(MAX_DIRECT, limit)
    return msgspec.structs.replace(study, parameters={**study.parameters, "direct_up_to": limit})


@lru_cache(maxsize=64)
def _faster_up_to(canonical: bytes) -> int:
    """The most columns, of those compared, on which direct is no slower; 0 if there are none."""
    plain = msgspec.json.decode(canonical)
    study = from_plain({name: value for name, value in plain.items() if name != "format"})
    k = study.read_parameters(SFPCAParameters).n_components
    assert k is not None
    compared = range(_STEP * ((k + DIRECT_MARGIN) // _STEP + 1), MAX_AUTO + 1, _STEP)
    low, high = 0, len(compared)
    if compared and _direct_is_faster(study, k, compared[-1]):
        return compared[-1]
    while low < high:
        middle = (low + high) // 2
        if _direct_is_faster(study, k, compared[middle]):
            low = middle + 1
        else:
            high = middle
    return compared[low - 1] if low else 0


def _direct_is_faster(study: Study, k: int, columns: int) -> bool:
    """With every party on a machine of its own; to the millisecond, below which machines may round apart."""
    links = study.read_parameters(SFPCAParameters).links
    given = Circumstances(columns, (), links.seconds, links.bytes_a_second)
    shape = Shape((assumed_rows(columns),) * len(study.who(PROVIDER)), columns, k)
    direct, strict = (
        round(1000 * planned_course(study, recipe, given, shape, rates.reference()).apart)
        for recipe in ("direct", "default")
    )
    return direct <= strict
