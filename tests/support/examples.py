"""One small study per protocol, with its data. A new protocol joins the contract tests by joining here;
``test_every_protocol_has_an_example`` fails until it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pandas as pd
from msgspec import structs
from tests.support import paper_runs
from tests.support.example_tables import EXACT as EXACT
from tests.support.example_tables import Example as Example
from tests.support.example_tables import cut as cut
from tests.support.example_tables import cut_frame as cut_frame
from tests.support.example_tables import frames as frames
from tests.support.example_tables import same as same
from tests.support.example_tables import table as table
from tests.support.learning_examples import alignment as alignment
from tests.support.learning_examples import descent as descent
from tests.support.learning_examples import description as description
from tests.support.learning_examples import encrypted_rows as encrypted_rows
from tests.support.learning_examples import learning as learning
from tests.support.learning_examples import learning_columns as learning_columns
from tests.support.prepared_examples import LOCAL_LEVELS, ONLY_NUMBERS
from tests.support.prepared_examples import prepared as prepared
from tests.support.synthesis_examples import published as published
from tests.support.synthesis_examples import synthesis as synthesis

from atoll import codec, secure_sums
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import later_study
from atoll.protocols.pca.sfpca.protocol import PROTOCOL as SFPCA
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Party, Study


def pppca(
    secure_sum: str = "shares", sum_options: dict[str, Any] | None = None, n_islands: int = 3
) -> Example:
    islands = as_islands(frames(n_islands))
    study = Study(
        name="example",
        protocol="pppca",
        secure_sum=secure_sum,
        sum_options=sum_options or {},
        parties=parties(islands, "provider", "server", "consumer"),
        # Two components of four columns say the covariance, if the columns hold whole numbers.
        parameters={
            "n_components": 2,
            "standardize": True,
            "label": "outcome",
            "accept_determined": True,
        },
        release={
            "components": ("provider", "consumer"),
            "explained_variance": ("provider", "consumer"),
            "n_samples": ("consumer",),
            "scores": ("consumer",),
        },
    )
    return Example(study, islands)


def pppca_ellipses(
    secure_sum: str = "shares", sum_options: dict[str, Any] | None = None, n_islands: int = 3
) -> Example:
    """Ellipses to one of the providers and the consumer, components to nobody."""
    example = pppca(secure_sum, sum_options, n_islands)
    parameters = {**example.study.parameters, "ellipse_rows": 10, "n_components": 3}
    release = {"ellipses": ("hospital-1", "consumer"), "explained_variance": ("consumer",)}
    return Example(structs.replace(example.study, parameters=parameters, release=release), example.islands)


def meta() -> Example:
    islands = as_islands(cut(table(), 3))
    study = Study(
        name="example",
        protocol="meta",
        parties=parties(islands, "provider", "server", "consumer"),
        parameters={"n_components": 2},
        release={
            "components": ("provider", "consumer"),
            "explained_variance": ("consumer",),
            "n_samples": ("provider",),
        },
    )
    return Example(study, islands)


def _accepted(parameters: dict[str, Any]) -> dict[str, Any]:
    """Two components of four columns are beyond the line; with an epsilon there is none."""
    return {} if parameters.get("epsilon") else {"accept_determined": True}


def sfpca(**parameters: Any) -> Example:
    """Components to the providers; everything that can go to a consumer goes there."""
    islands = as_islands(cut_frame(pd.DataFrame(table(), columns=["age", "dose", "weight", "stay"]), 3))
    study = Study(
        name="example",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator", "consumer"),
        parameters={"n_components": 2, **_accepted(parameters), **parameters},
        release={
            "components": ("provider", "consumer"),
            "explained_variance": ("consumer",),
            "n_samples": ("consumer",),
            "certificate": ("provider", "consumer"),
        },
    )
    return Example(study, islands)


def sfpca_scores() -> Example:
    """Scores to their owners, components to nobody; bounds, so that no range is opened."""
    example = sfpca(bounds=64.0)
    release = {"scores": ("provider",), "explained_variance": ("coordinator",)}
    roles = parties(example.islands, "provider", "coordinator")
    return Example(structs.replace(example.study, release=release, parties=roles), example.islands)


def sfpca_standardised() -> Example:
    """Standardised columns: a range of each is opened, and no offset."""
    return sfpca(standardize=True)


def sfpca_standardised_scores() -> Example:
    example = sfpca_scores()
    parameters = {**example.study.parameters, "standardize": True}
    return Example(structs.replace(example.study, parameters=parameters), example.islands)


def sfpca_paper() -> Example:
    """The paper's own routines, on slots that protect nothing."""
    frame = pd.DataFrame(paper_runs.table(), columns=["age", "dose", "weight", "stay", "score"])
    example, islands = sfpca(), as_islands(cut_frame(frame, 3))
    parameters = {
        "n_components": 1,
        "accept_determined": True,
        "paper": {"p": 4, "alpha": 1, "w": 1, "seed": 4, "parameters": paper_runs.SMALL},
    }
    study = structs.replace(example.study, protocol="sfpca-paper", parameters=parameters)
    return Example(study, islands)


