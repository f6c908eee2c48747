"""DPDPCA to the letter. **Not differentially private as stated**; kept to reproduce the paper's figures.

Wang, Chang: Differentially Private Principal Component Analysis Over Horizontally Partitioned Data
(2018), Algorithm 1 (DPAggregate) and section IV, on packed Paillier ciphertexts.

Symbols: L -> owners, M -> features, R^l, v^l, N^l -> EncryptedShare, b -> mask, G -> masked products,
G' -> noise, R', v' -> NoisyAggregate, S' -> scatter.

Adversary: passive; the proxy colludes with nobody. Learns: the proxy N; the data user N, v' and S'.

Why it is not private: the noise is for sensitivity 1, but one row moves the centred scatter by up to
4(N-1)/N; b is a multiple of N, so v' mod N = v mod N (``mask="free"`` repairs this one); the proxy
knows G' and takes it away again once components are published; N is released exactly.

Deviations: values are packed, row i of G being E[v_i]^(packed b) times E[packed v]^(b_i); owners send v
both packed and one by one. Bounds of eq. 5 are public: rows of norm 1, so every value lies in [-1, 1].
What leaves the proxy has been multiplied with a fresh encryption, so no secret factor can be read off it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atoll import randomness, secure_sums
from atoll.codec import Message
from atoll.crypto.paillier import (
    Layout,
    PublicKey,
    SecretKey,
    ciphertexts,
    generate,
    integers_from_limbs,
    limbs_from_integers,
    parameters_for,
)
from atoll.data.island import Matrix
from atoll.errors import DataError, MessageError, RangeOverflow
from atoll.network import Network, Record
from atoll.privacy import grid, paper_forms
from atoll.protocols import handshake
from atoll.protocols.booking import refuse_ledger
from atoll.protocols.own import Own
from atoll.protocols.pca.decompose import Decomposition, decompose
from atoll.protocols.pca.dpdpca.terms import DATA_USER, OWNER, PROXY, DPDPCAParameters
from atoll.protocols.pca.private_release import checked
from atoll.study.address import Address
from atoll.study.model import Study

Objects = npt.NDArray[np.object_]

RECORDED_NOISE = "paper/noise"
"""Where the proxy's record holds the seed of G'."""

_E_BITS = 16  # e of eq. 5
_LEVELS = (1 << _E_BITS) - 1
UNIT = 2.0 / _LEVELS
"""One step of the discretisation, for rows of norm one."""
_ROWS_BITS = 24
_MASK_BITS = _E_BITS + _ROWS_BITS + 40  # forty bits wider than v
_VALUE_BITS = _ROWS_BITS + 2 * _MASK_BITS + 4  # N b b^T, with room for the noise
_OPENED_LIMBS = 5


# ---- messages ----


class UserKey(Message, frozen=True):
    """Data user -> owners, proxy: pk."""

    key: bytes


class EncryptedShare(Message, frozen=True):
    """Owner -> proxy: E[R^l], E[v^l] one by one and packed, E[N^l]. Rows fill whole ciphertexts."""

    R: bytes
    v: bytes
    packed_v: bytes
    N: bytes


class EncryptedCount(Message, frozen=True):
    """Proxy -> data user: E[N]."""

    N: bytes


class OpenedCount(Message, frozen=True):
    """Data user -> proxy: N."""

    N: int


class NoisyAggregate(Message, frozen=True):
    """Proxy -> data user: E[R'] row by row, E[v']."""

    R: tuple[bytes, ...]
    v: bytes


MESSAGES = (UserKey, EncryptedShare, EncryptedCount, OpenedCount, NoisyAggregate)


# ---- steps ----


def packed_layout(key: PublicKey, owners: int) -> Layout:
    """Room for the sum of R, of v times a mask, twice, and of one constant."""
    headroom = owners << (_MASK_BITS + 2)
    return Layout.plan(key.parameters.modulus_bits, summands=headroom, value_bits=_VALUE_BITS)


def single_layout(key: PublicKey, owners: int) -> Layout:
    return Layout.plan(key.parameters.modulus_bits, summands=owners, value_bits=_VALUE_BITS, slots=1)


def unit_rows(X: Matrix, p: DPDPCAParameters) -> Matrix:
    """Rows of norm one, or at most one: what the paper's sensitivity assumes."""
    assert p.privacy.row_norm is not None  # checked with the study
    if p.privacy.rows == "normalise":
        norms = grid.row_norms(X)
        return X / np.where(norms > 0, norms, 1.0)[:, None]
    return grid.shorten(X, p.privacy.row_norm) / p.privacy.row_norm


def discretise(x: Matrix) -> npt.NDArray[np.int64]:
    """Eq. 5 with min -1 and max 1."""
    return np.clip(np.floor((x + 1.0) / UNIT), 0, _LEVELS).astype(np.int64)


