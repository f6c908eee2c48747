"""``atoll bench``: speed and bytes on this machine, as ratios measured in one run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption

if TYPE_CHECKING:
    from atoll.bench.sfpca import Row as SfpcaRow
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

    Seconds of the whole run with all roles in this process, of the steps of the busiest island,
    and bytes. Whether the sum came out exactly is checked each time.
    """
    from atoll.bench.sums import bench_sums

    n_values = features * (features + 1) // 2
    rows = bench_sums(n_values, islands)
    if as_json:
        console.print_json([row._asdict() for row in rows])
    else:
        _show(rows, f"{n_values:,} sums over {islands} islands")


@app.command()
def sfpca(
    cases: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE]...", help="pima, wine, vehicle, chr20, mnist; all that are there."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder with the data sets; else $ATOLL_DATA.", show_default=False),
    ] = None,
    islands: Annotated[int, typer.Option("--islands", min=2, max=50, help="How many islands.")] = 6,
    as_json: JsonOption = False,
) -> None:
    """SF-PCA on the data sets of its paper, over emulated links of 20 ms and 1 Gbit/s.

    Seconds, processor seconds of all roles together, bytes sent by an island, rounds, the worst cosine
    of a component with the exact one, and the paper's seconds beside them.
    """
    from atoll.bench.sfpca import bench_case, chosen, data_folder

    folder = data_folder(data)
    rows = [bench_case(name, folder, islands) for name in chosen(cases or [], folder)]
    if as_json:
        console.print_json([row._asdict() for row in rows])
    else:
        _show_sfpca(rows, f"SF-PCA, {islands} islands in one process, links of 20 ms and 1 Gbit/s")


def _show_sfpca(rows: list[SfpcaRow], title: str) -> None:
    figures = ("size", "k", "seconds", "CPU s", "MB/island", "rounds", "worst cosine", "MSE", "paper s")
    others = ("C-HE s", "SMC s")
    table = console.table("data", *figures, *others, right=(*figures, *others), title=title)
    for row in rows:
        cells = [
            f"{row.rows:,} x {row.columns:,}",
            str(row.components),
            f"{row.seconds:.1f}",
            f"{row.processor_seconds:.1f}",
            f"{row.island_bytes / 1e6:.0f}",
            str(row.rounds),
            f"{min(row.cosines):.8f}",
            f"{row.squared_error:.1e}",
            f"{row.paper_seconds:,.0f}",
            f">{row.centralised_seconds:,.0f}",
            f"{row.sharing_seconds:,.0f}",
        ]
        table.add_row(row.name, *cells)
    console.out().print(table)


def _show(rows: list[Row], title: str) -> None:
    figures_of = ("seconds", "x fastest", "key s", "island s", "MB/island", "MB in all", "exact")
    table = console.table("method", *figures_of, right=figures_of, title=title)
    fastest = min((row.seconds for row in rows if not math.isnan(row.seconds)), default=math.nan)
    for row in rows:
        if row.note:
            table.add_row(f"{row.method} [dim]({row.note})[/]")
            continue
        figures = (row.seconds, row.seconds / fastest, row.key_seconds, row.island_seconds)
        megabytes = (row.island_bytes / 1e6, row.total_bytes / 1e6)
        cells = [f"{figure:.3g}" for figure in (*figures, *megabytes)]
        table.add_row(row.method, *cells, "yes" if row.exact else "[bold red]NO[/]")
    console.out().print(table)