def sfpca_paper_columns() -> Example:
    """Three islands with columns of the same rows, and intervals stated from the pooled table."""
    X, names = paper_runs.table(), ["age", "dose", "weight", "stay", "score"]
    places = ((0, 2), (2, 3), (3, 5))
    islands = as_islands([pd.DataFrame(X[:, a:b], columns=names[a:b]) for a, b in places])
    example = sfpca_paper()
    paper = example.study.parameters["paper"] | {"p": 2, "intervals": paper_runs.stated(X, 2)}
    study = structs.replace(
        example.study,
        partition="vertical",
        parties=parties(islands, "provider", "coordinator"),
        parameters=example.study.parameters | {"paper": paper},
        release={
            "components": ("provider",),
            "scores": ("island-1",),
            "explained_variance": ("coordinator",),
        },
    )
    return Example(study, islands)


def sfpca_paper_noise() -> Example:
    """Noise of a shuffled list in everything that is opened but the certificate."""
    example = sfpca_paper()
    paper = example.study.parameters["paper"] | {"noise": {"scale": 0.01}}
    parameters = example.study.parameters | {"paper": paper}
    return Example(structs.replace(example.study, parameters=parameters), example.islands)


def private_sfpca(**parameters: Any) -> Example:
    """Components to all, own scores to their owners; noise in everything that is opened."""
    example = sfpca(**({"epsilon": 5.0, "delta": 1e-5, "bounds": 16.0} | parameters))
    release = example.study.release | {"scores": ("provider",)}
    return Example(structs.replace(example.study, release=release), example.islands)


def sfpca_columns(
    release: dict[str, tuple[str, ...]] | None = None,
    roles: tuple[str, ...] = ("coordinator",),
    **parameters: Any,
) -> Example:
    """Three islands with columns of the same rows."""
    frame = pd.DataFrame(table(), columns=["age", "dose", "weight", "stay"])
    islands = as_islands([frame[["age", "dose"]], frame[["weight"]], frame[["stay"]]])
    study = Study(
        name="example",
        protocol="sfpca",
        partition="vertical",
        parties=parties(islands, "provider", *roles),
        parameters={"n_components": 2, **_accepted(parameters), **parameters},
        release=release or {"components": ("provider",)},
    )
    return Example(study, islands)


def sfpca_columns_consumer() -> Example:
    """Everything to a consumer that can go there; the strict recipe."""
    outputs = ("components", "explained_variance", "n_samples", "certificate")
    return sfpca_columns(dict.fromkeys(outputs, ("consumer",)), ("coordinator", "consumer"), recipe="strict")


def sfpca_columns_scores() -> Example:
    """Scores of the common rows to the providers."""
    return sfpca_columns({"scores": ("provider",), "explained_variance": ("coordinator",)}, bounds=64.0)


def sfpca_encrypted(**parameters: Any) -> Example:
    """Components to nobody: a share for every holder."""
    example = sfpca(bounds=64.0, **parameters)
    release = {"encrypted": ("provider", "coordinator"), "explained_variance": ("provider",)}
    roles = parties(example.islands, "provider", "coordinator")
    return Example(structs.replace(example.study, release=release, parties=roles), example.islands)


@cache
def _shares(**parameters: Any) -> Mapping[Address, bytes]:
    """What each role keeps of one run of the example before."""
    example = sfpca_encrypted(**parameters)
    learned = LocalEngine().run(SFPCA, example.study, example.own).learned
    return {address: one.inherent["share"] for address, one in learned.items()}


def sfpca_later(release: dict[str, tuple[str, ...]]) -> Example:
    """A later step on kept shares; tables only of those that project."""
    example, shares = sfpca_encrypted(), _shares()
    session = codec.decode(next(iter(shares.values())), Kept).session
    study = later_study(example.study, session, release)
    projecting = {address.party for address in study.receivers("scores")}
    islands = {name: island for name, island in example.islands.items() if name in projecting}
    return Example(study, islands, shares)


