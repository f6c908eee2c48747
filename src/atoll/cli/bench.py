"""``atoll bench``: speed and bytes on this machine, as ratios measured in one run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.bench import FIGURE5, PAPER
from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption

if TYPE_CHECKING:
    from atoll.bench.figure5 import Row as PublishedRow
    from atoll.bench.sums import Row
    from atoll.secret_matrices.costs.rates import Rates

app = typer.Typer(cls=Group, help="Measure time and bytes on this machine.")


@app.command(cls=Command)
def sums(
    features: Annotated[
        int,
        typer.Option(
            "--features", metavar="N", min=1, help="Each island adds half a matrix of N x N numbers."
        ),
    ] = 90,
    islands: Annotated[int, typer.Option("--islands", metavar="N", min=2, help="How many islands add.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure every secure sum on the same vectors.

    Shows the seconds of the whole run with all roles in this process, the
    seconds of the busiest island, and the bytes. Each time it is checked
    that the sum is exact.
    """
    from atoll.bench.sums import bench_sums

    n_values = features * (features + 1) // 2
    rows = bench_sums(n_values, islands)
    if as_json:
        console.print_json([row._asdict() for row in rows])
    else:
        _show(rows, f"{n_values:,} sums over {islands} islands")


@app.command(FIGURE5, cls=Command)
def figure5(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CASE",
            help="pima, wine, vehicle, chr20, mnist, lung or lung9098. Else all of Figure 5 that are there.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FOLDER", help="Where the data sets are. Else $ATOLL_DATA.", show_default=False
        ),
    ] = None,
    islands: Annotated[
        int, typer.Option("--islands", metavar="N", min=2, max=50, help="How many islands.")
    ] = 6,
    steps: Annotated[
        bool, typer.Option("--steps", metavar=FLAG, help="Print the seconds of every step, too.")
    ] = False,
    components: Annotated[
        bool, typer.Option("--components", metavar=FLAG, help="Print every component's cosine, too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure SF-PCA on the data sets of its paper.

    Links have 20 ms and 1 Gbit/s. Shows seconds, processor seconds of all
    roles together, bytes sent by an island, and rounds. Then, how close the
    components are to the exact ones: the worst cosine and the mean squared
    error. Beside them stand those of a meta-analysis, and the paper's.
    """
    from atoll.bench.figure5 import bench_case, chosen, data_folder

    folder = data_folder(data)
    rows = [bench_case(name, folder, islands) for name in chosen(cases or [], folder)]
    if as_json:
        console.print_json([row._asdict() for row in rows])
        return
    _show_published(rows, f"SF-PCA, {islands} islands in one process, links of 20 ms and 1 Gbit/s")
    if components:
        _show_components(rows)
    if steps:
        _show_steps(rows)


@app.command(PAPER, cls=Command)
def published_routines(
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="CASE",
            help="Run pima, wine, vehicle, chr20 or mnist for real: minutes to hours.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="Where the data sets are, for --run. Else $ATOLL_DATA.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the SF-PCA paper's own routines, beside its numbers.

    Operations are measured one by one at the paper's ring degree. What its
    routines and whole runs take is counted on shapes, and extrapolated: no
    data are needed. Takes about a minute, and is best done while nothing
    else runs.
    """
    from atoll.bench import paper
    from atoll.bench.slot_rates import measured
    from atoll.cli import bench_paper

    table = None if run is None else paper.table_of(run, data)
    rates = measured()
    if not as_json:
        bench_paper.shown(rates)
    ran = None if run is None or table is None else paper.run(run, table, rates)
    if as_json:
        bench_paper.as_json(rates, ran)
    elif ran is not None:
        bench_paper.ran(ran)


@app.command(cls=Command)
def calibrate(as_json: JsonOption = False) -> None:
    """Measure the steps of SF-PCA, so that atoll review can predict times.

    This takes some seconds, and is best done while nothing else runs. The
    figures are kept in the user's data folder, or in the file that
    $ATOLL_CALIBRATION names: one table for each vector path
    ($ATOLL_VECTOR chooses the path).
    """
    import msgspec

    from atoll.bench.calibrate import calibrate as measure
    from atoll.secret_matrices.costs.rates import store

    rates = measure()
    path = store(rates)
    if as_json:
        console.print_json(msgspec.to_builtins(rates))
    else:
        _show_rates(rates)
        console.out().print(f"kept in {path}", soft_wrap=True)


def _show_rates(rates: Rates) -> None:
    import msgspec

    names = tuple(rates.rings)
    title = f"Processor microseconds: per polynomial + per 1,000 entries (vector path: {rates.path})"
    table = console.table("step", *names, right=names, title=title)
    rings = {name: msgspec.structs.asdict(ring) for name, ring in rates.rings.items()}
    for step in rings[names[0]]:
        table.add_row(step, *(_rate(rings[name][step], step in ("share", "clear")) for name in names))
    console.out().print(table)
    console.out().print()
    table = console.table("step", "microseconds", right=("microseconds",), title="Everything else")
    for step, rate in msgspec.structs.asdict(rates.python).items():
        table.add_row(step.replace("_", " "), _rate(rate))
    console.out().print(table)


def _rate(rate: float | tuple[float, float], entries: bool = False) -> str:
    if isinstance(rate, tuple):
        return f"{1e6 * rate[0]:.4g} + {1e9 * rate[1]:.3g}"
    return f"+ {1e9 * rate:.3g}" if entries else f"{1e6 * rate:.4g}"


def _show_published(rows: list[PublishedRow], title: str) -> None:
    cost = ("size", "k", "seconds", "CPU s", "MB/island", "rounds", "paper s", "C-HE s", "SMC s")
    table = console.table("data", *cost, right=cost, title=title)
    for row in rows:
        cells = [
            f"{row.rows:,} x {row.columns:,}",
            str(row.components),
            f"{row.seconds:.1f}",
            f"{row.processor_seconds:.1f}",
            f"{row.island_bytes / 1e6:.0f}",
            str(row.rounds),
            f"{row.paper_seconds:,.0f}",
            f">{row.centralised_seconds:,.0f}",
            f"{row.sharing_seconds:,.0f}",
        ]
        table.add_row(row.name, *cells)
    console.out().print(table)
    console.out().print()
    accuracy = ("worst cosine", "MSE", "certified", "meta cosine", "meta MSE")
    paper = ("paper r²; MSE", "its meta r²; MSE")
    table = console.table("data", *accuracy, *paper, right=(*accuracy, *paper), title="Accuracy")
    for row in rows:
        cells = [
            f"{min(row.cosines):.8f}",
            f"{row.squared_error:.1e}",
            f"{row.certified:.1e}",
            f"{min(row.meta_cosines):.6f}",
            f"{row.meta_squared_error:.1e}",
            row.paper_accuracy,
            row.paper_meta_accuracy,
        ]
        table.add_row(row.name, *cells)
    console.out().print(table)


def _show_components(rows: list[PublishedRow]) -> None:
    console.out().print()
    table = console.table("data", "cosine with the exact component, one after the other")
    for row in rows:
        table.add_row(row.name, " ".join(f"{cosine:.8f}" for cosine in row.cosines))
    console.out().print(table)


def _show_steps(rows: list[PublishedRow]) -> None:
    from atoll.report.steps import plain

    console.out().print()
    names = sorted({name for row in rows for name in row.steps}, key=lambda n: -rows[-1].steps.get(n, 0.0))
    data = tuple(row.name for row in rows)
    table = console.table("step", *data, right=data, title="Seconds, all roles")
    for name in names:
        table.add_row(plain(name), *(f"{row.steps.get(name, 0.0):.2f}" for row in rows))
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
