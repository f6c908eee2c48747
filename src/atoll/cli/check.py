"""``atoll check``: a study rehearsed on one machine, on rows that nobody has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from atoll.cli import console
from atoll.cli.options import JsonOption, StudyArgument

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.study.load import StudyFile


def check(study: StudyArgument, as_json: JsonOption = False) -> None:
    """Rehearse a study: all roles in this process, on made-up rows.

    Reads the names of columns, where \\[local] names tables, and no row. Nothing
    is booked and nothing written. A study that fails here would fail with the
    real rows, too.
    """
    from atoll.protocols.own import Own
    from atoll.report.units import size
    from atoll.runtime.execute import run_study
    from atoll.runtime.studies import open_study

    file = open_study(study)
    own = {party: Own(island) for party, island in _made_up(file).items()}
    result = run_study(file.study, own).result
    cost = result.transcript
    if as_json:
        console.print_json(
            {
                "digest": file.study.digest,
                "messages": cost.messages,
                "bytes": cost.bytes,
                "rounds": cost.rounds,
                "released": sorted(result.outputs),
            }
        )
        return
    screen = console.out()
    screen.print(
        f"[green]It works on made-up rows:[/] {cost.messages:,} messages, {size(cost.bytes)}, ", end=""
    )
    screen.print(f"{cost.rounds} rounds.")
    screen.print(f"[dim]digest {file.study.digest}[/]", soft_wrap=True)


def _made_up(file: StudyFile) -> dict[str, Island]:
    from atoll.data.columns import column_names
    from atoll.runtime.nats.owned import made_up
    from atoll.runtime.studies import data_holders

    holders = data_holders(file.study)
    named = {party: Path(file.local.data[party]) for party in holders if party in file.local.data}
    known = {party: tuple(column_names(path)) for party, path in named.items()}
    some = next(iter(known.values()), tuple(f"x{i}" for i in range(8)))
    return {party: made_up(file.study, party, known.get(party, some)) for party in holders}
