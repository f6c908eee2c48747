"""PrivateLocalPCA: owner after owner, each with noise of its own.

Imtiaz, Silva, Baker, Plis, Sarwate, Calhoun: Privacy-Preserving Source Separation for Distributed Data
Using Independent Component Analysis (2016), as Wang and Chang (2018) describe and compare with it. A
baseline: its noise grows with the number of owners, which DPDPCA's does not.

Symbols: L -> owners, X^l -> X, A^T A -> second moments, E -> noise, tau -> width of the noise,
k -> n_components, P -> weighted (the principal subspace, rows scaled by the roots of the eigenvalues).

Adversary: anybody, everybody but one owner together. Each owner's noise alone makes what leaves it
(epsilon, delta)-private, and rows of different owners are different rows, so the whole run is
(epsilon, delta)-private for every row, whoever colludes. No cryptography takes part.
Learns: an owner the merged, noisy principal subspace of all owners before it (the second owner: that of
the first alone), with their noisy number of rows and total; the data user what is released to it.

What is private: the second moments of rows that are normalised, or cut at the public ``row_norm``, and
quantised to the integer grid; and the number of rows (neighbours ``add-remove``; public for ``replace``).
Sensitivity of the moments in the Frobenius norm: 1, or sqrt(2) for ``replace``, in squared row norms.
``calibration="paper"``: noise of width sqrt(2 ln(1.25/delta))/epsilon for sensitivity 1, the same on and
off the diagonal, and the number of rows without noise. Replacing a row moves the moments by sqrt(2), and
adding one shows in the exact number of rows, so it is sized for neither; the disclosure says so.

Deviations: rows are not centred (second moments about the origin, so ``mean`` is zero); noise is
discrete and on an integer grid; each owner prepares its local part before its turn, so that only
merging waits for the owner before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from atoll.codec import Message
from atoll.data.island import Matrix
from atoll.errors import StudyError
from atoll.lazy import lazy
from atoll.network import Network, Record
from atoll.privacy import grid, sensitivity
from atoll.privacy.calibration import classic_gaussian_sigma, gdp_mu
from atoll.privacy.dp_moments import Stage
from atoll.privacy.mechanisms import (
    Cost,
    GaussianCost,
    GaussianNoise,
    Part,
    calibrate_gaussian,
    gaussian_cost,
    symmetric_parts,
)
from atoll.protocols import checked, handshake
from atoll.protocols.base import Disclosure, Learned, PrivacyTerms, Protocol, learned
from atoll.protocols.booking import Booking, refuse_ledger
from atoll.protocols.noise_shares import promise
from atoll.protocols.own import Own
from atoll.protocols.pca import private_release as private
from atoll.protocols.pca.decompose import check_components, deterministic_signs
from atoll.protocols.pca.released import (
    MODEL_VALUES,
    Model,
    SampleCount,
    Variances,
    named,
    receive_released,
    send_released,
)
from atoll.protocols.pca.released import OUTPUTS as PCA_OUTPUTS
from atoll.protocols.private_options import Privacy, PrivateParameters
from atoll.randomness import fresh_seed
from atoll.study.address import Address
from atoll.study.model import Study

if TYPE_CHECKING:
    from scipy import linalg
else:
    linalg = lazy("scipy.linalg")

OWNER, DATA_USER = "owner", "data_user"

# The part of each owner's budget (in mu^2) that the noisy number of its rows costs.
COUNT_SHARE = 0.05


class PrivateLocalParameters(PrivateParameters, frozen=True):
    """``epsilon`` and ``delta`` of every owner's release; ``row_norm`` is needed for ``rows="clip"``."""

    takes = ("epsilon", "delta", "row_norm", "rows", "neighbours")
    needs = ("epsilon", "delta")

    privacy: Privacy
    n_components: int = 2
    calibration: Literal["analytic", "paper"] = "analytic"
    columns: tuple[str, ...] | None = None

    @property
    def delta(self) -> float:
        assert self.privacy.delta is not None  # needed, so it was read
        return self.privacy.delta

    @property
    def reach(self) -> float:
        """The longest a row can be, in the units of the components' variances."""
        norm = self.privacy.row_norm
        return norm if self.privacy.rows == "clip" and norm is not None else 1.0


