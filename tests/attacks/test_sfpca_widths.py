"""Masks, truncation and smudging have the widths that the bounds of the run ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise, product
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.datasets import load_wine
from tests.support.sfpca_runs import direct, encrypted, own_moments, strict

from atoll.crypto import products as go
from atoll.crypto.products import Clearing, Layout, Ring
from atoll.protocols.pca.sfpca import planner
from atoll.protocols.pca.sfpca.recipes.columns import Split, evenly_split, own_columns
from atoll.protocols.pca.sfpca.recipes.covariance import HEADROOM, POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Inputs, scatter
from atoll.protocols.pca.sfpca.recipes.direct import direct as direct_recipe
from atoll.protocols.pca.sfpca.recipes.moments import on_grid
from atoll.protocols.pca.sfpca.recipes.rows import prefers_rows
from atoll.protocols.pca.sfpca.recipes.strict import joint_covariance, start
from atoll.protocols.pca.sfpca.recipes.strict import strict as strict_recipe
from atoll.randomness import derive
from atoll.secret_matrices import party
from atoll.secret_matrices.costs import counted
from atoll.secret_matrices.machine import Job, Shared
from atoll.secret_matrices.widths import Widths, widths_for

# The table of go/product, which pins them.
MODULI = [
    0xFFFFFFFF58001,
    0xFFFFFFFF00001,
    0xFFFFFFFE88001,
    0xFFFFFFFE40001,
    0xFFFFFFFE20001,
    0xFFFFFFFD98001,
    0xFFFFFFFD78001,
    0xFFFFFFFCA8001,
]


class Smudged(NamedTuple):
    shape: tuple[int, int]
    width: int
    noise: Any


class Seen:
    """The widths of every product and opening of the runs inside one test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.products: list[tuple[int, Job, Widths]] = []
        self.smudged: list[Smudged] = []
        smudge = go.smudge

        def planned(count: int, job: Job, **options: Any) -> Widths:
            plan = widths_for(count, job, **options)
            self.products.append((count, job, plan))
            return plan

        def noted(x: Any, width: int, seed: bytes, domain: bytes) -> Any:
            out = smudge(x, width, seed, domain)
            self.smudged.append(Smudged(x.shape[:2], width, go.to_ints(out) - go.to_ints(x)))
            return out

        monkeypatch.setattr(party, "widths_for", planned)
        monkeypatch.setattr(counted, "widths_for", planned)
        monkeypatch.setattr(go, "smudge", noted)

    def check_margins(self) -> None:
        assert self.products
        for count, job, plan in self.products:
            clearing, ring = plan.clearing, plan.ring
            assert clearing.parties == count
            # Results times 2^shift, as they stand in the ring, stay below 2^value_bits ...
            scale = max(x.fraction + y.fraction for x, y in job.terms)
            x, y = job.terms[0]
            shift = plan.shifts[0] - (scale - x.fraction - y.fraction)
            assert clearing.value_bits >= job.bits + scale + shift, job.name
            # ... masks are 64 bits wider than that, and still fit the ring with everybody's added up;
            assert clearing.mask_bits >= clearing.value_bits + 64, job.name
            assert clearing.mask_bits + log2(count) <= ring.log_q, job.name
            # ... and 60 bits more than the noise are cut off.
            assert clearing.truncate >= go.noise_bits(ring, count, clearing.right_bits) + 60, job.name
            assert clearing.truncate == scale + shift - job.fraction, job.name
            for matrix in (right for _, right in job.terms):
                # Of entries, what falls into one polynomial; else whole columns.
                rows = plan.layouts[0].block_rows if job.entrywise else matrix.shape[0]
                whole = matrix.bits + ceil(log2(rows * matrix.shape[1]) / 2)
                norm = whole if matrix.norm_bits is None else min(whole, matrix.norm_bits)
                narrow = plan.layouts[0].block_cols < matrix.shape[1]
                assert narrow or clearing.right_bits >= matrix.fraction + norm, job.name


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def decaying(m: int = 46) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.asarray(rng.normal(size=(200, m)) * np.sqrt(0.6 ** np.arange(m)) + 0.2)


