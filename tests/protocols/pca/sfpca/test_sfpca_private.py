"""SF-PCA with an epsilon: what is encrypted is the noisy matrix of the staged release, and nothing else."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from tests.support.examples import private_sfpca, table
from tests.support.sfpca_runs import encrypted, simulated
from tests.support.taps import tapped

from atoll.codec import Decoder
from atoll.crypto import products as go
from atoll.data.island import Chosen, Island
from atoll.errors import RangeOverflow
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.lab.rehearsal import Rehearsal, rehearse
from atoll.privacy.mechanisms import Crowd
from atoll.protocols import protocol_of
from atoll.protocols.pca.private_release import noisy_integers
from atoll.protocols.pca.sfpca.private import (
    Noisy,
    noisy_matrix,
    noisy_moments,
    plan_of,
    private_direct,
    range_exponent,
)
from atoll.protocols.pca.sfpca.recipes import direct as direct_recipe
from atoll.protocols.pca.sfpca.recipes.direct import Found, Inputs
from atoll.protocols.pca.sfpca.recipes.moments import Moments, total_moments
from atoll.randomness import derive, fresh_seed
from atoll.secret_matrices.messages import OpenedMatrix
from atoll.study.address import Address

BLOCKS = [table(30, 4, seed) for seed in range(3)]
ROWS = sum(map(len, BLOCKS))


def whole(block: np.ndarray) -> Chosen:
    island = Island.from_array(block)
    return island.chosen(island.columns)


def plan(**options: Any) -> dp.Plan:
    chosen: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "neighbours": "replace"}
    return dp.Plan(4, 16.0, crowd=Crowd(3, 1), **(chosen | options))


def own_parts(chosen: dp.Plan, run: Rehearsal, seed: bytes, noisy: Noisy) -> list[Moments]:
    """Every provider's moments, with the noise that the rehearsal drew for it."""
    return [
        noisy_moments(chosen, whole(block), run.centre, derive(seed, i), noisy)
        for i, block in enumerate(BLOCKS)
    ]


def simulate(chosen: dp.Plan, seed: bytes) -> tuple[Found, Rehearsal, Noisy, Any]:
    run = rehearse(chosen, BLOCKS, seed)
    noisy = noisy_matrix(chosen, run.centre, ROWS)
    moments = total_moments(own_parts(chosen, run, seed, noisy))
    machine = simulated(3)
    names = ("a", "b", "c")
    inputs = Inputs(ROWS, 4, names, "simulated", moments, fresh_seed(), plays=names)
    return asyncio.run(private_direct(machine, inputs, 2, noisy)), run, noisy, machine


@pytest.mark.parametrize(
    "options",
    [{}, {"epsilon": 1e-3}, {"rows": "clip"}, {"delta": None}, {"assume_centered": True}, {"epsilon": 1e4}],
    ids=["default", "indefinite", "clip", "pure", "centred", "little noise"],
)
def test_the_matrix_is_that_of_the_staged_release(options: dict[str, Any]) -> None:
    chosen = plan(**options)
    found, run, noisy, machine = simulate(chosen, fresh_seed())
    to_data = ROWS * 4.0**4  # the range is 2^4, as the row norm is
    values, vectors = np.linalg.eigh(run.moments.matrix)
    scale = np.abs(values).max()
    assert np.abs(found.values * to_data - values[::-1]).max() < 1e-9 * scale
    assert found.total_variance * to_data == pytest.approx(np.trace(run.moments.matrix), abs=1e-9 * scale)
    assert noisy.sigma * to_data == pytest.approx(run.moments.sigma)
    assert machine.largest["H C"] < 1.0
    assert machine.largest["Z"] < 1.0
    components = asyncio.run(machine.released(found.components, frozenset()))
    assert np.abs(np.abs(np.sum(components * vectors.T[::-1][:2], axis=1)) - 1).max() < 1e-6
    offset = asyncio.run(machine.released(found.offset, frozenset()))[:, 0]
    assert np.abs(offset * 16.0 - components @ run.centre.point).max() < 1e-9


def test_the_noise_of_the_opened_trace_has_the_stated_variance() -> None:
    """Rows of length one: the exact trace is n whatever they are, the rest is noise: d sigma^2."""
    chosen = plan(assume_centered=True)
    sums = []
    for run in range(600):
        moments = rehearse(chosen, BLOCKS, run.to_bytes(32, "big")).moments
        sums.append(float(np.trace(moments.matrix)) - ROWS)
    found, _, noisy, _ = simulate(chosen, bytes(32))
    assert found.total_variance * ROWS * 4.0**4 - ROWS == pytest.approx(sums[0], abs=1e-3)
    expected = 4 * (noisy.sigma * ROWS * 4.0**4) ** 2
    # sqrt(2) for replace-one, 3/2 for one colluder among three.
    curator = dp.Plan(4, 16.0, 1.0, 1e-5, assume_centered=True).moments.noise.deviation_of_sum(0)
    ratio = chosen.moments_share / dp.Plan(4, 16.0, 1.0, 1e-5, assume_centered=True).moments_share
    assert expected == pytest.approx(4 * (curator / grid.MOMENT_UNITS) ** 2 * 2.0 * 1.5 / ratio)
    spread = np.var(sums) / expected
    assert abs(spread - 1.0) < 4.0 * math.sqrt(2.0 / len(sums))