def gen_share(key: PublicKey, X: Matrix, owners: int, p: DPDPCAParameters, seed: bytes) -> EncryptedShare:
    """R^l, v^l and N^l, discretised and encrypted (eq. 8)."""
    if len(X) > (1 << _ROWS_BITS) // owners:
        raise RangeOverflow(
            f"{len(X)} rows are more than the paper's form has room for", hint="split the study"
        )
    x = discretise(unit_rows(X, p))
    R, v = _mirrored(grid.second_moment_triangle(x), x.shape[1]), x.sum(axis=0)
    packed, single = packed_layout(key, owners), single_layout(key, owners)

    def encrypted(values: list[int], layout: Layout, domain: str) -> bytes:
        return ciphertexts.encrypt(key, _limbs(values), layout, randomness.derive(seed, domain))

    return EncryptedShare(
        encrypted(_filled(R.tolist(), packed), packed, "R"),
        encrypted(v.tolist(), single, "v"),
        encrypted(_filled([v.tolist()], packed), packed, "packed v"),
        encrypted([len(X)], single, "N"),
    )


def aggregate(key: PublicKey, one: EncryptedShare, other: EncryptedShare) -> EncryptedShare:
    """Products of ciphertexts: sums of shares (eq. 11-13)."""
    return EncryptedShare(
        ciphertexts.add(key, (one.R, other.R)),  # Alg 1, l.2
        ciphertexts.add(key, (one.v, other.v)),  # Alg 1, l.3
        ciphertexts.add(key, (one.packed_v, other.packed_v)),
        ciphertexts.add(key, (one.N, other.N)),  # Alg 1, l.4
    )


def gen_mask(seed: bytes, features: int) -> list[int]:
    """b (or, where b is a multiple of N, b/N)."""  # Alg 1, l.6
    size = _MASK_BITS // 8
    stream = randomness.expand(seed, size * features, "atoll/dpdpca/mask/v1")
    return [int.from_bytes(stream[i : i + size], "little") for i in range(0, len(stream), size)]


def gen_noise(seed: bytes, features: int, p: DPDPCAParameters) -> Matrix:
    """G', in units of rows of norm one."""  # Alg 1, l.8
    if p.privacy.noise == "laplace":
        return np.asarray(paper_forms.laplace_matrices(seed, features, p.privacy.epsilon)[0])
    if p.privacy.noise == "wishart":
        W = paper_forms.wishart_matrices(seed, features, p.privacy.epsilon)[0]
        return np.asarray((W + W.T) / 2)  # a product is symmetric up to its rounding only
    assert p.privacy.delta is not None  # checked with the study
    return np.asarray(paper_forms.gaussian_matrices(seed, features, p.privacy.epsilon, p.privacy.delta)[0])


def perturb(
    key: PublicKey, total: EncryptedShare, N: int, mask: list[int], noise: Matrix, free: bool, seed: bytes
) -> NoisyAggregate:
    """E[R'] and E[v'].

    b a multiple of N: R' = R + G' + (v b^T + b v^T + b b^T)/N, with ``mask`` = b/N. b free: everything
    times N, so that nothing is divided.
    """
    layout = ciphertexts.describe(key, total.packed_v).layout
    factor, constant, hidden = (N, 1, 1) if free else (1, N, N)
    units = [[round(g / UNIT**2) for g in row] for row in noise.tolist()]
    clear = [
        [constant * b_i * b_j + factor * g for b_j, g in zip(mask, row, strict=True)]
        for b_i, row in zip(mask, units, strict=True)
    ]

    def encrypted(rows: list[list[int]], domain: str) -> bytes:
        limbs = _limbs(_filled(rows, layout))
        return ciphertexts.encrypt(key, limbs, layout, randomness.derive(seed, domain))

    R = ciphertexts.multiply(key, total.R, factor) if free else total.R
    noisy = ciphertexts.add(key, (R, encrypted(clear, "R")))
    factors = _limbs(_filled([mask], layout))
    products = ciphertexts.multiply_packed(key, total.v, factors, layout, factor_bits=_MASK_BITS)
    rows = []
    for row, v_i_b, b_i in zip(ciphertexts.split(key, noisy, len(mask)), products, mask, strict=True):
        b_i_v = ciphertexts.multiply(key, total.packed_v, b_i, factor_bits=_MASK_BITS)  # Alg 1, l.7
        rows.append(ciphertexts.add(key, (row, v_i_b, b_i_v)))  # Alg 1, l.9
    b = encrypted([[hidden * b_i for b_i in mask]], "b")
    return NoisyAggregate(tuple(rows), ciphertexts.add(key, (total.packed_v, b)))  # Alg 1, l.10


def open_aggregate(secret: SecretKey, sent: NoisyAggregate, N: int, free: bool) -> Matrix:
    """S' = R' - v' v'^T/N (eq. 22), in exact integers until the last division; rows of norm one."""
    M = len(sent.R)
    opened = [_integers(secret, row)[:M] for row in (*sent.R, sent.v)]
    if any(len(row) != M for row in opened):
        raise MessageError("the proxy sent a matrix and a vector of different sizes")
    R, v = np.array(opened[:-1], dtype=object), np.array(opened[-1], dtype=object)
    S: Objects = (R if free else N * R) - np.outer(v, v)
    return np.asarray((S / N).astype(np.float64) * UNIT**2)


