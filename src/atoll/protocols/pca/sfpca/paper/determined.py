"""Whether the outputs say all second moments: :mod:`atoll.protocols.pca.determined`, for this variant.

What is opened carries noise at about 2^-26 of its scale, from rounding and flooding: so many bits are
counted as known.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.protocols.base import Circumstances
from atoll.protocols.pca import determined
from atoll.protocols.pca.determined import Given, Table
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.digits import takers
from atoll.protocols.pca.sfpca.paper.algorithm1 import Shape
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters
from atoll.protocols.pca.sfpca.parameters import VERTICAL
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.study.model import Study

BITS = 26


def _given(study: Study) -> Given:
    return Given(BITS, variances=bool(study.receivers("explained_variance")))


def check_outputs(study: Study, shape: Shape, widths: Sequence[int], range_: Range) -> None:
    """Refuse a run whose outputs would say the moments, before there are keys."""
    p = study.read_parameters(PaperParameters)
    if p.accept_determined or not takers(study):
        return
    table = _table(study, shape.columns, shape.rows, widths, 2.0 ** (range_.exponent + 1))
    determined.check(table, shape.psi, _given(study))


def _table(study: Study, columns: int, rows: Sequence[int], widths: Sequence[int], within: float) -> Table:
    """What is unknown to the provider that knows most."""
    n = rows[0] if study.partition == VERTICAL else sum(rows)
    if not any(address.role == PROVIDER for address in takers(study)):
        return Table(columns, n, within)
    if widths:
        return Table(columns, n, within, own_columns=max(widths))
    return Table(columns, n, within, own_rows=max(rows))


def determines(study: Study, known: Circumstances) -> tuple[str, ...]:
    """From how many components on the outputs say the moments, for tables of this size."""
    p = study.read_parameters(PaperParameters)
    if not takers(study):
        return ()
    rows = known.rows or (determined.ASSUMED_ROWS,) * len(study.who(PROVIDER))
    widths = (-(-known.columns // len(rows)),) if study.partition == VERTICAL else ()
    tables = [_table(study, known.columns, rows, widths, within) for within in determined.EXAMPLE_RANGES]
    return determined.review_words(tables, p.n_components, _given(study), accepted=p.accept_determined)