def sfpca_later_of_two(release: dict[str, tuple[str, ...]]) -> Example:
    """The same with the shares of the first and the last of three providers, two of which are enough."""
    example, away = sfpca_encrypted(threshold=2), "island-1"
    kept = {address: share for address, share in _shares(threshold=2).items() if address.party != away}
    points = {a.party: codec.decode(share, Kept).point for a, share in kept.items() if a.role == "provider"}
    session = codec.decode(next(iter(kept.values())), Kept).session
    study = later_study(example.study, session, release, points)
    projecting = {address.party for address in study.receivers("scores")}
    islands = {name: island for name, island in example.islands.items() if name in projecting}
    return Example(study, islands, kept)


def separate() -> Example:
    islands = as_islands(cut(table(), 3))
    study = Study(
        name="example",
        protocol="separate",
        parties=parties(islands, "provider"),
        parameters={"n_components": 2},
        release={"models": ("provider",)},
    )
    return Example(study, islands)


def privatelocal() -> Example:
    islands = as_islands(cut(table(), 3))
    study = Study(
        name="example",
        protocol="privatelocal",
        parties=parties(islands, "owner", "data_user"),
        parameters={"n_components": 2, "epsilon": 1.0, "delta": 1e-5},
        release={
            "components": ("owner", "data_user"),
            "explained_variance": ("data_user",),
            "n_samples": ("owner",),
        },
    )
    return Example(study, islands)


def summation(secure_sum: str = "shares", sum_options: dict[str, Any] | None = None, n: int = 4) -> Example:
    islands = as_islands([table(1, 5, seed) for seed in range(n)])
    study = Study(
        name="example",
        analysis="sum",
        protocol="sum",
        secure_sum=secure_sum,
        sum_options=sum_options or {},
        parties=parties(islands, "contributor", "receiver"),
        parameters={"length": 5},
        release={"total": ("receiver",)},
    )
    return Example(study, islands)


def mediated(example: Example) -> Example:
    """The same study with a mediator of its own."""
    parties_ = (*example.study.parties, Party("broker", ("mediator",)))
    return Example(structs.replace(example.study, parties=parties_), example.islands)


def dpdpca(
    secure_sum: str = "shares",
    sum_options: dict[str, Any] | None = None,
    n_islands: int = 4,
    **parameters: Any,
) -> Example:
    islands = as_islands(cut(table(), n_islands))
    study = Study(
        name="example",
        protocol="dpdpca",
        secure_sum=secure_sum,
        sum_options=sum_options or {},
        parties=parties(islands, "owner", "proxy", "data_user"),
        parameters={"n_components": 2, "epsilon": 5.0, "delta": 1e-5, "row_norm": 10.0, **parameters},
        release={
            "components": ("owner", "data_user"),
            "explained_variance": ("data_user",),
            "n_samples": ("owner",),
        },
    )
    return Example(study, islands)


def with_capacities(example: Example, places: int = 16) -> Example:
    """Every island declares that it could have so many rows."""
    for island in example.islands.values():
        island.capacity = places
    return example


PAIRS: dict[str, Any] = {"centre": "pairs", "row_norm": None}


def private_pppca(**parameters: Any) -> Example:
    example = pppca(n_islands=4)
    frames_without_label = {name: part.drop(columns="outcome") for name, part in frames(4).items()}
    return Example(
        structs.replace(
            example.study,
            parameters={"n_components": 2, "epsilon": 5.0, "delta": 1e-5, "row_norm": 10.0, **parameters},
            release={
                "components": ("provider", "consumer"),
                "explained_variance": ("consumer",),
                "n_samples": ("provider", "consumer"),
            },
        ),
        as_islands(frames_without_label),
    )


SUMS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in secure_sums.METHODS),
    ("masks", {"dropouts": 1}),
    ("paillier", {"encoding": "exponent"}),
    ("lattice", {"key": "server"}),
    ("mix", {"form": "elgamal"}),
    ("mix", {"parallel": True}),
]
"""Every secure sum, with the options that change its messages."""