def decompose_scatter(S: Matrix, N: int, p: DPDPCAParameters) -> Decomposition:
    """Components of S'/(N-1), in the data's units where rows were only cut."""
    reach = 1.0 if p.privacy.rows == "normalise" or p.privacy.row_norm is None else p.privacy.row_norm
    return decompose((S + S.T) / 2 * (reach * reach / (N - 1)), max(N, len(S)), p.n_components)


def _mirrored(triangle: npt.NDArray[np.int64], features: int) -> npt.NDArray[np.int64]:
    """The symmetric matrix of [diagonal, upper triangle], still in integers."""
    matrix = np.diag(triangle[:features])
    upper = np.triu_indices(features, 1)
    matrix[upper] = triangle[features:]
    matrix.T[upper] = triangle[features:]
    return matrix


def _filled(rows: list[list[int]], layout: Layout) -> list[int]:
    """Rows one after another, each filled up with zeros to whole ciphertexts."""
    width = layout.plaintexts(len(rows[0])) * layout.slots
    return [value for row in rows for value in (*row, *([0] * (width - len(row))))]


def _limbs(integers: list[int]) -> Any:
    return limbs_from_integers(integers, _OPENED_LIMBS)


def _integers(secret: SecretKey, batch: bytes) -> list[int]:
    return integers_from_limbs(ciphertexts.decrypt(secret, batch, _OPENED_LIMBS))


# ---- roles ----


async def owner(net: Network, study: Study, own: Own, record: Record, p: DPDPCAParameters) -> None:
    refuse_ledger(own)
    island = own.table
    agreed = await handshake.announce(net, island, study.the(PROXY), p.columns, None)
    X = checked(island.chosen(agreed.names)).whole()  # the paper's form is for small tables
    key = PublicKey.from_bytes((await net.receive(UserKey, study.the(DATA_USER))).key)
    seed = record("paper/encrypt", randomness.fresh_seed)
    share = await net.compute(gen_share, key, X, len(study.who(OWNER)), p, seed)
    await net.send(study.the(PROXY), share)


async def proxy(net: Network, study: Study, record: Record, p: DPDPCAParameters) -> int:
    """N, which the proxy is told."""
    owners, user = study.who(OWNER), study.the(DATA_USER)
    agreed = await handshake.check(net, owners, p.columns)
    await net.send(user, agreed)
    key = PublicKey.from_bytes((await net.receive(UserKey, user)).key)
    total: list[EncryptedShare] = []

    def combine(sender: Address, share: EncryptedShare) -> None:
        total[:] = [aggregate(key, total[0], share) if total else share]  # Alg 1, l.2-4

    await net.fold(EncryptedShare, owners, combine)
    await net.send(user, EncryptedCount(total[0].N))  # Alg 1, l.5
    N = (await net.receive(OpenedCount, user)).N
    if not 2 <= N <= 1 << _ROWS_BITS:
        raise MessageError(f"{user} sent {N} as the number of rows")  # the noise would be scaled by it
    features = len(agreed.names)
    mask = gen_mask(record("paper/mask", randomness.fresh_seed), features)  # Alg 1, l.6
    noise = gen_noise(record(RECORDED_NOISE, randomness.fresh_seed), features, p)  # Alg 1, l.8
    seed = record("paper/perturb", randomness.fresh_seed)
    sent = await net.compute(perturb, key, total[0], N, mask, noise, p.mask == "free", seed)
    await net.send(user, sent)  # Alg 1, l.11
    return N


async def data_user(
    net: Network, study: Study, record: Record, p: DPDPCAParameters
) -> tuple[Decomposition, Matrix, int, handshake.AgreedColumns]:
    """Components of S', S' itself, N, and the columns."""
    agreed = await handshake.learn(net, study.the(PROXY), p.columns)
    bits = int(secure_sums.options(study).key_bits)
    secret = SecretKey.from_bytes(await net.compute(_recorded_key, record, bits))
    await net.broadcast((*study.who(OWNER), study.the(PROXY)), UserKey(secret.public.to_bytes()))
    counted = await net.receive(EncryptedCount, study.the(PROXY))
    N = (await net.compute(_integers, secret, counted.N))[0]  # Alg 1, l.5
    if N > 1 << _ROWS_BITS:
        raise MessageError(f"{study.the(PROXY)} sent {N} as the number of rows")
    if N < 2:
        raise DataError(f"the joint table has {N} rows while a minimum of 2 is required")
    await net.send(study.the(PROXY), OpenedCount(N))
    sent = await net.receive(NoisyAggregate, study.the(PROXY))
    if len(sent.R) != len(agreed.names):
        raise MessageError(f"{study.the(PROXY)} sent {len(sent.R)} rows of a matrix of {len(agreed.names)}")
    S = await net.compute(open_aggregate, secret, sent, N, p.mask == "free")
    return record.kept("T", decompose_scatter(S, N, p)), S, N, agreed


def _recorded_key(record: Record, bits: int) -> bytes:
    def draw() -> bytes:
        return generate(parameters_for(bits), randomness.fresh_seed()).to_bytes()

    return record("paper/key", draw)
