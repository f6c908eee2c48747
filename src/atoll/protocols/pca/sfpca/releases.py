"""What is released at the end: components and offset, public numbers, scores to their owners."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from atoll.data.island import Chosen, Matrix
from atoll.network import Network
from atoll.privacy.dp_moments import deflate
from atoll.privacy.noise_statement import NoiseStatement, state
from atoll.protocols.base import Outputs
from atoll.protocols.pca.decompose import deterministic_signs
from atoll.protocols.pca.released import PROVIDER, SampleCount, Variances, named
from atoll.protocols.pca.sfpca import steps
from atoll.protocols.pca.sfpca.digits import shortened
from atoll.protocols.pca.sfpca.messages import Certified, Names, RowCounts
from atoll.protocols.pca.sfpca.parameters import LATER, SFPCAParameters
from atoll.protocols.pca.sfpca.prepared import OwnSums, Public, split_of
from atoll.protocols.pca.sfpca.recipes.certificate import Certificate
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.protocols.pca.sfpca.recipes.moments import on_grid
from atoll.protocols.pca.sfpca.scores import SCORE_ROWS, for_rows, row_fraction, score_owners
from atoll.secret_matrices import roles
from atoll.secret_matrices.machine import Floats
from atoll.study.address import Address
from atoll.study.model import Study

AnyMachine = roles.Provider | roles.Coordinator


def variances(found: Found, public: Public) -> Variances:
    """Variances of the original columns, with scikit-learn's divisor."""
    assert found.values is not None, "a study that keeps the spectrum encrypted releases no variances"
    assert found.total_variance is not None, "neither is known, or both are"
    unit = 4.0**public.range.exponent * public.n / (public.n - 1)
    sigma = 0.0 if public.noisy is None else public.noisy.sigma
    values = deflate(found.values, len(public.columns), sigma) * unit
    explained = values[: public.k]
    total = max(found.total_variance * unit, float(explained.sum()))
    rest = min(public.n, len(public.columns)) - public.k
    left = max(0.0, total - float(explained.sum())) / rest if rest else 0.0
    return Variances(explained, total, left, _noise(found, public))


def _noise(found: Found, public: Public) -> NoiseStatement | None:
    """From the spectrum that everybody saw; whoever states it does not have the components."""
    if public.noisy is None or found.values is None:
        return None
    return state(found.values, public.noisy.sigma, public.k, public.noisy.rows, public.noisy.centre)


def certified(recipe: str, certificate: Certificate) -> Certified:
    return Certified(recipe, certificate.bound, certificate.tau)


def model(
    components: Floats, offset: Floats | None, unit: float, centre: Matrix, names: Names, flips: Floats
) -> Outputs:
    """Components with these signs, and the offset of the original columns."""
    signed = flips[:, None] * components
    whole = None if offset is None else flips * offset[:, 0] * unit + signed @ centre
    return {"components": signed, "offset": whole, "columns": names.columns if names.named else None}


def signs(study: Study, components: Floats) -> Floats:
    """The signs that make each component's largest entry positive; all 1 where the run's own signs stay.

    Whoever has scores alone, now or later, cannot flip them along.
    """
    flips = np.where((deterministic_signs(components) * components).sum(axis=1) < 0, -1.0, 1.0)
    alone = set(study.receivers("scores")) - set(study.receivers("components"))
    kept = study.receivers("encrypted") or study.protocol == LATER
    return np.ones(len(components)) if alone or kept else flips


def project(table: Chosen, known: Outputs) -> Matrix:
    """Z = X W^T - offset, some rows at a time."""
    return table.stacked(partial(_projected, components=known["components"], offset=known["offset"]))


def _projected(X: Matrix, components: Matrix, offset: Matrix) -> Matrix:
    return np.asarray(X @ components.T - offset)


