"""How many digits of components, offset and scores are released, and when they say the moments all the same.

Every provider adds noise to its share of components and offset, uniform over 2^-digits of their scale (one
for components, the data's range for the offset), once and before anything is made of them: what is sent, kept
or multiplied with rows has the same noise, so that neither many scores nor a second opening averages it
away. One honest provider's noise alone hides all finer digits. Scores of common rows, whose receivers do not
know the rows, get noise of their own.

The matrix that is opened for the spectrum is not smudged beyond its rounding: variances have a double's
digits. Whether outputs say the moments nevertheless is counted in :mod:`atoll.protocols.pca.determined`:
before there are keys, and once more, for variances that say the rest, before anything is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np

from atoll.errors import StudyError
from atoll.protocols.base import Circumstances
from atoll.protocols.pca import determined
from atoll.protocols.pca.determined import Given, Table
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.parameters import VERTICAL, SFPCAParameters
from atoll.protocols.pca.sfpca.prepared import Public
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.protocols.pca.sfpca.schema import joint_rows
from atoll.protocols.pca.sfpca.scores import score_owners
from atoll.secret_matrices.machine import Machine, Shared
from atoll.study.address import Address
from atoll.study.model import Study

DIGITS = 26
"""Bits after the point that a study gets unless it asks for others: eight decimal digits."""
FEWEST, MOST = 16, 40
_MANY = 2**62
"""Rows of a table that nobody knows: as many as leave every rank possible."""
_NEARLY_ALL = "all components, or all but one,"


def bits_of(p: SFPCAParameters) -> int | None:
    """Bits of scale that are released; None for all that there are."""
    if p.epsilon is not None or p.digits == "full":
        return None  # with an epsilon the moments themselves carry noise
    return DIGITS if p.digits is None else int(p.digits)


def smudged(machine: Machine, p: SFPCAParameters, found: Found) -> Found:
    """Components and offset with no more digits than the study releases."""
    offset = None if found.offset is None else shortened(machine, p, found.offset)
    return found._replace(components=shortened(machine, p, found.components), offset=offset)


def shortened(machine: Machine, p: SFPCAParameters, x: Shared) -> Shared:
    """A matrix in units of its scale with noise over the digits that are not released."""
    bits = bits_of(p)
    return x if bits is None else machine.smudged(x, smudge_bits=x.fraction - bits)


# ---- what is determined ----


def takers(study: Study) -> list[Address]:
    """Roles that have components, can solve scores of their own rows for them, or may open them later."""
    found = [*study.receivers("components"), *study.receivers("encrypted")]
    return found if study.partition == VERTICAL else [*found, *score_owners(study)]


def given(p: SFPCAParameters) -> Given:
    """What the outputs say; variances are opened to all who hold shares."""
    return Given(bits_of(p) or determined.DOUBLE_BITS, whole_numbers=not p.standardize)


def table_of(study: Study, columns: int, rows: Sequence[int], widths: Sequence[int], within: float) -> Table:
    """What is unknown to the provider that knows most: its own rows or columns are no secret to it."""
    n = joint_rows(tuple(rows), tuple(widths))
    if not any(address.role == PROVIDER for address in takers(study)):
        return Table(columns, n, within)
    if widths:
        return Table(columns, n, within, own_columns=max(widths))
    return Table(columns, n, within, own_rows=max(rows))


def check_outputs(study: Study, public: Public) -> None:
    """Refuse a run whose outputs would say the moments, before there are keys."""
    p = study.read_parameters(SFPCAParameters)
    if p.epsilon is not None or p.accept_determined or not takers(study):
        return
    bounds = ranges.declared(p.bounds, public.columns)
    within = 2.0**public.range.exponent if bounds is None else _mean_range(bounds)
    table = table_of(study, len(public.columns), public.rows, public.widths, within)
    determined.check(table, public.k, given(p), fewer_digits=p.digits is None or p.digits == "full")


def check_spectrum(study: Study, public: Public, found: Found) -> None:
    """Refuse, once the spectrum is known to all, components whose variances say the rest."""
    p = study.read_parameters(SFPCAParameters)
    if found.values is None or found.total_variance is None:
        return  # nobody knows it
    if p.epsilon is None and not p.accept_determined and takers(study):
        values = found.values[: public.k].tolist()
        determined.check_spectrum(values, found.total_variance, len(public.columns))


def _mean_range(bounds: ranges.Declared) -> float:
    """The geometric mean of the columns' ranges, no column's below one: bits add up."""
    return float(np.exp2(np.log2(np.maximum(bounds.high - bounds.low, 1.0)).mean()))


def check(study: Study) -> None:
    """What can be refused before the tables are known."""
    p = study.read_parameters(SFPCAParameters)
    _check_digits(p)
    if p.epsilon is not None or p.accept_determined:
        return
    if study.partition == VERTICAL and study.receivers("scores"):
        raise StudyError(
            "scores of common rows are made of all islands' columns: whoever has them can solve columns of "
            "few distinct values row by row, however few digits there are",
            hint="release components, or accept_determined = true where all may know all columns",
            path=("release", "scores"),
        )
    if not takers(study):
        return
    first = None if p.columns is None else determined.whole_line(Table(len(p.columns), _MANY), given(p))
    if p.n_components is None or (first is not None and p.n_components >= first):
        what = "correlation matrix" if p.standardize else "covariance"
        which = (
            f"{first} components or more of {len(p.columns)}" if p.standardize and p.columns else _NEARLY_ALL
        )
        raise StudyError(
            f"{which} say the whole joint {what}",
            hint=determined.hint(0 if first is None else first - 1, whole=True),
            path=("parameters", "n_components"),
        )


def _check_digits(p: SFPCAParameters) -> None:
    value = p.digits
    if value is None or value == "full":
        return
    if isinstance(value, bool) or not isinstance(value, int) or not FEWEST <= value <= MOST:
        raise StudyError(
            f"digits={value!r} is not possible",
            hint=f'bits after the point, {FEWEST} to {MOST}, or "full"',
            path=("parameters", "digits"),
        )


# ---- what the review says ----


def determines(study: Study, known: Circumstances) -> tuple[str, ...]:
    """From how many components on the outputs say the moments, for tables of this size."""
    p = study.read_parameters(SFPCAParameters)
    if p.epsilon is not None or not takers(study):
        return ()
    out, m = given(p), known.columns
    rows = known.rows or (determined.ASSUMED_ROWS,) * len(study.who(PROVIDER))
    widths = _even(m, len(rows)) if study.partition == VERTICAL else ()
    widest = determined.EXAMPLE_RANGES if p.bounds is None else (_declared_range(p),)
    tables = [table_of(study, m, rows, widths, within) for within in widest]
    return determined.review_words(tables, p.n_components, out, accepted=p.accept_determined)


def _declared_range(p: SFPCAParameters) -> float:
    bounds = p.bounds
    if isinstance(bounds, int | float):
        return 2 * float(bounds)
    pairs = list(bounds.values()) if isinstance(bounds, dict) else list(bounds or ())
    return float(2 ** (sum(log2(max(1.0, high - low)) for low, high in pairs) / len(pairs)))


def _even(m: int, islands: int) -> tuple[int, ...]:
    return tuple(m // islands + (i < m % islands) for i in range(islands))
