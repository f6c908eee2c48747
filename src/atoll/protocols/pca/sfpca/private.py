"""SF-PCA with an epsilon: the moments carry noise before any of them is encrypted.

The paper's D.3 is another thing, noise from an encrypted list, added at decryption.

1. The private centre, by the stages of ``private_release``: the providers' noisy sums are added by the
   study's secure sum, and everybody learns the centre.
2. Second moments of the rows around it, on the integer grid, each provider's with its noise share. They
   take the place of the covariance, and the centre that of the mean: whatever is opened later (spectrum,
   total variance, certificate, components, offset) is a function of noisy numbers.

The numbers of rows are public here, so neighbours differ in the content of one row (replace-one).

A noisy matrix may be indefinite, which the strict recipe cannot bound; the direct one needs a bound on the
Frobenius norm only. It is public: n for rows no longer than one, plus what the noise can reach but for
2^-40, of 256 providers 2^-38 (``privacy.tails``). The matrix is divided by the next power of two above it.
"""

from __future__ import annotations

from functools import partial
from math import ceil, hypot, log2
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from atoll.data.island import Chosen, Matrix
from atoll.errors import ParameterError, RangeOverflow, StudyError
from atoll.network import Network, Record
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid, tails
from atoll.protocols.base import PrivacyTerms
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own
from atoll.protocols.pca import private_release as release
from atoll.protocols.pca.private_release import RECORDED_NOISE
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, PRIVATE_RECIPES, SFPCAParameters
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.protocols.pca.sfpca.recipes.certificate import of_spectrum
from atoll.protocols.pca.sfpca.recipes.direct import (
    DATA_FRACTION,
    ROTATION_FRACTION,
    Found,
    Inputs,
    joint_rotation,
    rotated_and_opened,
)
from atoll.protocols.pca.sfpca.recipes.moments import Moments
from atoll.protocols.pca.sfpca.scores import score_owners
from atoll.protocols.private_options import Privacy
from atoll.randomness import fresh_seed
from atoll.secret_matrices.machine import Machine
from atoll.secure_sums import SecureSum
from atoll.study.model import Study

_WITH_EPSILON = frozenset(
    {"privacy", "n_components", "recipe", "retry", "bounds", "columns", "links", "threshold"}
)


class Noisy(NamedTuple):
    """Everything public about the noisy matrix, once the centre is."""

    exponent: int
    """The integers of all providers are divided by 2^exponent, which bounds their Frobenius norm."""
    unit: float
    """What one is worth in that matrix: variance (divisor n) in units of the data's range."""
    sigma: float
    """Of the noise, in the same units as the variance."""
    rows: dp.Rows
    centre: dp.Centre
    """That everybody knows, with its noise."""


class Prepared(NamedTuple):
    """What the stages before the first encryption leave."""

    range: Range
    noisy: Noisy | None
    """None without an epsilon."""
    moments: Moments | None


# ---- the plan: a function of the study and the columns ----


def asked(p: SFPCAParameters, otherwise: float | None) -> Privacy | None:
    """The release that the study asks for, if it does; ``otherwise``: the row norm if it names none."""
    if p.privacy is None:
        return None
    norm = otherwise if p.privacy.row_norm is None else p.privacy.row_norm
    return structs.replace(p.privacy, row_norm=norm)


def asked_for(p: SFPCAParameters, columns: tuple[str, ...]) -> tuple[Privacy, Matrix]:
    """The release for tables with these columns, and the point that rows are measured from."""
    bounds = ranges.declared(p.bounds, columns)
    centre = np.zeros(len(columns)) if bounds is None else bounds.range().centre
    half = None if bounds is None else hypot(*((bounds.high - bounds.low) / 2))
    wanted = asked(p, half)
    assert wanted is not None
    return wanted, centre


def plan_of(study: Study, columns: tuple[str, ...]) -> tuple[dp.Plan, Matrix]:
    wanted, centre = asked_for(study.read_parameters(SFPCAParameters), columns)
    return release.plan_of(study, wanted, len(study.who(PROVIDER)), len(columns)), centre


