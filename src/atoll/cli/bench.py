"""``atoll bench``: speed and bytes on this machine, as ratios measured in one run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption

if TYPE_CHECKING:
    from atoll.bench.sums import Row

app = typer.Typer(no_args_is_help=True, help="Measure speed and bytes on this machine.")


@app.command()
def sums(
    features: Annotated[
        int, typer.Option("--features", min=1, help="Add the upper triangles of matrices of this size.")
    ] = 90,
    islands: Annotated[int, typer.Option("--islands", min=2, help="How many islands add.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Every secure sum side by side on the same vectors.

    Seconds of the whole run with all roles in this process, the processor time of the busiest island,
    and bytes. Whether the sum came out exactly is checked each time.
    """
    from atoll.bench.sums import bench_sums

    n_values = features * (features + 1) // 2
    rows = bench_sums(n_values, islands)
    if as_json:
        console.print_json([row._asdict() for row in rows])
    else:
        _show(rows, f"{n_values:,} sums over {islands} islands")


def _show(rows: list[Row], title: str) -> None:
    figures_of = ("seconds", "x fastest", "key s", "island CPU s", "MB/island", "MB in all", "exact")
    table = console.table("method", *figures_of, right=figures_of, title=title)
    fastest = min((row.seconds for row in rows if not math.isnan(row.seconds)), default=math.nan)
    for row in rows:
        if row.note:
            table.add_row(f"{row.method} [dim]({row.note})[/]")
            continue
        figures = (row.seconds, row.seconds / fastest, row.key_seconds, row.island_cpu)
        megabytes = (row.island_bytes / 1e6, row.total_bytes / 1e6)
        cells = [f"{figure:.3g}" for figure in (*figures, *megabytes)]
        table.add_row(row.method, *cells, "yes" if row.exact else "[bold red]NO[/]")
    console.out().print(table)