def all_opened(study: Study, public: Public, found: Found, recipe: str) -> Outputs:
    """The numbers that every role with shares has seen by now."""
    seen: Outputs = {"n_samples": public.n, "islands": tuple(a.party for a in study.who(PROVIDER))}
    seen |= {"rows": by_party(study, public.rows)}
    seen |= {"certificate": named(certified(recipe, found.certificate))}
    if found.values is None:
        return seen
    unit = 4.0**public.range.exponent * public.n / (public.n - 1)
    return seen | named(variances(found, public)) | {"spectrum": found.values * unit}


def by_party(study: Study, rows: Sequence[int]) -> dict[str, int]:
    return {a.party: n for a, n in zip(study.who(PROVIDER), rows, strict=True)}


def names_of(public: Public, found: Found) -> Names:
    return Names(public.columns, public.named, found.offset_factor * 2.0**public.range.exponent)


async def release_model(
    study: Study, machine: AnyMachine, public: Public, found: Found
) -> tuple[Outputs, Floats]:
    """Components and offset, for whom the study names, and the signs that they were multiplied by."""
    receivers = frozenset(str(a) for a in study.receivers("components"))
    components, offset = await steps.release(machine, found, receivers)
    if components is None:
        return {}, np.ones(public.k)
    names, flips = names_of(public, found), signs(study, components)
    return model(components, offset, names.offset_unit, public.range.centre, names, flips), flips


async def send_public(
    net: Network, study: Study, to: Address, public: Public, found: Found, recipe: str, names: Names
) -> None:
    if study.releases("explained_variance", to):
        await net.send(to, variances(found, public))
    if study.releases("n_samples", to):
        islands = tuple(address.party for address in study.who(PROVIDER))
        await net.send(to, SampleCount(public.n, islands))
        await net.send(to, RowCounts(public.rows))
    if study.releases("certificate", to):
        await net.send(to, certified(recipe, found.certificate))
    if study.releases("components", to):
        await net.send(to, names)


async def common_scores(
    study: Study, machine: AnyMachine, public: Public, found: Found, sums: OwnSums | None, flips: Floats
) -> Outputs:
    """W X^T of the rows that all islands have in common, released to whom the study names."""
    receivers = frozenset(str(a) for a in study.receivers("scores"))
    p, split = study.read_parameters(SFPCAParameters), split_of(study, machine.net.me, public, sums)
    assert split is not None, "islands hold columns"
    blocks = steps.project_common_rows(
        machine, found.components, split, receivers, partial(shortened, machine, p)
    )
    mine = [block async for block in blocks]
    unit = 2.0**public.range.exponent * flips
    return {"scores": {machine.net.me.party: np.vstack(mine) * unit}} if mine else {}


async def own_scores(
    study: Study, machine: AnyMachine, public: Public, found: Found, table: Chosen | None
) -> Outputs:
    """Each owner's W X_i^T - offset, under encryption, released to that owner only."""
    rows = dict(zip(study.who(PROVIDER), public.rows, strict=True))
    owners = [(str(address), rows[address]) for address in score_owners(study)]
    unit = 2.0**public.range.exponent
    if owners and found.standardised is not None:
        # Secret scales are those of sums over the next power of two.
        unit = 1 / found.offset_factor
    if owners:
        found = await for_rows(machine, found)

    mine = iter(()) if table is None else table.blocks(SCORE_ROWS)

    def own(owner: str, part: slice) -> Any:
        """The next rows: they are asked for in their order, as many at a time."""
        del part
        return None if table is None or owner != machine.me else _rows(next(mine), public, found)

    blocks = steps.project_own_rows(machine, found, len(public.columns), owners, own)
    scores = [block * unit async for block in blocks]
    return {"scores": {machine.net.me.party: np.vstack(scores)}} if scores else {}


def _rows(X: Matrix, public: Public, found: Found) -> Any:
    centred = X - public.range.centre
    return np.ascontiguousarray(on_grid(centred, public.range.exponent, row_fraction(found)).T)
