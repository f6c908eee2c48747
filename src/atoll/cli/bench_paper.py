"""What ``atoll bench`` prints of the published form of SF-PCA: tables, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from atoll.cli import console

if TYPE_CHECKING:
    from atoll.bench.paper import Extrapolated, Operated, Point, Ran, Step
    from atoll.bench.slot_rates import Rates


def shown(rates: Rates) -> None:
    """All tables, each as soon as it is there."""
    from atoll.bench import paper

    _table2(paper.table2(rates))
    _table1(paper.table1(), *paper.KEYS)
    _figure5([paper.figure5_row(name, rates) for name in paper.SETTINGS])
    _points(paper.points(rates))


def as_json(rates: Rates, ran: Ran | None) -> None:
    """The same for programs."""
    from atoll.bench import paper

    console.print_json(
        {
            "table2": [row._asdict() for row in paper.table2(rates)],
            "table1": [row._asdict() for row in paper.table1()],
            "figure5": [paper.figure5_row(name, rates)._asdict() for name in paper.SETTINGS],
            "figures": [row._asdict() for row in paper.points(rates)],
            "run": None if ran is None else ran._asdict(),
        }
    )


def _said(*lines: str) -> None:
    for line in lines:
        console.out().print(line)
    console.out().print()


def _table2(rows: Iterable[Operated]) -> None:
    figures = ("CPU s", "paper s", "paper / ours")
    table = console.table("Table 2", *figures, right=figures, title="Operations at N = 2^14 (* counted)")
    for row in rows:
        name = f"{row.name} *" if row.extrapolated else row.name
        times = row.paper_seconds / row.seconds
        table.add_row(name, _short(row.seconds), _short(row.paper_seconds), _short(times))
    console.out().print(table)
    _said("Ours is processor time, the paper's elapsed on 24 threads, links included.")


def _table1(rows: Sequence[Step], keys: int, paper_keys: float) -> None:
    figures = ("sent", "paper", "refreshes", "ct x ct", "ct x pt", "rotations")
    table = console.table("step", *figures, right=figures, title="Table 1: ciphertexts, m 256, n_i 1,024")
    table.add_row("1 (keys)", str(keys), f"{paper_keys:g}", *("",) * 4)
    for row in rows:
        own = (row.refreshes, row.products, row.weighings, row.rotations)
        cells = (f"{row.ciphertexts:,}", f"{row.paper_ciphertexts:,.0f}", *(f"{one:,}" for one in own))
        table.add_row(row.name, *cells)
    console.out().print(table)
    _said("Sent by an island, with refreshes. Operations: its own and the coordinator's.")


def _figure5(rows: Sequence[Extrapolated]) -> None:
    figures = ("CPU h", "GB", "paper h", "fast s", "fast MB", "ratio")
    letters = "p,psi,alpha,w"
    table = console.table(
        "data", letters, "by", *figures, right=figures, title="Figure 5: extrapolated, not run"
    )
    for row in rows:
        table.add_row(
            f"{row.name}{' *' if row.times > 1 else ''}",
            row.letters,
            row.method,
            _short(row.processor_seconds / 3600),
            _short(row.island_gigabytes),
            f"{row.paper_seconds / 3600:.2f}",
            _short(row.fast_processor_seconds),
            _short(1000 * row.fast_island_gigabytes),
            f"{row.processor_seconds / row.fast_processor_seconds:,.0f}",
        )
    console.out().print(table)
    _said(
        "Counted operations times what each took above, of 6 islands and the coordinator",
        "together; bytes are sent by an island. The paper's hours are elapsed, on 6 x 12",
        "cores. Fast: CPU s that atoll review forecasts for variant 'fast'; ratio: to it.",
        "* more columns than a ciphertext has slots: a row takes several.",
    )


def _points(rows: Iterable[Point]) -> None:
    figures = ("island", "coord.", "GB", "relative")
    table = console.table(
        "figure",
        "what",
        "by",
        *figures,
        "paper",
        right=figures,
        title="Figures 3, 4, 7c: CPU min, extrapolated",
    )
    for row in rows:
        minutes = (_short(row.island_minutes), _short(row.coordinator_minutes))
        own = (*minutes, _short(row.island_gigabytes), f"x {row.relative:.3g}")
        table.add_row(row.figure, row.what, row.method, *own, row.paper)
    console.out().print(table)
    _said(
        "Base: p 10, psi 4, alpha 4, w 5. The paper's times are elapsed, mostly on links",
        "(90% at small sizes); here is processor time alone, and its ratio to the base.",
    )


def ran(row: Ran) -> None:
    """A run for real, and what was extrapolated for it."""
    figures = ("measured", "extrapolated", "ratio")
    table = console.table(f"{row.name}, encrypted", *figures, right=figures, title="Run for real")
    for name, found, due in (
        ("CPU s, all roles", row.processor_seconds, row.extrapolated_seconds),
        ("GB sent by an island", row.island_gigabytes, row.extrapolated_gigabytes),
    ):
        table.add_row(name, _short(found), _short(due), f"{found / due:.2f}")
    table.add_row("elapsed s, one process", _short(row.seconds), "", "")
    table.add_row("worst cosine", f"{min(row.cosines):.8f}", "", "")
    table.add_row("MSE", f"{row.squared_error:.1e}", "", "")
    console.out().print(table)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"