# ---- messages ----


class Subspace(Message, frozen=True):
    """Owner -> next owner: the weighted principal subspace of all owners so far, their total and rows."""

    weighted: np.ndarray[Any, Any]
    total: float
    rows: float


# ---- noise, and what it guarantees ----


def moments_stage(p: PrivateLocalParameters, d: int) -> Stage:
    """Noise on one owner's second moments."""
    moved = sensitivity.second_moments_frobenius(grid.ROW_UNITS, p.privacy.neighbours)
    if p.calibration == "paper":
        tau = classic_gaussian_sigma(p.privacy.epsilon, p.delta, grid.MOMENT_UNITS)
        noise = GaussianNoise(tau, (Part(grid.triangle_size(d)),))
        return Stage("second moments", noise, gaussian_cost(noise, moved))
    share = 1.0 - COUNT_SHARE if p.privacy.neighbours == "add-remove" else 1.0
    mu = gdp_mu(p.privacy.epsilon, p.delta) * math.sqrt(share)
    return Stage("second moments", calibrate_gaussian(mu, moved, symmetric_parts(d)), GaussianCost(mu))


def count_stage(p: PrivateLocalParameters) -> Stage:
    """Noise on one owner's number of rows, where that is private."""
    if p.calibration == "paper" or p.privacy.neighbours == "replace":
        return Stage("rows", GaussianNoise(0.0, (Part(1, 0.0),)), GaussianCost(0.0))
    mu = gdp_mu(p.privacy.epsilon, p.delta) * math.sqrt(COUNT_SHARE)
    return Stage("rows", calibrate_gaussian(mu, grid.ROW_UNITS, (Part(1),)), GaussianCost(mu))


def costs(p: PrivateLocalParameters) -> dict[str, Cost]:
    """What a run costs each owner: the same for any number of columns; nothing is promised as published."""
    if p.calibration == "paper":
        return {}
    return {stage.name: stage.cost for stage in (moments_stage(p, 1), count_stage(p))}


# ---- steps ----


def noisy_moments(X: Matrix, p: PrivateLocalParameters, seed: bytes) -> Matrix:
    """A^T A + E: exact integers of the quantised rows, and this owner's noise."""
    table = grid.checked_rows(X, X.shape[1])
    rows = (
        grid.normalise_to_grid(table) if p.privacy.rows == "normalise" else grid.cut_to_grid(table, p.reach)
    )
    noise = moments_stage(p, X.shape[1]).draw_share(seed)
    unit = p.reach * p.reach / grid.MOMENT_UNITS
    return grid.unpack_triangle(grid.second_moment_triangle(rows) + noise, X.shape[1]) * unit


def noisy_count(X: Matrix, p: PrivateLocalParameters, seed: bytes) -> float:
    """The number of rows, with noise where it is private."""
    return float(len(X)) + float(count_stage(p).draw_share(seed)[0]) / grid.ROW_UNITS


def local_subspace(moments: Matrix, k: int) -> Matrix:
    """The k leading eigenvectors of the noisy moments, times the roots of their eigenvalues."""
    d = len(moments)
    values, vectors = linalg.eigh(moments, subset_by_index=[d - k, d - 1])
    return np.asarray(np.sqrt(np.maximum(values[::-1], 0.0))[:, None] * vectors.T[::-1])


def prepare(X: Matrix, p: PrivateLocalParameters, seed: bytes) -> Subspace:
    """Everything that an owner can do before its turn."""
    moments = noisy_moments(X, p, seed)
    weighted = local_subspace(moments, p.n_components)
    return Subspace(weighted, float(np.trace(moments)), noisy_count(X, p, seed))


