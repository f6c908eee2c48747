"""A small study for the commands to work on."""

from __future__ import annotations

from pathlib import Path

STUDY = """\
[study]
name = "north south/.."
protocol = "pppca"
[parameters]
n_components = 2
label = "kind"
accept_determined = true
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
role = "server"
[[party]]
name = "lab"
role = "consumer"
[release]
components = ["provider", "consumer"]
explained_variance = ["consumer"]
scores = ["consumer"]
[local]
data = { north = "north.csv", south = "south.parquet" }
"""


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
