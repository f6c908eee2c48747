"""Synthetic data by probabilistic PCA over many owners, with noise that nobody knows.

After Gu, Zhang and Yang: Multi-party High-Dimensional Related Data Publishing via Probabilistic Principal
Component Analysis and Differential Privacy (2022; PPCA-DP-MH). As printed its promise does not hold
(docs/protocols/synthesis.md says why); this form releases numbers of the same kind, once, and keeps it.

Symbols: m -> owners, X_i -> an owner's rows, E(X), E(X^T X) -> moments, Sigma -> covariance, c ->
contribution, W, sigma^2 -> components and noise variance, X' -> rows drawn from the model.

Course: every owner codes its rows as whole numbers, adds up first and second moments, adds its share of
discrete Gaussian noise and hands the sum to the study's secure sum (lines 1 to 5, with moments added before
they are centred, so that what owners differ in is not lost); the curator opens the noisy total, decomposes
its covariance (6 to 13) and fits the model that rows are drawn from (14 to 18), from standard normal scores
and not from anybody's rows.

Adversary: passive; the curator with up to ``colluders`` owners. Learns: the curator noisy moments of all
rows together; owners what is released to them; nobody a sum without noise.
"""

from __future__ import annotations

import numpy as np

from atoll import fixedpoint
from atoll.errors import StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols.base import Disclosure, Expectation, Learned, PrivacyTerms, Protocol, learned
from atoll.protocols.noise_shares import check_sum
from atoll.protocols.own import Own
from atoll.protocols.synthesis import maximum_entropy, models, moments, ppca
from atoll.protocols.synthesis import release as shared
from atoll.protocols.synthesis.release import (
    CURATOR,
    OUTPUTS,
    OWNER,
    NoisyMoments,
    SynthesisParameters,
    SyntheticModel,
)
from atoll.protocols.synthesis.schema import check_schema
from atoll.study.model import Study


class PPCAParameters(SynthesisParameters, frozen=True):
    """``contribution``: share of the variance that components explain, unless ``n_components`` says how many;
    ``decoder``: the model that rows are drawn from (:mod:`models`)."""

    contribution: float = 0.9
    n_components: int | None = None
    decoder: models.Decoder = "auto"


def plan_of(study: Study, p: PPCAParameters) -> moments.Plan:
    return moments.Plan(p.sizes, p.privacy.epsilon, p.privacy.delta, shared.crowd(study, p.privacy))


async def owner(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p = study.read_parameters(PPCAParameters)
    plan, owners = plan_of(study, p), len(study.who(OWNER))
    codes = await shared.read_rows(net, study, own, p)
    with shared.booking(study, p.privacy, own, record, {plan.stage.name: plan.stage.cost}) as booked:
        sums = shared.session(net, study, record, plan.length)
        await sums.open()
        await booked.made_from(net, shared.Read(codes))
        exact = await net.compute(moments.contribution, plan, codes)
        noisy = await net.compute(shared.noisy, exact, plan.stage, shared.noise_seed(record), owners)
        booked.settle(plan.stage.name)
        await sums.contribute(plan.stage.name, noisy)
        await sums.close()
    return learned(study, net.me, OUTPUTS, await shared.receive_released(net, study, p))


async def curator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p = study.read_parameters(PPCAParameters)
    plan = plan_of(study, p)
    sums = shared.session(net, study, record, plan.length)
    await sums.open()
    total = await sums.total(plan.stage.name, plan.length)
    integers = np.array(fixedpoint.to_integers(total), dtype=object)
    found = await net.compute(moments.finish, plan, integers, len(sums.present))
    model = await net.compute(models.fitted, found, p.decoder, p.contribution, p.n_components)
    model = record.kept("model", model)
    known = {"model": model, "moments": found.plain()}
    await shared.release(net, study, known, sums.present)
    return learned(study, net.me, OUTPUTS, known)


# ---- who learns what, and what it costs ----


def learns(study: Study) -> list[Disclosure]:
    return shared.disclosures(
        study,
        "one sum over all islands with noise in it: number of rows, counts of every cell, second moments of "
        "every two columns; nothing without noise",
    )


def terms(study: Study) -> PrivacyTerms:
    p = study.read_parameters(PPCAParameters)
    return shared.terms(study, p, [plan_of(study, p).stage.cost])


def expect(study: Study, d: int) -> Expectation:
    del d  # the schema says it
    p = study.read_parameters(PPCAParameters)
    return shared.expected(study, [plan_of(study, p).length], p)


def check(study: Study) -> None:
    p = study.read_parameters(PPCAParameters)
    check_schema(p.schema, p.bins)
    ppca.check_options(p.contribution, p.n_components, sum(p.sizes) - len(p.sizes))
    if p.decoder == "maximum-entropy" and not maximum_entropy.fits(p.sizes):
        raise StudyError(
            "the joint table of these columns is too large for decoder='maximum-entropy'",
            hint="decoder = 'auto'",
            path=("parameters", "decoder"),
        )
    shared.check_stays(study)
    _ = plan_of(study, p).stage  # noise that cannot be drawn is refused here
    check_sum(study, shared.crowd(study, p.privacy))


PROTOCOL = Protocol(
    name="ppca-synthesis",
    title="Synthetic data by probabilistic PCA over many owners",
    analysis="synthesis",
    roles={OWNER: owner, CURATOR: curator},
    data_roles=frozenset({OWNER}),
    single_roles=frozenset({CURATOR}),
    apart=((OWNER, CURATOR),),
    messages=(SyntheticModel, NoisyMoments, Compared),
    parameters=PPCAParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; the curator may pool it with as many "
    "owners as the noise is made for.",
    expect=expect,
    check=check,
    privacy=terms,
)
