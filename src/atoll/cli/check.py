"""``atoll check``: a study rehearsed on one machine: columns and types of the tables, rows made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from atoll.cli import console
from atoll.cli.options import JsonOption, StudyArgument

if TYPE_CHECKING:
    from atoll.data.columns import ColumnKind
    from atoll.data.island import Island
    from atoll.study.load import StudyFile


class _Side(NamedTuple):
    """One island as it is rehearsed."""

    party: str
    table: str
    """Where its columns and types come from."""
    schema: dict[str, ColumnKind]
    island: Island


def check(study: StudyArgument, as_json: JsonOption = False) -> None:
    """Rehearse a study: all roles in this process, on made-up rows.

    Reads names and types of columns, where \\[local] names tables, and uses no
    row. Nothing is booked and nothing written. A study that fails here would
    fail with the real rows, too.
    """
    from atoll.protocols.own import Own
    from atoll.runtime.execute import run_study
    from atoll.runtime.studies import open_study

    file = open_study(study)
    sides = _sides(file)
    result = run_study(file.study, {side.party: Own(side.island) for side in sides}).result
    cost = result.transcript
    columns = _agreed(result.outputs)
    if as_json:
        console.print_json(
            {
                "digest": file.study.digest,
                "messages": cost.messages,
                "bytes": cost.bytes,
                "rounds": cost.rounds,
                "released": sorted(result.outputs),
                "columns": columns,
                "islands": {
                    side.party: {name: kind.words for name, kind in side.schema.items()} for side in sides
                },
            }
        )
        return
    _show(file, sides, columns, (cost.messages, cost.bytes, cost.rounds))


def _sides(file: StudyFile) -> list[_Side]:
    from atoll.data.columns import column_kinds
    from atoll.runtime.rehearsal import existing, made_up, unknown_schema
    from atoll.runtime.studies import data_holders

    holders = data_holders(file.study)
    paths = {party: existing(file.local.data.get(party)) for party in holders}
    known = {party: column_kinds(path) for party, path in paths.items() if path is not None}
    first = next(iter(known), None)
    some = unknown_schema(file.study) if first is None else known[first]
    sides = []
    for party in holders:
        path = paths[party]
        where = path.name if path is not None else "made up" if first is None else f"as {first}'s"
        schema = known.get(party, some)
        sides.append(_Side(party, where, schema, made_up(file.study, party, schema)))
    return sides


def _agreed(outputs: Any) -> list[str]:
    return list(outputs.get("columns") or ())


def _show(file: StudyFile, sides: list[_Side], columns: list[str], cost: tuple[int, int, int]) -> None:
    from rich.markup import escape

    from atoll.report.units import size

    screen = console.out()
    messages, sent, rounds = cost
    made = console.table(
        "island", "table", "columns", "numbers", "others", right=("columns", "numbers"), title="Tables"
    )
    for side in sides:
        others = [f"{name} ({kind.words})" for name, kind in side.schema.items() if not kind.is_number]
        shown = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
        numbers = len(side.schema) - len(others)
        cells = (side.party, side.table, str(len(side.schema)), str(numbers), shown)
        made.add_row(*map(escape, cells))
    screen.print(made)
    if columns:
        shown = ", ".join(columns[:8]) + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
        screen.print(escape(f"All agreed on {len(columns)} columns: {shown}."))
    screen.print(f"[green]It works on made-up rows:[/] {messages:,} messages, {size(sent)}, {rounds} rounds.")
    screen.print("[dim]Names and types are the tables' own; no row was used, and nothing was written.[/]")
    screen.print(f"[dim]digest {file.study.digest}[/]", soft_wrap=True)