def test_encrypted_it_is_the_same_matrix() -> None:
    chosen, seed = plan(epsilon=0.01), fresh_seed()
    run = rehearse(chosen, BLOCKS, seed)
    noisy = noisy_matrix(chosen, run.centre, ROWS)
    parts = own_parts(chosen, run, seed, noisy)

    async def program(machine: Any, inputs: Inputs, receivers: frozenset[str]) -> Any:
        own = None
        if inputs.moments is not None:
            own = parts[inputs.providers.index(inputs.me)]
        found = await private_direct(machine, inputs._replace(moments=own), 2, noisy)
        return found.values, await machine.released(found.components, receivers)

    results, _ = encrypted(program, BLOCKS)
    values, vectors = np.linalg.eigh(run.moments.matrix)
    assert values[0] < 0 < values[-1]
    for name, (found, components) in results.items():
        assert np.abs(found * ROWS * 4.0**4 - values[::-1]).max() < 1e-9 * np.abs(values).max()
        if name.endswith("provider"):
            assert np.abs(np.abs(np.sum(components * vectors.T[::-1][:2], axis=1)) - 1).max() < 1e-6


def test_a_provider_checks_its_own_matrix_against_the_bound() -> None:
    chosen, seed = plan(), fresh_seed()
    run = rehearse(chosen, BLOCKS, seed)
    noisy = noisy_matrix(chosen, run.centre, ROWS)
    with pytest.raises(RangeOverflow, match="no number was sent"):
        noisy_moments(chosen, whole(BLOCKS[0]), run.centre, seed, noisy._replace(exponent=noisy.exponent - 8))


def test_the_bound_of_a_providers_matrix_is_the_power_of_two_itself() -> None:
    chosen, seed = plan(), fresh_seed()
    run = rehearse(chosen, BLOCKS, seed)
    noisy = noisy_matrix(chosen, run.centre, ROWS)
    triangle = noisy_integers(chosen, chosen.moments, whole(BLOCKS[0]), run.centre, seed)
    below = math.floor(math.log2(np.linalg.norm(grid.unpack_triangle(triangle, 4))))
    noisy_moments(chosen, whole(BLOCKS[0]), run.centre, seed, noisy._replace(exponent=below + 1))
    with pytest.raises(RangeOverflow, match="no number was sent"):
        noisy_moments(chosen, whole(BLOCKS[0]), run.centre, seed, noisy._replace(exponent=below))


def test_nothing_without_noise_is_opened() -> None:
    """One matrix is opened in the whole run; its trace is off the exact one, n, by what the noise says."""
    example = private_sfpca(assume_centered=True)
    tap = tapped(example)
    hub = example.study.the("coordinator")
    decoder = Decoder(protocol_of("sfpca").all_messages(example.study))
    first = example.study.who("provider")[0]
    received = [decoder.decode(data) for sender, data in tap.inboxes[first] if sender == hub and data]
    opened = [message for message in received if isinstance(message, OpenedMatrix)]
    assert len(opened) == 1
    columns = example.islands[first.party].columns
    chosen, _ = plan_of(example.study, tuple(columns))
    n = sum(island.n_rows for island in example.islands.values())
    noisy = noisy_matrix(chosen, dp.Centre(np.zeros(4), n, chosen.row_norm), n)
    Z = go.to_ints(np.array(opened[0].words)).astype(float) / 2.0**direct_recipe.ROTATION_FRACTION
    diagonal = Z[[k for k, (i, j) in enumerate(zip(*np.triu_indices(4), strict=True)) if i == j]]
    trace = float(diagonal.sum()) * noisy.unit * n * 4.0 ** range_exponent(chosen)  # in rows of length one
    sigma = noisy.sigma * n * 4.0 ** range_exponent(chosen)
    assert 1e-6 * sigma < abs(trace - n) < 8 * 2 * sigma


def test_what_is_recorded_without_a_ledger_is_one_seed_of_noise() -> None:
    tap = tapped(private_sfpca())
    for address, record in tap.records.items():
        drawn = [tag for tag in record.drawn if tag.startswith("privacy/")]
        assert drawn == (["privacy/noise"] if address.role == "provider" else [])
    assert Address("island-0", "provider") in tap.records
