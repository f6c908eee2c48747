"""PPCA-DP-MH to the letter. **Not differentially private as stated**; kept to reproduce the paper's figures.

Gu, Zhang, Yang: Multi-party High-Dimensional Related Data Publishing via Probabilistic Principal Component
Analysis and Differential Privacy (2022), Algorithm 1.

Symbols: m -> owners, X -> an owner's rows in [0, 1]^p, n_i -> counts, L1, L2 -> noise, Sigma_i ->
``LocalCovariance``, c -> contribution, A_k, U_k -> ``Kept``, S -> scores, X' -> ``PublishedRows``.

Why it is not private: one row moves E(X^T X) by up to p^2/n_i in the 1-norm, and the noise is for p/n_i (the
true epsilon is (p + 1) epsilon/2); the published rows are W U_k^T x + mean + N(0, sigma^2), images of the
records themselves, which no noise on moments covers; the mean added back is the exact one.
Besides, the weighted mean of local covariances drops what owners' means differ in.

Deviations: cells of columns are coded in binary digits, as the comparison that the paper makes did it;
lines 7 to 12 end at the smallest k that reaches c (as printed they end at p); line 13 also returns the mean
of the eigenvalues left out, without which line 16 has no sigma^2; negative eigenvalues, which noise makes,
count as zero; the noise matrix has no symmetry, so the covariance is made symmetric.

Adversary: nobody is kept from anything. Learns: the curator every owner's noisy covariance, number of rows
and published rows; owners the components.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from atoll import randomness
from atoll.codec import Message
from atoll.errors import DataError
from atoll.network import Network, Record
from atoll.privacy import paper_forms
from atoll.privacy.calibration import check_epsilon
from atoll.protocols import checked
from atoll.protocols.base import (
    Disclosure,
    Expectation,
    Learned,
    Output,
    PrivacyTerms,
    Protocol,
    learned,
)
from atoll.protocols.booking import refuse_ledger
from atoll.protocols.own import Own
from atoll.protocols.synthesis import ppca
from atoll.protocols.synthesis.moments import Codes, Floats
from atoll.protocols.synthesis.release import CURATOR, OWNER, SynthesisParameters
from atoll.protocols.synthesis.schema import check_schema, encode
from atoll.study.model import Study

RECORDED_NOISE = "paper/noise"
CAVEATS = (
    "not differentially private as stated: one row moves the second moments p times as far as stated",
    "not differentially private at all in its last step: each published row is an image of one record",
)


class PaperParameters(SynthesisParameters, frozen=True):
    """``contribution`` and ``n_components`` as in the private form."""

    takes = ("epsilon",)
    fixed: ClassVar[Mapping[str, Any]] = {"neighbours": "replace"}

    contribution: float = 0.9
    n_components: int | None = None


class LocalCovariance(Message, frozen=True):
    """Owner -> curator: its noisy covariance, and how many rows it has."""

    matrix: np.ndarray[Any, Any]
    count: int


class Kept(Message, frozen=True):
    """Curator -> owner: eigenvalues and eigenvectors that are kept, and the mean of the others."""

    values: np.ndarray[Any, Any]
    vectors: np.ndarray[Any, Any]
    rest: float


class PublishedRows(Message, frozen=True):
    """Owner -> curator: what the model makes of each of its rows."""

    rows: np.ndarray[Any, Any]


class AllRows(Message, frozen=True):
    """Curator -> owner: the rows that all owners published, as cells."""

    rows: np.ndarray[Any, Any]


OUTPUTS = {"rows": Output(("rows",), (OWNER, CURATOR), "one published row for every row of every owner")}


# ---- rows as binary digits ----


def widths(sizes: Sequence[int]) -> tuple[int, ...]:
    """Binary digits of each column."""
    return tuple((k - 1).bit_length() for k in sizes)


def to_digits(codes: Codes, sizes: Sequence[int]) -> Floats:
    """Cells as 0 and 1."""
    columns = [codes[:, a, None] >> np.arange(w) & 1 for a, w in enumerate(widths(sizes))]
    return np.hstack(columns).astype(np.float64)


def from_digits(digits: Floats, sizes: Sequence[int]) -> Codes:
    """The nearest cells of published numbers."""
    parts = np.split(digits >= 0.5, np.cumsum(widths(sizes))[:-1], axis=1)
    found = [part @ (1 << np.arange(part.shape[1])) for part in parts]
    return np.column_stack([np.minimum(c, k - 1) for c, k in zip(found, sizes, strict=True)]).astype(np.int64)


# ---- Algorithm 1 ----


def noisy_moments(X: Floats, epsilon: float, seed: bytes) -> tuple[Floats, Floats]:
    """E(X) and E(X^T X), each entry with Lap(2p/(n_i epsilon))  (lines 2, 3)."""
    n, p = X.shape
    L1 = paper_forms.laplace_floats(seed, 2.0 * p / (n * epsilon), p, "mean")
    L2 = paper_forms.ppca_noise(seed, n, p, epsilon)[0]
    return X.mean(axis=0) + L1, X.T @ X / n + L2


def local_covariance(mean: Floats, second: Floats) -> Floats:
    """Sigma_i, made symmetric  (line 3)."""
    covariance = second - np.outer(mean, mean)
    return np.asarray((covariance + covariance.T) / 2.0)


def pooled(covariances: Sequence[Floats], counts: Sequence[int]) -> Floats:
    """Sigma: the mean of local covariances, weighted by rows  (line 5)."""
    return np.asarray(np.average(np.stack(covariances), axis=0, weights=counts))


def kept(covariance: Floats, contribution: float, n_components: int | None) -> Kept:
    """A_k, U_k and the mean of the other eigenvalues  (lines 6 to 13)."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    k = n_components if n_components is not None else ppca.smallest_k(values, contribution)
    k = min(k, len(values))
    rest = float(values[k:].mean()) if k < len(values) else 0.0
    return Kept(values[:k].copy(), np.ascontiguousarray(vectors[:, :k]), rest)