def noisy_matrix(plan: dp.Plan, centre: dp.Centre, n: int) -> Noisy:
    """Scale and noise of the matrix that is encrypted."""
    reach = n * grid.MOMENT_UNITS + tails.frobenius_reach(plan.moments.noise, plan.features)
    exponent = ceil(log2(reach))
    per_row = 1.0 / (n * 4.0 ** range_exponent(plan))
    return Noisy(
        exponent,
        2.0**exponent * dp.moment_unit(plan, centre) * per_row,
        dp.moment_deviation(plan, centre) * per_row,
        plan.rows,
        centre,
    )


def range_exponent(plan: dp.Plan) -> int:
    """The private centre is no further away than the row norm."""
    return ceil(log2(plan.row_norm))


# ---- steps ----


def noisy_moments(plan: dp.Plan, table: Chosen, centre: dp.Centre, seed: bytes, noisy: Noisy) -> Moments:
    """A provider's second moments with its noise share, and its rows' part of the centre."""
    triangle = release.noisy_integers(plan, plan.moments, table, centre, seed)
    full = grid.unpack_triangle(triangle, plan.features)
    if not np.linalg.norm(full) <= 2.0**noisy.exponent:
        raise RangeOverflow("the noise is beyond the bound that masks are made for; no number was sent")
    G = np.zeros((plan.features, plan.features), dtype=object)
    upper = np.triu_indices(plan.features, 1)
    G[upper] = triangle[plan.features :]
    G += G.T
    G[np.diag_indices(plan.features)] = triangle[: plan.features]
    point = np.rint(np.ldexp(centre.point, DATA_FRACTION - range_exponent(plan)))
    u = np.array([table.n_rows * int(v) for v in point], dtype=object)
    return Moments(table.n_rows, u, int(triangle[: plan.features].sum()), G)


