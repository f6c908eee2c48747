"""Packages of strangers: installed in a folder, found by their entry points, and forgotten afterwards."""

from __future__ import annotations

import tomllib
from pathlib import Path

from atoll.data.readers import READERS
from atoll.estimators.pca.registry import ADAPTERS
from atoll.protocols import PROTOCOLS
from atoll.registry import Registry
from atoll.report.analyses import RENDERERS
from atoll.runtime.engines import ENGINES
from atoll.secure_sums import METHODS

REGISTRIES: tuple[Registry[object], ...] = (METHODS, PROTOCOLS, READERS, ENGINES, ADAPTERS, RENDERERS)  # type: ignore[assignment]


def install(folder: Path, package: str, entry_points: str) -> None:
    """What an installer writes beside a package."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def install_project(file: Path) -> None:
    """What an installer makes of a pyproject.toml, beside it."""
    project = tomllib.loads(file.read_text())["project"]
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    install(file.parent, project["name"], "\n".join(groups))


def forget_strangers() -> None:
    """Drop whatever was loaded from packages."""
    for registry in REGISTRIES:
        for name in set(registry._loaded) - set(registry._built_in):
            del registry._loaded[name]
