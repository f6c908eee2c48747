"""DPDPCA: differentially private PCA of row-split tables, with owners, a proxy and a data user.

Wang, Chang: Differentially Private Principal Component Analysis Over Horizontally Partitioned Data
(2018), Algorithm 1. The letter of the paper (``calibration="paper"``), which is not private as stated,
is in ``dpdpca_paper``; this file is the form whose guarantee holds, and chooses between the two.

Symbols: L -> owners, M -> features, R, v, N -> the sums of the stages of ``privacy.dp_moments``, G' -> the
sum of all owners' noise shares, S' -> the noisy second moments around the private centre.

Adversary: passive; ``colluders`` owners may pool what they know with the data user or with the proxy.
Learns: the data user noisy sums, and what follows from them; owners the private centre; the proxy column
names, and where the secure sum has an adder, ciphertexts that it cannot open.

Deviations: noise is made in shares by the owners, before encryption, not by the proxy, which could remove
its own noise once components are known. So the proxy needs neither N nor a mask b: it agrees the columns
and adds ciphertexts where the sum is under the data user's key (``paillier``, ``lattice`` with
key="server"); under ``shares``, ``masks`` and a collective lattice key the data user adds as well as
opens, because nobody can open less than the sum. Two private mean steps come first; then second moments
around that centre, so that the released matrix has the sensitivity that its noise is made for.
"""

from __future__ import annotations

from atoll import fixedpoint, secure_sums
from atoll.errors import ParameterError, StudyError
from atoll.network import Network, Record
from atoll.privacy import dp_moments as dp
from atoll.protocols import handshake
from atoll.protocols.base import Disclosure, Expectation, Learned, PrivacyTerms, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own
from atoll.protocols.pca import private_pairs
from atoll.protocols.pca import private_release as private
from atoll.protocols.pca.decompose import check_components
from atoll.protocols.pca.dpdpca import paper
from atoll.protocols.pca.dpdpca.terms import DATA_USER, OUTPUTS, OWNER, PROXY, DPDPCAParameters
from atoll.protocols.pca.private_release import PublicCentre
from atoll.protocols.pca.released import (
    MODEL_VALUES,
    Model,
    SampleCount,
    Variances,
    named,
    receive_released,
    send_released,
)
from atoll.protocols.preparation.prepare import prepared_by
from atoll.protocols.private_options import SHARED_NOISE, Privacy
from atoll.study.model import Study

PAPER_CAVEATS = (
    (
        "not differentially private as stated: the noise is made for sensitivity 1, but one row moves the "
        "centred scatter by up to 4(N-1)/N, so the true epsilon is several times the nominal one"
    ),
    "the proxy makes the noise and can take it away again from published components",
    "the exact number of rows N is released",
)
_MULTIPLE_CAVEAT = "the mask b is a multiple of N, so the data user learns the sum of all rows modulo N"


def asked(p: DPDPCAParameters) -> Privacy:
    """The privacy part of the parameters."""
    if p.privacy.noise not in SHARED_NOISE:
        raise ParameterError(
            f"noise={p.privacy.noise!r} is a mechanism of the paper's form",
            hint="noise='distributed', or calibration='paper'",
            option="noise",
        )
    return p.privacy


def plan_of(study: Study, p: DPDPCAParameters, features: int) -> dp.Plan:
    return private.plan_of(study, asked(p), len(study.who(OWNER)), features)


# ---- roles ----


