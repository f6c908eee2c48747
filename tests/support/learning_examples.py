"""One small study for each protocol that learns, and for alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from tests.support.example_tables import Example, cut_frame, table

from atoll.data.island import as_island, as_islands
from atoll.estimators.base import parties
from atoll.study.model import Study


def learning(
    protocol: str, secure_sum: str = "shares", sum_options: dict[str, Any] | None = None, **parameters: Any
) -> Example:
    """Three numbers explain a fourth column, or its classes."""
    X = table(60)
    frame = pd.DataFrame(X, columns=["age", "dose", "weight", "stay"])
    frame["outcome"] = np.where(X[:, 0] + np.sin(np.arange(60.0)) > 0, "well", "ill")
    islands = as_islands({f"hospital-{i}": part for i, part in enumerate(cut_frame(frame, 4))})
    target = {"classifier": "outcome", "kmeans": None}.get(protocol, "stay")
    columns = ("age", "dose", "weight") if target else ("age", "dose", "weight", "stay")
    study = Study(
        name="example",
        protocol=protocol,
        analysis={"classifier": "classification", "kmeans": "clusters"}.get(protocol, "regression"),
        secure_sum=secure_sum,
        sum_options=sum_options or {},
        parties=parties(islands, "provider", "server", "consumer"),
        parameters={"columns": columns, **({"target": target} if target else {}), **parameters},
        release={
            "model": ("provider", "consumer"),
            "fit": ("consumer",),
            "n_samples": ("provider", "consumer"),
        },
    )
    return Example(study, islands)


def description() -> Example:
    example = learning("kmeans")
    study = structs.replace(
        example.study,
        protocol="describe",
        analysis="description",
        parameters={
            "columns": ("age", "dose", "weight", "outcome"),
            "categorical": ("outcome",),
            "levels": {"outcome": ("ill", "well")},
            "ranges": {"age": (-10.0, 10.0)},
        },
        release={"description": ("provider", "consumer")},
    )
    return Example(study, example.islands)


def alignment(n_islands: int = 3) -> Example:
    """People that islands know under ids written in several ways; each knows some that another does not."""
    islands = as_islands(
        {
            f"clinic-{i}": pd.DataFrame(
                {
                    "person": [f" P{n:03d}" for n in range(i, 30 + 5 * i)][::-1],
                    f"x{i}": np.arange(30.0 + 4 * i),
                }
            )
            for i in range(n_islands)
        }
    )
    study = Study(
        name="example",
        protocol="align",
        analysis="alignment",
        partition="vertical",
        parties=parties(islands, "provider", "matcher"),
        parameters={"on": "person", "normalise": ("trim", "case")},
        release={"rows": ("provider",), "order": ("provider", "matcher")},
    )
    return Example(study, islands)


def learning_columns(protocol: str, **parameters: Any) -> Example:
    """Three islands with columns of the same rows; the model to a consumer and one provider."""
    X = table(60)
    frame = pd.DataFrame(X, columns=["age", "dose", "weight", "stay"])
    clusters = protocol == "kmeans-columns"
    explained = "outcome" if protocol == "classifier-columns" else "stay"
    target = (
        np.where(X[:, 0] + np.sin(np.arange(60.0)) > 0, "well", "ill") if explained == "outcome" else X[:, 3]
    )
    holder = parameters.get("y_holder")
    tables = {}
    for i, name in enumerate(("age", "dose", "weight")):
        tables[f"hospital-{i}"] = frame[[name, "stay"]] if clusters and i == 2 else frame[[name]]
        if not clusters and holder in (None, f"hospital-{i}"):
            tables[f"hospital-{i}"] = tables[f"hospital-{i}"].assign(**{explained: target})
    islands = as_islands(tables)
    said: dict[str, Any] = {} if clusters else {"target": explained}
    if protocol != "least-squares-encrypted":
        said["accept_scores"] = True
    release: dict[str, tuple[str, ...]] = {"part": ("provider",), "model": ("consumer", "hospital-1")}
    release["n_samples"] = ("provider", "consumer")
    if protocol != "least-squares-encrypted":
        release["fit"] = ("consumer",)
    study = Study(
        name="example",
        protocol=protocol,
        partition="vertical",
        analysis={"classifier-columns": "classification", "kmeans-columns": "clusters"}.get(
            protocol, "regression"
        ),
        parties=parties(islands, "provider", "server", "consumer"),
        parameters=said | parameters,
        release=release,
    )
    return Example(study, islands)


def descent(**parameters: Any) -> Example:
    """Algorithm 1."""
    example = learning("gradient-descent", learning_rate=0.01, max_iter=6, **parameters)
    release = {**example.study.release, "model": ("consumer",)}
    islands = {
        name: as_island(name, island.frame()[["age", "dose", "weight", "stay"]])
        for name, island in example.islands.items()
    }
    return Example(structs.replace(example.study, release=release), islands)


def encrypted_rows(**parameters: Any) -> Example:
    """Least squares of which coefficients alone are opened, to the consumer and one provider."""
    example = learning("least-squares-encrypted-rows", condition_bits=12, **parameters)
    release = {"model": ("consumer", "hospital-1"), "n_samples": ("provider", "consumer")}
    return Example(structs.replace(example.study, release=release), example.islands)