def uniform(values: Any, width: int, *, bins: int = 16) -> float:
    """p-value of integers being uniform over [-2^(width-1), 2^(width-1)); 0 where one lies outside."""
    places = [(int(v) + (1 << (width - 1))) * bins >> width for v in np.ravel(values)]
    if min(places) < 0 or max(places) >= bins:
        return 0.0
    counts = np.bincount(places, minlength=bins)
    expected = len(places) / bins
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), bins - 1))


def test_the_margins_of_a_direct_run(seen: Seen) -> None:
    X = load_wine().data
    encrypted(lambda m, i, r: direct(m, i, 13, r), np.array_split(X, 3))
    seen.check_margins()
    # Both openings: the trace, and Z, over everything that rounding may have left since the rotation.
    assert [s.shape for s in seen.smudged] == [(1, 1)] * 3 + [(91, 1)] * 3
    for smudged in seen.smudged[3:]:
        # 52 bits over the rounding of 4 shares in 5 steps, added up over 13 columns: 260 < 2^9.
        assert smudged.width == 61
        assert uniform(smudged.noise, smudged.width) > 1e-7
        # Twice the width would be another distribution: the test can tell.
        assert uniform(smudged.noise, smudged.width + 1) < 1e-9


def test_the_margins_of_a_strict_run(seen: Seen) -> None:
    X = decaying()
    encrypted(lambda m, i, r: strict(m, i, 2, r), [X[:120], X[120:]])
    seen.check_margins()
    assert {job.name for _, job, _ in seen.products} >= {"P C", "Gram matrix", "polynomial", "H X H^T", "tau"}
    rho = 26
    whole = [s for s in seen.smudged if s.shape == (rho * (rho + 1) // 2, 1)]
    assert len(whole) == 2
    for smudged in whole:
        # 52 bits over the rounding of 3 shares in 4 steps, added up over 26 columns: 312 < 2^9.
        assert smudged.width == 61
        assert uniform(smudged.noise, smudged.width) > 1e-7
    # tau has 30 fractional bits; two parties' noise of 13 bits each stays below its 15th.
    assert [s.width for s in seen.smudged[-2:]] == [13, 13]


def public_inputs(recipe: str, names: tuple[str, ...]) -> Inputs:
    """What is known before a run, for every form in which the data may be held."""
    inputs = Inputs(1 << 20, 300, names, "nobody", None, None)
    if recipe.endswith("direct"):
        return inputs._replace(columns=20, standardize=recipe == "standardised direct")
    if recipe == "standardised strict":
        return inputs._replace(standardize=True)
    if recipe == "streamed rows":
        sizes = (40,) * len(names)
        assert prefers_rows(sizes, 6000)
        return inputs._replace(n=sum(sizes), columns=6000, sizes=sizes)
    if recipe == "columns":
        return inputs._replace(n=500, split=evenly_split(names, 300, 500))
    return inputs


@pytest.mark.parametrize("count", [2, 50])
@pytest.mark.parametrize(
    "recipe", ["direct", "strict", "streamed rows", "columns", "standardised direct", "standardised strict"]
)
def test_the_margins_for_any_number_of_parties(seen: Seen, count: int, recipe: str) -> None:
    names = tuple(f"p{i}/provider" for i in range(count))
    inputs = public_inputs(recipe, names)
    is_direct = recipe.endswith("direct")
    total = float(inputs.columns) if inputs.standardize else 0.5 if is_direct else inputs.columns / 8
    machine = planner.Counted(names, total)
    asyncio.run(direct_recipe(machine, inputs, 5) if is_direct else strict_recipe(machine, inputs, 5))
    assert len(seen.products) >= (4 if is_direct else 40)
    assert any(job.entrywise for _, job, _ in seen.products) == inputs.standardize
    seen.check_margins()


# ---- the masks themselves ----


def residues(message: bytes, ring: Ring, count: int) -> list[int]:
    """Integers modulo Q, centred, from their packed residues."""
    size = ring.residues_size(count) // ring.limbs
    limbs = []
    for limb in range(ring.limbs):
        packed = int.from_bytes(message[limb * size : (limb + 1) * size], "little")
        limbs.append([(packed >> (52 * i)) & (2**52 - 1) for i in range(count)])
    moduli = MODULI[: ring.limbs]
    Q = int(np.prod(np.array(moduli, dtype=object)))
    parts = [Q // q * pow(Q // q, -1, q) for q in moduli]
    values = [sum(limb[i] * part for limb, part in zip(limbs, parts, strict=True)) % Q for i in range(count)]
    return [value - Q if value > Q // 2 else value for value in values]


def masks(
    ring: Ring, clearing: Clearing, size: int = 64, *, entrywise: bool = False
) -> tuple[list[int], Any]:
    """What a refresh adds to the decryption share of zero, which is zero; and the share it keeps."""
    blocks = (8, 1, 64) if entrywise else (size, ring.degree // size // size, size)
    layout = Layout(size, 1 if entrywise else size, size, *blocks, entrywise)
    second = bytes(layout.out_polys * ring.poly_size)
    secret = go.Secret(ring, b"k" * 32)
    message, share = secret.refresh(second, layout, clearing, b"m" * 32, b"")
    return residues(message, ring, size * size), go.to_ints(share).ravel()


def some_clearings() -> list[tuple[Ring, Clearing]]:
    """The narrowest and the widest masks of a strict run in every ring it uses."""
    names = [f"p{i}/provider" for i in range(3)]
    plans: list[Widths] = []
    machine = planner.Counted(names, total=15.0)
    machine_plans: Callable[..., Any] = machine.products

    async def noted(jobs: Any) -> Any:
        plans.extend(widths_for(3, job) for job in jobs)
        return await machine_plans(jobs)

    machine.products = noted  # type: ignore[method-assign]
    inputs = Inputs(1 << 12, 120, tuple(names), "nobody", None, None)
    asyncio.run(strict_recipe(machine, inputs, 3))
    out: list[tuple[Ring, Clearing]] = []
    for name in sorted({plan.ring.name for plan in plans}):
        found = sorted({p.clearing for p in plans if p.ring.name == name}, key=lambda c: c.mask_bits)
        out += [(go.rings()[name], clearing) for clearing in {found[0], found[-1]}]
    return out


def test_masks_and_what_is_cut_off_are_uniform_over_their_widths() -> None:
    clearings = some_clearings()
    assert {ring.family for ring, _ in clearings} == {"wide", "deep"}
    for (ring, clearing), entrywise in product(clearings, (False, True)):
        made, kept = masks(ring, clearing, entrywise=entrywise)
        width, cut = clearing.mask_bits, clearing.truncate
        assert uniform(made, width) > 1e-5
        assert uniform(made, width + 1) < 1e-9
        # The digits that the truncation drops, from the highest to the lowest: 60 more than the noise has.
        low = [value % (1 << cut) - (1 << (cut - 1)) for value in made]
        assert uniform(low, cut) > 1e-5
        for place in (0, cut // 2, cut - 4):
            assert uniform([(v >> place) % 16 - 8 for v in low], 4) > 1e-5
        # The share that goes on is minus the mask without those digits, rounded.
        assert [-((value + (1 << (cut - 1))) >> cut) for value in made] == list(kept)
        assert len(set(made)) == len(made)
        # Neighbours have nothing to do with each other: differences of uniform numbers are triangular.
        steps = [(b - a + (1 << width - 1)) % (1 << width) - (1 << width - 1) for a, b in pairwise(made)]
        assert uniform(steps, width) > 1e-5


# ---- what parties put in, added up ----


class Summand(NamedTuple):
    values: Any
    fraction: int
    bits: int
    norm_bits: int | None


class Noted(planner.Counted):
    """Notes what one party puts in, at a public scale."""

    def __init__(self, names: Sequence[str], total: float) -> None:
        super().__init__(names, total=total)
        self.summands: list[Summand] = []

    def private(
        self,
        owner: str | None,
        values: Any,
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        put = np.zeros(shape, np.int64) if values is None else np.asarray(values)
        assert put.shape == shape
        self.summands.append(Summand(put.astype(object), fraction, bits, norm_bits))
        return super().private(owner, values, shape, fraction, bits, norm_bits)


Form = Callable[[Noted, Inputs], Coroutine[Any, Any, Any]]


def check_sums(form: Form, everybody: Sequence[Inputs], total: float) -> None:
    """Everything that a program lets parties put in: their sum keeps the bounds that masks are made for."""
    machines = [Noted(everybody[0].providers, total) for _ in everybody]
    for machine, inputs in zip(machines, everybody, strict=True):
        asyncio.run(form(machine, inputs))
    assert machines[0].summands
    for parts in zip(*(machine.summands for machine in machines), strict=True):
        _, fraction, bits, norm_bits = parts[0]
        assert {part[1:] for part in parts} == {(fraction, bits, norm_bits)}
        added = np.sum([part.values for part in parts], axis=0) / 2.0**fraction
        assert np.abs(added).max() < 2.0**bits
        if norm_bits is not None:
            assert np.sqrt(np.square(added.astype(float)).sum()) < 2.0**norm_bits


async def strict_form(machine: Noted, inputs: Inputs) -> None:
    policy = POLICIES["default"]
    C = await joint_covariance(machine, inputs, policy)
    C.mean(machine)
    start(machine, inputs, policy, 26)


async def direct_form(machine: Noted, inputs: Inputs) -> None:
    await scatter(machine, inputs, shown=inputs.standardize)


def island_inputs(blocks: Sequence[np.ndarray], *, standardize: bool = False) -> list[Inputs]:
    names, sizes = tuple(f"p{i}/provider" for i in range(len(blocks))), tuple(map(len, blocks))
    keep_rows = prefers_rows(sizes, blocks[0].shape[1]) and not standardize
    return [
        Inputs(
            sum(sizes),
            blocks[0].shape[1],
            names,
            name,
            own_moments(block, 0, keep_rows),
            derive(bytes(32), "seed", name),
            sizes,
            standardize=standardize,
        )
        for name, block in zip(names, blocks, strict=True)
    ]


def variance(blocks: Sequence[np.ndarray]) -> float:
    return float(np.vstack(blocks).var(axis=0).sum())


def awkward(blocks: Sequence[np.ndarray], total: float) -> list[np.ndarray]:
    """The same rows, moved so that the digits that every party's means lack are all but half a unit."""
    n, unit = sum(map(len, blocks)), np.sqrt(total * HEADROOM) * 2.0 ** -POLICIES["default"].gram_fraction
    moved = []
    for block in blocks:
        means = block.sum(axis=0) / (n * unit)
        moved.append(block + (np.floor(means) + 0.499 - means) * unit * n / len(block))
    return moved


@pytest.mark.parametrize("count", [2, 6, 50])
@pytest.mark.parametrize("spread", [0.9, 0.01])
def test_the_means_of_many_parties_keep_their_bounds(count: int, spread: float) -> None:
    rng = np.random.default_rng(3)
    blocks = [spread * rng.uniform(-1, 1, (20, 110)) for _ in range(count)]
    total = variance(blocks)
    for case in (blocks, awkward(blocks, total)):
        check_sums(strict_form, island_inputs(case), total)


def column_inputs(rows: np.ndarray, count: int) -> list[Inputs]:
    """Every party has as many columns of the same rows."""
    (n, m), width = rows.shape, rows.shape[1] // count
    names = tuple(f"p{i}/provider" for i in range(count))
    everybody = []
    for i, name in enumerate(names):
        own = on_grid(rows[:, i * width : (i + 1) * width], 0, DATA_FRACTION)
        moments, table = own_columns(own, i * width, m)
        split = Split(n, names, (width,) * count, DATA_FRACTION, {name: table})
        everybody.append(Inputs(n, m, names, name, moments, derive(bytes(32), name), split=split))
    return everybody


@pytest.mark.parametrize("form", [strict_form, direct_form])
def test_what_many_owners_of_columns_put_in_keeps_its_bounds(form: Form) -> None:
    rows = np.random.default_rng(4).uniform(-1, 1, (60, 100))
    check_sums(form, column_inputs(rows, 50), variance([rows]))


@pytest.mark.parametrize(
    ("form", "shape", "standardize"),
    [(direct_form, (5, 7), False), (strict_form, (3, 1200), False), (strict_form, (5, 7), True)],
    ids=["direct", "streamed rows", "standardised"],
)
def test_what_many_parties_put_in_keeps_its_bounds(
    form: Form, shape: tuple[int, int], standardize: bool
) -> None:
    rng = np.random.default_rng(4)
    blocks = [rng.uniform(-1, 1, shape) for _ in range(50)]
    everybody = island_inputs(blocks, standardize=standardize)
    assert everybody[0].moments is not None
    assert (everybody[0].moments.rows is not None) == (shape == (3, 1200))
    check_sums(form, everybody, shape[1] if standardize else variance(blocks))
