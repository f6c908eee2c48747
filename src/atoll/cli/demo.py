"""``atoll demo``: the main job, on data that comes along."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.options import FLAG, JsonOption, QuietOption
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from rich.console import Console

    from atoll.cli.comparison import Agreement, Comparison
    from atoll.cli.outputs import Delivery
    from atoll.runtime.execute import Run


RESULTS = "results"
"""The folder of the recipients' folders, beside the study and the tables."""

_WORDS = {
    "columns": "column names",
    "n_samples": "n",
    "scores": "projections",
    "noise_variance": "mean variance of the rest",
}


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = Path("atoll-demo"),
    network: Annotated[
        bool,
        typer.Option("--network", metavar=FLAG, help="Between processes over a hub, one killed half-way."),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Three hospitals compute a joint PCA, and no number about one patient is sent.

    A rehearsal: all roles run here, in one process. Shows what each hospital
    learned. Compares the result with the PCA of all tables together, which
    nobody may make in real life, and with each hospital's own PCA. Writes
    study, data, results and plots into a folder.
    """
    from atoll.cli.comparison import compare
    from atoll.cli.hospitals import hospitals, write_study
    from atoll.cli.run import run_and_write, run_file
    from atoll.runtime.studies import open_study

    if as_json and quiet:
        raise ParameterError("--json and --quiet cannot be used together", hint="choose one of them")
    shown = not (as_json or quiet)
    if network:
        from atoll.cli.demo_network import demo_network

        summary = demo_network(output, shown=shown)
        if as_json:
            console.print_json(summary)
        return
    tables = hospitals()
    if shown:
        _introduce(tables, console.out())
    finished, delivered = run_and_write(
        output, lambda folder: run_file(open_study(write_study(folder)), shown=shown), RESULTS
    )
    comparison = compare(finished.result, tables)
    if as_json:
        console.print_json(_summary(finished, comparison, output, delivered))
    elif shown:
        _report(finished, comparison, output, delivered, console.out())


def _introduce(tables: dict[str, pd.DataFrame], screen: Console) -> None:
    from atoll.cli.hospitals import LABEL

    screen.print(
        "\n[bold]Three hospitals, one PCA.[/] 569 breast tumours with 30 measurements each lie in three "
        "hospitals that see different patients. They may not pool them. Here all roles run in one process, "
        "as a rehearsal: this machine has all three tables."
    )
    made = console.table(
        "hospital", "patients", "mean radius", "malignant", right=("patients", "mean radius", "malignant")
    )
    for name, table in tables.items():
        malignant = (table[LABEL] == "malignant").mean()
        made.add_row(name, str(len(table)), f"{table['mean radius'].mean():.1f}", f"{malignant:.0%}")
    screen.print()
    screen.print(made)
    screen.print()


def _report(
    finished: Run, comparison: Comparison, output: Path, delivered: Mapping[str, Delivery], screen: Console
) -> None:
    from atoll.report.analyses import renderer_of

    result = finished.result
    _show_learned(finished, screen)
    for table in renderer_of(result.study.analysis).tables(result):
        screen.print(console.drawn(table))
        screen.print()
    _show_agreement(comparison, screen)
    _show_cost(finished, comparison, screen)
    _show_next(output, delivered, screen)


def _show_learned(finished: Run, screen: Console) -> None:
    """What really arrived, role by role; parties that learned alike share a line."""
    made = console.table("role", "party", "was given", "also sees", title="What each learned")
    alike: dict[tuple[str, str, str], list[str]] = {}
    for address, learned in finished.learned.items():
        given, seen = _contents(learned.outputs), _contents(learned.inherent)
        alike.setdefault((address.role, given, seen), []).append(address.party)
    for (role, given, seen), names in alike.items():
        made.add_row(role, "\n".join(names), given, seen)
        made.add_row()
    screen.print(made)


def _contents(values: Mapping[str, Any]) -> str:
    said = [_content(name, value) for name, value in values.items() if value is not None]
    return ", ".join(said) or "nothing"


def _content(name: str, value: Any) -> str:
    import numpy as np

    words = _WORDS.get(name, name.replace("_", " "))
    if isinstance(value, dict):
        return f"{words} of {sum(len(part) for part in value.values())} patients"
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"{words} {'×'.join(str(n) for n in value.shape)}"
    return words


def _show_agreement(comparison: Comparison, screen: Console) -> None:
    names = [f"PC{i + 1}" for i in range(len(comparison.joint.cosines))]
    made = console.table(
        "",
        *names,
        "largest angle",
        right=(*names, "largest angle"),
        title="Agreement with PCA of the pooled table: |cosine| by component",
    )
    made.add_row("[bold green]Atoll, joint[/]", *_row(comparison.joint))
    for hospital, agreement in comparison.separate.items():
        made.add_row(f"{hospital} alone", *_row(agreement))
    screen.print(made)
    screen.print(
        "With the released components any row can be projected; the largest difference from the pooled PCA's "
        f"projections: {comparison.projections:.1e} of the largest one.\n"
    )


def _row(agreement: Agreement) -> list[str]:
    exact = agreement.angle < 0.01
    angle = f"{agreement.angle:.0e}°" if exact else f"{agreement.angle:.1f}°"
    return [*(f"{value:.4f}" for value in agreement.cosines), angle]


def _show_cost(finished: Run, comparison: Comparison, screen: Console) -> None:
    from atoll.report.units import size

    cost = finished.result.transcript
    made = console.table(
        "role", "parties", "messages", "bytes", right=("parties", "messages", "bytes"), title="Cost"
    )
    for role, row in cost.by_role().items():
        made.add_row(role, str(row["parties"]), f"{row['messages']:,}", size(row["bytes"]))
    made.add_row("[bold]all[/]", "", f"{cost.messages:,}", size(cost.bytes))
    screen.print(made)
    screen.print(
        f"{cost.rounds} rounds, {cost.wall_seconds:.2g} s in this process. The three tables hold "
        f"{size(comparison.table_bytes)}; no message had a row in it, or a number about one patient.\n"
    )


def _show_next(output: Path, delivered: Mapping[str, Delivery], screen: Console) -> None:
    from rich.markup import escape

    from atoll.cli.hospitals import STUDY_FILE
    from atoll.cli.run import show_delivered

    screen.print(f"[bold]Written to {escape(str(output))}/[/]")
    screen.print(f"{STUDY_FILE}, the hospitals' csv files, and for each of those who receive something:")
    show_delivered(output / RESULTS, delivered, screen)
    atoll, study = console.own_command(), shlex.quote(str(output / STUDY_FILE))
    screen.print("\n[bold]Go on with[/]")
    for command, why in (
        (f"{atoll} review {study}", "who learns what, in plain words"),
        (f"{atoll} review --markdown {study}", "the same, for an impact assessment"),
        (f"{atoll} run {study}", "run it yourself; edit it first"),
    ):
        screen.print(f"[dim]{why}[/]")
        screen.print(f"  [cyan]{escape(command)}[/]", soft_wrap=True)  # in one line, so that it can be copied
    screen.print()


def _summary(
    finished: Run, comparison: Comparison, output: Path, delivered: Mapping[str, Delivery]
) -> dict[str, Any]:
    from atoll.cli.hospitals import STUDY_FILE
    from atoll.cli.run import summary

    return {
        **summary(finished, output / RESULTS, delivered),
        "study_file": str(output / STUDY_FILE),
        "agreement": comparison.to_plain(),
    }