def published(X: Floats, told: Kept, seed: bytes) -> Floats:
    """X': the model of Theorem 3 at the scores of the owner's own rows  (lines 15, 16)."""
    scores = X @ told.vectors
    W = told.vectors * np.sqrt(np.maximum(told.values - told.rest, 0.0))
    noise = paper_forms.gaussian_floats(seed, X.size, "published").reshape(X.shape)
    return np.asarray(scores @ W.T + X.mean(axis=0) + np.sqrt(told.rest) * noise)


# ---- roles ----


async def owner(net: Network, study: Study, own: Own, record: Record) -> Learned:
    refuse_ledger(own)
    p, curator = study.read_parameters(PaperParameters), study.the(CURATOR)
    codes = await net.compute(encode, own.table, p.schema, p.bins, p.outside)
    if len(codes) < 2:
        raise DataError(
            f"{own.table.name}: {len(codes)} row(s) have no covariance, and the published row would be an "
            "image of that row",
            hint="calibration='analytic', which computes nothing from one owner's rows alone",
        )
    X = to_digits(codes, p.sizes)
    seed = record(RECORDED_NOISE, randomness.fresh_seed)
    mean, second = noisy_moments(X, p.privacy.epsilon, seed)
    await net.send(curator, LocalCovariance(local_covariance(mean, second), len(X)))
    told = await net.receive(Kept, curator)
    checked.check_floats(told.vectors, (X.shape[1], len(told.values)), "components", curator)
    checked.check_number(told.rest, "a noise variance", curator, least=0.0)
    await net.send(curator, PublishedRows(await net.compute(published, X, told, seed)))
    known: dict[str, Any] = {}
    if study.releases("rows", net.me):
        known["rows"] = np.array((await net.receive(AllRows, curator)).rows)
    return learned(study, net.me, OUTPUTS, known)


async def curator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners = study.read_parameters(PaperParameters), study.who(OWNER)
    told = await net.gather(LocalCovariance, owners)
    covariance = pooled([told[a].matrix for a in owners], [told[a].count for a in owners])
    found = record.kept("components", kept(covariance, p.contribution, p.n_components))
    await net.broadcast(owners, found)
    parts = await net.gather(PublishedRows, owners)
    rows = from_digits(np.concatenate([parts[a].rows for a in owners]), p.sizes)  # line 18
    for address in owners:
        if study.releases("rows", address):
            await net.send(address, AllRows(rows))
    return learned(study, net.me, OUTPUTS, {"rows": rows})


def learns(study: Study) -> list[Disclosure]:
    said = [
        Disclosure(OWNER, "the components and eigenvalues of the pooled covariance", (Kept,)),
        Disclosure(CURATOR, "each owner's noisy covariance and number of rows", (LocalCovariance,)),
        Disclosure(CURATOR, "for each row of each owner its image", (PublishedRows,), ("rows",)),
        *(Disclosure(CURATOR, caveat) for caveat in CAVEATS),
    ]
    if any(address.role == OWNER for address in study.receivers("rows")):
        said.append(Disclosure(OWNER, OUTPUTS["rows"].words, (AllRows,), ("rows",)))
    return said


def expect(study: Study, d: int) -> Expectation:
    del d  # the schema says it
    p, M = sum(widths(study.read_parameters(PaperParameters).sizes)), len(study.who(OWNER))
    released = sum(address.role == OWNER for address in study.receivers("rows"))
    return Expectation(3 * M + released, 8 * p * p, 16 * M * p * p, 8 * M * p * p, 3 + bool(released))


def check(study: Study) -> None:
    p = study.read_parameters(PaperParameters)
    check_epsilon(p.privacy.epsilon)
    check_schema(p.schema, p.bins)
    ppca.check_options(p.contribution, p.n_components, sum(widths(p.sizes)))


def terms(study: Study) -> PrivacyTerms:
    return PrivacyTerms(study.read_parameters(PaperParameters).privacy.epsilon, None, "replace", (), CAVEATS)


PROTOCOL = Protocol(
    name="ppca-dp-mh",
    title="PPCA-DP-MH as published: not differentially private as stated",
    analysis="synthesis",
    roles={OWNER: owner, CURATOR: curator},
    data_roles=frozenset({OWNER}),
    single_roles=frozenset({CURATOR}),
    apart=((OWNER, CURATOR),),
    messages=(LocalCovariance, Kept, PublishedRows, AllRows),
    parameters=PaperParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Nobody is kept from anything: each published row is an image of one record.",
    uses_sum=False,
    expect=expect,
    check=check,
    privacy=terms,
)