def merge(before: Subspace, mine: Subspace) -> Subspace:
    """The k leading directions of both subspaces, stacked."""
    k = len(mine.weighted)
    _, values, vectors = np.linalg.svd(np.vstack([before.weighted, mine.weighted]), full_matrices=False)
    return Subspace(values[:k, None] * vectors[:k], before.total + mine.total, before.rows + mine.rows)


def finish(last: Subspace) -> tuple[Matrix, Variances, int]:
    """Components, variances (still with the noise's inflation) and the number of rows."""
    k, d = last.weighted.shape
    _, values, vectors = np.linalg.svd(last.weighted, full_matrices=False)
    rows = max(round(last.rows), 1)
    explained = values**2 / rows
    total = max(last.total / rows, float(explained.sum()))
    rest = (total - float(explained.sum())) / (d - k) if d > k else 0.0
    return deterministic_signs(vectors), Variances(explained, total, rest), rows


# ---- roles ----


async def owner(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p = study.read_parameters(PrivateLocalParameters)
    if p.calibration == "paper":
        refuse_ledger(own)
    with Booking(study, own, record, costs(p), p.privacy.neighbours) as booked:  # before anything leaves
        return await _owner(net, study, own, record, booked)


async def _owner(net: Network, study: Study, own: Own, record: Record, booked: Booking) -> Learned:
    p, owners, user = study.read_parameters(PrivateLocalParameters), study.who(OWNER), study.the(DATA_USER)
    island = own.table
    agreed = await handshake.announce(net, island, user, p.columns, None)
    table = private.checked(island.chosen(agreed.names))
    turn = owners.index(net.me)
    await booked.made_from(net, table)
    seed = record(private.RECORDED_NOISE, fresh_seed)
    subspace = await net.compute(prepare, table.whole(), p, seed)
    if turn > 0:
        before = await net.receive(Subspace, owners[turn - 1])
        _check_subspace(before, subspace, owners[turn - 1])
        subspace = await net.compute(merge, before, subspace)
    for stage in costs(p):
        booked.settle(stage)
    if turn < len(owners) - 1:
        await net.send(owners[turn + 1], subspace)
        return learned(study, net.me, OUTPUTS, await receive_released(net, study, owners[-1], agreed.names))
    components, variances, rows = await net.compute(finish, subspace)
    columns = agreed.names if agreed.named else None
    model = Model(components, np.zeros(components.shape[1]), None, columns)
    count = SampleCount(rows, tuple(address.party for address in owners))
    await send_released(net, study, (*owners[:-1], user), model, variances, count)
    return learned(study, net.me, OUTPUTS, named(model) | named(variances) | named(count))


def _check_subspace(before: Subspace, mine: Subspace, sender: Address) -> None:
    """Totals and numbers of rows are noisy, and may be below zero."""
    checked.check_floats(before.weighted, mine.weighted.shape, "a subspace", sender)
    checked.check_number(before.total, "a total", sender)
    checked.check_number(before.rows, "a number of rows", sender)


async def data_user(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners = study.read_parameters(PrivateLocalParameters), study.who(OWNER)
    agreed = await handshake.check(net, owners, p.columns)
    check_components(p.n_components, None, len(agreed.names))
    return learned(study, net.me, OUTPUTS, await receive_released(net, study, owners[-1], agreed.names))


# ---- who learns what ----

OUTPUTS = {
    output: PCA_OUTPUTS[output]._replace(roles=(OWNER, DATA_USER))
    for output in ("components", "explained_variance", "n_samples")
}


def learns(study: Study) -> list[Disclosure]:
    p = study.read_parameters(PrivateLocalParameters)
    said = [
        Disclosure(DATA_USER, "each island's column names", (handshake.Columns,)),
        Disclosure(OWNER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)),
        Disclosure(
            OWNER,
            "the noisy principal subspace, total and number of rows of all owners before it, merged; the "
            f"second owner those of the first alone ({_guarantee(p)})",
            (Subspace,),
        ),
        Disclosure(
            OWNER,
            "the last owner: components, variances and number of rows, with noise",
            (),
            MODEL_VALUES,
            (study.who(OWNER)[-1].party,),
        ),
    ]
    for output, words, message in (
        ("components", "the noisy components (rows are not centred: the mean is zero)", Model),
        ("explained_variance", f"explained and total variance of {_row_words(p)}, with noise", Variances),
        ("n_samples", f"the {_count_words(p)} number of rows over all islands", SampleCount),
    ):
        for role in (OWNER, DATA_USER):
            if any(a.role == role for a in study.receivers(output)):
                said.append(Disclosure(role, words, (message,)))
    return said


def _guarantee(p: PrivateLocalParameters) -> str:
    stated = f"epsilon={p.privacy.epsilon:g}, delta={p.delta:g}"
    if p.calibration == "paper":
        return (
            f"not differentially private as stated: noise as published for {stated}, sized for moments that "
            "a row moves by 1; a replaced row moves them by sqrt(2), and with one row more or less the exact "
            "numbers of rows tell"
        )
    return f"each owner's own noise makes it private with {stated}, {p.privacy.neighbours}, whoever colludes"


def _row_words(p: PrivateLocalParameters) -> str:
    return "rows of length one" if p.privacy.rows == "normalise" else f"rows cut at length {p.reach:g}"


def _count_words(p: PrivateLocalParameters) -> str:
    return "noisy" if p.calibration == "analytic" and p.privacy.neighbours == "add-remove" else "exact"


def terms(study: Study) -> PrivacyTerms:
    """What the study promises, for reviews and ledgers."""
    p = study.read_parameters(PrivateLocalParameters)
    return PrivacyTerms(
        p.privacy.epsilon, p.delta, p.privacy.neighbours, tuple(costs(p).values()), tuple(_terms_words(p))
    )


def _terms_words(p: PrivateLocalParameters) -> list[str]:
    if p.calibration == "paper":
        return [_guarantee(p)]
    return [
        *promise(list(costs(p).values()), p.delta, p.privacy.neighbours),
        "noise: discrete Gaussian, the whole of it from every owner; it suffices whoever colludes",
        f"components and variances are of {_row_words(p)}, not centred",
    ]


def check(study: Study) -> None:
    """What the study's types cannot say."""
    p = study.read_parameters(PrivateLocalParameters)
    if p.n_components < 1 or isinstance(p.n_components, bool):
        raise StudyError(
            f"n_components={p.n_components!r} is not possible",
            hint="a whole number from 1: every owner passes on that many directions",
            path=("parameters", "n_components"),
        )
    rows, norm = p.privacy.rows, p.privacy.row_norm
    if rows == "clip" and not (norm is not None and math.isfinite(norm) and norm > 0):
        raise StudyError(
            f"rows='clip' needs a public bound on the norm of a row, got row_norm={norm!r}",
            hint="set row_norm from what is known about the columns, never from the rows themselves",
            path=("parameters", "row_norm"),
        )
    if rows == "normalise" and norm is not None:
        raise StudyError(
            "row_norm cannot be used when every row is normalised",
            hint="leave it out, or rows = 'clip'",
            path=("parameters", "row_norm"),
        )
    gdp_mu(p.privacy.epsilon, p.delta)  # refuses impossible epsilon and delta


PROTOCOL = Protocol(
    name="privatelocal",
    title="Private local PCA, owner after owner (baseline)",
    roles={OWNER: owner, DATA_USER: data_user},
    data_roles=frozenset({OWNER}),
    single_roles=frozenset({DATA_USER}),
    messages=(*handshake.MESSAGES, Subspace, Model, Variances, SampleCount),
    parameters=PrivateLocalParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Whoever sees what leaves an owner, all other owners together included: local noise.",
    uses_sum=False,
    check=check,
    privacy=terms,
)