async def private_direct(machine: Machine, inputs: Inputs, k: int, noisy: Noisy) -> Found:
    """The direct recipe on the noisy matrix; the centre stands where the mean stood."""
    m, own = inputs.columns, inputs.moments
    up = ROTATION_FRACTION - noisy.exponent
    gram: Any = None if own is None else own.G * 2**up if up >= 0 else own.G >> -up
    C = machine.private(None, gram, (m, m), ROTATION_FRACTION, 1, 1)
    point: Any = None
    if own is not None:
        point = np.array([[(int(v) << (ROTATION_FRACTION - DATA_FRACTION)) // inputs.n] for v in own.u])
    mean = machine.private(None, point, (m, 1), ROTATION_FRACTION, 1)
    rotations = machine.beside(joint_rotation(machine, inputs, m))
    values, W, offset = await rotated_and_opened(machine, rotations, C, mean, k)
    total = float(values.sum()) * noisy.unit
    return Found(W, offset, 1.0, values * noisy.unit, total, of_spectrum(values, k))


# ---- what the roles do before the first encryption ----


def booking(study: Study, own: Own, record: Record) -> Booking:
    """The provider's ledger; without an epsilon the release is booked as exact."""
    wanted = asked(study.read_parameters(SFPCAParameters), 1.0)
    if wanted is None:
        return Booking(study, own, record, None)
    return release.booking(study, wanted, len(study.who(PROVIDER)), own, record)


async def provide(
    net: Network,
    study: Study,
    record: Record,
    booked: Booking,
    table: Chosen,
    columns: tuple[str, ...],
    n: int,
) -> Prepared:
    """A provider's part: each stage is settled in its ledger before its noisy value leaves."""
    plan, middle = plan_of(study, columns)
    moved = table._replace(units=lambda X: X - middle)
    await net.compute(_check_size, plan, moved)  # refused before it is paid for
    sums = _session(net, study, record, plan)
    await sums.open()
    await booked.made_from(net, table)
    seed = record(RECORDED_NOISE, fresh_seed)
    centre = await release.contribute_centre(net, sums, plan, moved, study.the(COORDINATOR), seed, booked)
    noisy = noisy_matrix(plan, centre, n)
    moments = await net.compute(noisy_moments, plan, moved, centre, seed, noisy)
    booked.settle(plan.moments.name)
    return Prepared(Range(range_exponent(plan), middle), noisy, moments)


def _check_size(plan: dp.Plan, table: Chosen) -> None:
    grid.check_size(table.n_rows, table.island.name)
    for _ in table.mapped(partial(_check_rows, d=plan.features)):
        pass


def _check_rows(X: Matrix, d: int) -> None:
    grid.checked_rows(X, d)


async def coordinate(
    net: Network, study: Study, record: Record, columns: tuple[str, ...], n: int
) -> Prepared:
    """The coordinator's part: it opens the noisy sums of the centre."""
    plan, middle = plan_of(study, columns)
    sums = _session(net, study, record, plan)
    await sums.open()
    centre, _ = await release.receive_centre(net, sums, plan, study.who(PROVIDER))
    return Prepared(Range(range_exponent(plan), middle), noisy_matrix(plan, centre, n), None)


def _session(net: Network, study: Study, record: Record, plan: dp.Plan) -> SecureSum:
    return release.open_session(net, study, record, plan, study.who(PROVIDER), study.the(COORDINATOR))


# ---- what a study may ask for ----


def check(study: Study) -> None:
    """What cannot be private."""
    p = study.read_parameters(SFPCAParameters)
    if p.privacy is None:
        return
    if p.bounds is None and p.privacy.row_norm is None:
        raise ParameterError(
            "a private PCA needs bounds, the public range of every column (or row_norm, of a row's length)",
            hint="set them from what is known of the columns, never from the rows; rows beyond are cut",
            option="bounds",
        )
    for field in structs.fields(p):
        if field.encode_name not in _WITH_EPSILON and getattr(p, field.name) != field.default:
            raise StudyError(
                f"{field.encode_name} is not possible with an epsilon",
                hint=f"the noise is made for rows as they are: leave {field.encode_name} out",
                path=("parameters", field.encode_name),
            )
    if p.recipe not in PRIVATE_RECIPES:
        raise StudyError(
            f"recipe={p.recipe!r} needs a covariance without noise: a noisy one may be indefinite",
            hint="recipe='direct' (or 'auto') runs with an epsilon",
            path=("parameters", "recipe"),
        )
    if study.partition != "horizontal":
        raise StudyError(
            f"partition={study.partition!r} is not possible with an epsilon",
            hint="the noise needs whole rows: use islands that hold rows, or leave epsilon out",
            path=("study", "partition"),
        )
    if score_owners(study):
        raise StudyError(
            "with an epsilon, scores without components are not offered",
            hint="release components to the providers too: they are private, and each projects its own rows",
            path=("release", "scores"),
        )
    if study.receivers("encrypted"):
        raise StudyError(
            "with an epsilon, components that stay encrypted are not offered",
            hint="release components: they are private",
            path=("release", "encrypted"),
        )
    wanted = asked(p, 1.0)
    assert wanted is not None
    release.check(study, wanted, len(study.who(PROVIDER)))


# ---- in words ----


def terms(study: Study) -> PrivacyTerms | None:
    p, providers = study.read_parameters(SFPCAParameters), len(study.who(PROVIDER))
    wanted = asked(p, 1.0)
    if wanted is None:
        return None
    spent = release.costs(study, wanted, providers)
    words = release.guarantee(study, wanted, providers, _reach_words(p, p.privacy))
    words.append("every island's number of rows is released exactly")
    colluders = release.plan_of(study, wanted, providers, 2).crowd.colluders
    return PrivacyTerms(
        wanted.epsilon, wanted.delta, wanted.neighbours, tuple(spent.values()), tuple(words), colluders
    )


def _reach_words(p: SFPCAParameters, privacy: Privacy | None) -> str:
    if privacy is None or privacy.row_norm is None:
        return "rows outside the ball around the bounds' box are cut to it"
    middle = " from the middle of the bounds" if p.bounds is not None else ""
    return f"rows further than {privacy.row_norm:g}{middle} are cut to it"