async def owner(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, user = study.read_parameters(DPDPCAParameters), study.the(DATA_USER)
    if p.calibration == "paper":
        await paper.owner(net, study, own, record, p)
        return learned(study, net.me, OUTPUTS, await receive_released(net, study, user))
    with private.booking(study, asked(p), len(study.who(OWNER)), own, record) as booked:
        return await _private_owner(net, study, own, record, booked)


async def _private_owner(net: Network, study: Study, own: Own, record: Record, booked: Booking) -> Learned:
    p, owners, user = study.read_parameters(DPDPCAParameters), study.who(OWNER), study.the(DATA_USER)
    island = own.table
    agreed = await handshake.announce(net, island, study.the(PROXY), p.columns, None)
    table = private.checked(island.chosen(agreed.names))
    plan = plan_of(study, p, len(agreed.names))
    capacity = private_pairs.checked_capacity(plan, island)
    sums = private.open_session(net, study, record, plan, owners, user, study.the(PROXY))
    await sums.open()
    # R^l, v^l and N^l, each with its share of G'  (Alg 1, l.1 and l.8)
    centre = await private.contribute(net, sums, plan, table, user, record, booked, capacity)
    known = private.centre_known(centre)
    return learned(study, net.me, OUTPUTS, known | await receive_released(net, study, user, agreed.names))


async def proxy(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners, user = study.read_parameters(DPDPCAParameters), study.who(OWNER), study.the(DATA_USER)
    if p.calibration == "paper":
        return Learned({}, {"n_samples": await paper.proxy(net, study, record, p)})
    agreed = await handshake.check(net, owners, p.columns)
    await net.send(user, agreed)
    plan = plan_of(study, p, len(agreed.names))
    sums = private.open_session(net, study, record, plan, owners, user, net.me)
    if sums.has_adder:
        await sums.open()
        for stage in plan.stages:
            await sums.add_up(stage.name, stage.noise.size)  # Alg 1, l.2-4
    return Learned()


async def data_user(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners = study.read_parameters(DPDPCAParameters), study.who(OWNER)
    if p.calibration == "paper":
        return await _paper_user(net, study, record, p)
    agreed = await handshake.learn(net, study.the(PROXY), p.columns)
    check_components(p.n_components, None, len(agreed.names))
    plan = plan_of(study, p, len(agreed.names))
    sums = private.open_session(net, study, record, plan, owners, net.me, study.the(PROXY))
    await sums.open()
    moments, centre = await private.receive(net, sums, plan, owners)  # Alg 1, l.11
    names = agreed.names if agreed.named else None
    found = await net.compute(private.decompose_private, moments, centre, p.n_components, names)
    model, variances = record.kept("model", found, tuple[Model, Variances])
    n = max(1, round(moments.samples))
    here = [address for address in owners if address in sums.present]
    count = SampleCount(n, tuple(address.party for address in here))
    await send_released(net, study, here, model, variances, count)
    known = named(model) | named(variances) | named(count) | {"noisy_moments": moments.matrix}
    return learned(study, net.me, OUTPUTS, known)


async def _paper_user(net: Network, study: Study, record: Record, p: DPDPCAParameters) -> Learned:
    T, S, N, agreed = await paper.data_user(net, study, record, p)
    # The data user sees v' only: the mean stays hidden, and rows are projected as they are.
    model = Model(T.components, 0.0 * T.components[0], None, agreed.names if agreed.named else None)
    variances = Variances(T.explained_variance, T.total_variance, T.noise_variance)
    count = SampleCount(N, tuple(address.party for address in study.who(OWNER)))
    await send_released(net, study, study.who(OWNER), model, variances, count)
    known = named(model) | named(variances) | named(count) | {"noisy_scatter": S}
    return learned(study, net.me, OUTPUTS, known)


# ---- who learns what, and what it costs ----


def learns(study: Study) -> list[Disclosure]:
    p, method = study.read_parameters(DPDPCAParameters), secure_sums.chosen(study)
    said = [
        Disclosure(OWNER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)),
        Disclosure(PROXY, "each island's column names", (handshake.Columns,)),
        Disclosure(DATA_USER, "the agreed column names", (handshake.AgreedColumns,)),
    ]
    said += _paper_learns(p) if p.calibration == "paper" else _private_learns(method, p.privacy.centre)
    centre = "without a centre" if p.privacy.centre == "pairs" else "and the centre"
    for output, words, message in (
        ("components", f"the components {centre}", Model),
        ("explained_variance", f"explained and total variance ({_variance_of(p)}){_noise_of(p)}", Variances),
        ("n_samples", "the number of rows, " + ("exact" if _exact_count(p) else "noisy"), SampleCount),
    ):
        if any(a.role == OWNER for a in study.receivers(output)):
            said.append(Disclosure(OWNER, words, (message,)))
    return said


def _private_learns(method: type[secure_sums.SecureSum], centre: str) -> list[Disclosure]:
    said = [
        Disclosure(
            OWNER, "keys and blinded parts of the secure sum, which it cannot open", method.to_contributors
        ),
        *private.disclosures(OWNER, DATA_USER, method, centre),
    ]
    if method.has_adder:
        said.append(Disclosure(PROXY, "ciphertexts that it cannot open", method.to_adder))
    return said


def _paper_learns(p: DPDPCAParameters) -> list[Disclosure]:
    caveats = (*PAPER_CAVEATS, *((_MULTIPLE_CAVEAT,) if p.mask == "multiple" else ()))
    return [
        Disclosure(OWNER, "the data user's public key", (paper.UserKey,)),
        Disclosure(PROXY, "ciphertexts that it cannot open", (paper.UserKey, paper.EncryptedShare)),
        Disclosure(PROXY, "the exact number of rows N", (paper.OpenedCount,), ("n_samples",)),
        Disclosure(
            DATA_USER,
            "the exact number of rows N, the masked sum of rows, the centred scatter with the proxy's noise",
            (paper.EncryptedCount, paper.NoisyAggregate),
            MODEL_VALUES,
        ),
        *(Disclosure(DATA_USER, caveat) for caveat in caveats),
    ]


def _variance_of(p: DPDPCAParameters) -> str:
    if p.privacy.centre == "pairs":
        return "of differences of rows, of length one"
    return "of rows normalised to length one" if p.privacy.rows == "normalise" else "of cut rows"


def _noise_of(p: DPDPCAParameters) -> str:
    """The published form says nothing of its noise."""
    return "" if p.calibration == "paper" else private.NOISY


def _exact_count(p: DPDPCAParameters) -> bool:
    return p.calibration == "paper" or p.privacy.neighbours == "replace"


def terms(study: Study) -> PrivacyTerms:
    p = study.read_parameters(DPDPCAParameters)
    if p.calibration == "paper":
        return PrivacyTerms(p.privacy.epsilon, p.privacy.delta, p.privacy.neighbours, (), PAPER_CAVEATS)
    owners = len(study.who(OWNER))
    spent = private.costs(study, asked(p), owners)
    words = private.guarantee(study, asked(p), owners)
    colluders = plan_of(study, p, 2).crowd.colluders
    return PrivacyTerms(
        p.privacy.epsilon,
        p.privacy.delta,
        p.privacy.neighbours,
        tuple(spent.values()),
        tuple(words),
        colluders,
    )


def expect(study: Study, d: int) -> Expectation:
    """Messages, rounds, bytes and memory of a run over d columns."""
    p, owners = study.read_parameters(DPDPCAParameters), len(study.who(OWNER))
    released = sum(a.role == OWNER for output in OUTPUTS for a in study.receivers(output))
    k, names = (p.n_components if isinstance(p.n_components, int) else d), 20 * d
    outputs = released * (8 * (k * d + d) + names)
    if p.calibration == "paper":
        return _paper_expect(study, d, owners, released, outputs)
    plan = plan_of(study, p, d)
    lengths = private.stage_lengths(plan)
    cost = secure_sums.expected(study, owners, lengths)
    # An adder that does not contribute is sent the key, sends its own, and receives from everybody.
    adding = 2 + len(lengths) if secure_sums.chosen(study).has_adder else 0
    centres = owners * (len(lengths) - 1)
    return Expectation(
        messages=2 * owners + 1 + cost.messages + adding + centres + released,
        bytes_per_provider=names + cost.bytes_per_contributor,
        bytes_total=cost.bytes_total + 2 * owners * names + centres * (8 * d + 40) + outputs,
        memory_server=8 * fixedpoint.BYTES_PER_VALUE * max(lengths) + 4 * 8 * d * d,
        rounds=2 + cost.rounds + len(lengths) - 1 + bool(released),
    )


def _paper_expect(study: Study, d: int, owners: int, released: int, outputs: int) -> Expectation:
    ciphertext = int(secure_sums.options(study).key_bits) // 4
    share = ciphertext * (d * -(-d // 7) + d + -(-d // 7) + 1)  # seven packed values to a ciphertext
    return Expectation(
        messages=2 * owners + 1 + (owners + 1) + owners + 3 + released,
        bytes_per_provider=share + 20 * d,
        bytes_total=(owners + 1) * (share + 20 * d) + outputs,
        memory_server=2 * share,
        rounds=7 + bool(released),
    )


def check(study: Study) -> None:
    """What the study's types cannot say."""
    p = study.read_parameters(DPDPCAParameters)
    k = p.n_components
    if isinstance(k, bool) or (isinstance(k, int) and k < 1) or (isinstance(k, float) and not 0 < k < 1):
        raise StudyError(
            f"n_components={k!r} is not possible",
            hint="a whole number from 1, a share of the variance between 0 and 1, or none for all",
            path=("parameters", "n_components"),
        )
    private_form = p.calibration == "analytic"
    if private_form and p.mask != "multiple":
        raise ParameterError(
            f"mask={p.mask!r} cannot be used without calibration='paper'", hint="leave it out", option="mask"
        )
    if private_form:
        private.check(study, asked(p), len(study.who(OWNER)), adder_apart=True)
    else:
        _check_paper(study, p)


def _check_paper(study: Study, p: DPDPCAParameters) -> None:
    if not secure_sums.chosen(study).multiplies:
        fit = [name for name, method in secure_sums.METHODS.items() if method.multiplies]
        raise StudyError(
            "calibration='paper' multiplies under encryption and runs on packed Paillier only",
            hint=f"secure_sum={secure_sums.listed(fit)}",
            path=("study", "secure_sum"),
        )
    if p.privacy.noise in SHARED_NOISE:
        raise ParameterError(
            f"noise={p.privacy.noise!r} is not the paper's, whose proxy makes the noise",
            hint="noise = 'gaussian', 'laplace' or 'wishart'",
            option="noise",
        )
    if p.privacy.assume_centered:
        raise ParameterError(
            "assume_centered cannot be used with calibration='paper', which spends nothing on a mean",
            hint="leave it out",
            option="assume_centered",
        )
    if p.privacy.centre != "mean" or p.privacy.padded:
        raise ParameterError(
            "centre='pairs' cannot be used with calibration='paper', which has no such form",
            hint="leave it out",
            option="centre",
        )
    if p.privacy.noise == "gaussian" and p.privacy.delta is None:
        raise ParameterError(
            "the paper's Gaussian mechanism needs a delta", hint="delta=1e-5, for example", option="delta"
        )
    if p.privacy.row_norm is None:
        raise ParameterError(
            "the paper's discretisation needs public bounds: row_norm", hint="row_norm=1.0", option="row_norm"
        )


PROTOCOL = Protocol(
    name="dpdpca",
    title="Differentially private PCA with a proxy (DPDPCA)",
    roles={OWNER: owner, PROXY: proxy, DATA_USER: data_user},
    data_roles=frozenset({OWNER}),
    single_roles=frozenset({PROXY, DATA_USER}),
    judge=DATA_USER,
    apart=((PROXY, DATA_USER), (PROXY, OWNER)),
    messages=(*handshake.MESSAGES, PublicCentre, Model, Variances, SampleCount, *paper.MESSAGES),
    parameters=DPDPCAParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; proxy and data user do not collude.",
    expect=expect,
    check=check,
    privacy=terms,
    prepare=prepared_by(PROXY, DATA_USER),
)