EXAMPLES: dict[str, Callable[[], Example]] = {
    "meta": meta,
    "pppca-ellipses": pppca_ellipses,
    "pppca-ellipses-dropouts": lambda: pppca_ellipses("masks", {"dropouts": 1}, 4),
    "least-squares-columns": lambda: learning_columns("least-squares-columns", penalty="l2", alpha=1.0),
    "lasso-columns": lambda: learning_columns("least-squares-columns", penalty="l1", alpha=0.5, tol=1e-8),
    "classifier-columns": lambda: learning_columns("classifier-columns"),
    "classifier-columns-held": lambda: learning_columns("classifier-columns", y_holder="hospital-2"),
    "kmeans-columns": lambda: learning_columns("kmeans-columns", n_clusters=2),
    "least-squares-encrypted": lambda: learning_columns("least-squares-encrypted", condition_bits=6),
    "least-squares-encrypted-held": lambda: learning_columns(
        "least-squares-encrypted", condition_bits=6, y_holder="hospital-1"
    ),
    "least-squares-encrypted-rows": encrypted_rows,
    "gradient-descent": descent,
    "gradient-descent-columns": lambda: learning_columns("gradient-descent", learning_rate=0.01, max_iter=5),
    "separate": separate,
    "privatelocal": privatelocal,
    "sfpca": sfpca,
    "sfpca-scores": sfpca_scores,
    "sfpca-standardised": sfpca_standardised,
    "sfpca-standardised-scores": sfpca_standardised_scores,
    "sfpca-paper": sfpca_paper,
    "sfpca-paper-columns": sfpca_paper_columns,
    "sfpca-paper-noise": sfpca_paper_noise,
    "sfpca-private": private_sfpca,
    "sfpca-private-pure": lambda: private_sfpca(delta=None, rows="clip"),
    "sfpca-columns": sfpca_columns,
    "sfpca-columns-consumer": sfpca_columns_consumer,
    "sfpca-columns-scores": sfpca_columns_scores,
    "sfpca-encrypted": sfpca_encrypted,
    "sfpca-threshold": lambda: sfpca(threshold=2),
    "sfpca-threshold-encrypted": lambda: sfpca_encrypted(threshold=2),
    "sfpca-later-threshold": lambda: sfpca_later_of_two(
        {"components": ("coordinator",), "scores": ("provider",)}
    ),
    "sfpca-later-open": lambda: sfpca_later({"components": ("provider", "coordinator")}),
    "sfpca-later-scores": lambda: sfpca_later({"scores": ("provider",)}),
    "sfpca-later-both": lambda: sfpca_later({"components": ("coordinator",), "scores": ("island-1",)}),
    **{
        f"{build.__name__}-{name}{''.join(f'-{k}' for k in options)}": (
            lambda build=build, name=name, options=options: build(name, options, 4)
        )
        for build in (pppca, summation)
        for name, options in SUMS
    },
    **{
        f"dpdpca-{name}{''.join(f'-{k}' for k in options)}": (
            lambda name=name, options=options: dpdpca(name, options)
        )
        for name, options in SUMS
        if options.get("encoding") != "exponent"
    },
    "glm": lambda: learning("glm"),
    "least-squares": lambda: learning("least-squares", "masks"),
    "classifier": lambda: learning("classifier", "lattice"),
    "describe": lambda: description(),
    "align": alignment,
    "synthesis": synthesis,
    "synthesis-latent": lambda: synthesis(secure_sum="lattice", decoder="latent-classes"),
    "synthesis-marginal": lambda: synthesis("marginal-synthesis"),
    "synthesis-published": published,
    "synthesis-pure": lambda: synthesis(secure_sum="masks", decoder="gaussian", delta=None, epsilon=20.0),
    "kmeans": lambda: learning("kmeans", "paillier", n_clusters=2),
    "sum-mediated": lambda: mediated(summation("mix")),
    "sum-mediated-elgamal": lambda: mediated(summation("mix", {"form": "elgamal", "parallel": True})),
    "pppca-mediated": lambda: mediated(pppca("mix", {"segments": 3})),
    "dpdpca-mediated": lambda: mediated(dpdpca("mix")),
    "dpdpca-clip": lambda: dpdpca(rows="clip", neighbours="replace"),
    "dpdpca-pure": lambda: dpdpca(delta=None, epsilon=20.0),
    "dpdpca-centred": lambda: dpdpca(assume_centered=True, noise="local"),
    "dpdpca-paper": lambda: dpdpca("paillier", calibration="paper"),
    "dpdpca-paper-free": lambda: dpdpca("paillier", calibration="paper", mask="free", noise="wishart"),
    "dpdpca-pairs": lambda: dpdpca(**PAIRS),
    "dpdpca-pairs-padded": lambda: with_capacities(dpdpca(**PAIRS, padded=True)),
    "dpdpca-pairs-replace": lambda: dpdpca("masks", {"dropouts": 1}, **PAIRS, neighbours="replace"),
    "dpdpca-pairs-pure": lambda: dpdpca("lattice", **PAIRS, delta=None, epsilon=20.0),
    "pppca-private": private_pppca,
    "pppca-prepared": prepared,
    "pppca-prepared-lattice": lambda: prepared(secure_sum="lattice"),
    "pppca-levels": lambda: prepared(plan=LOCAL_LEVELS),
    "sfpca-prepared": lambda: prepared("sfpca", ONLY_NUMBERS),
    "pppca-private-pairs": lambda: private_pppca(**PAIRS),
}
