"""``atoll doctor``: what this machine has of what Atoll needs, and the way to the hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import FLAG, JsonOption
from atoll.cli.sites import PassphraseOption, SiteOption, identity_of
from atoll.errors import MissingComponent, ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.runtime.doctor import Finding

_MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[bold red]problem[/]"}
HubOption = Annotated[
    str | None,
    typer.Option(
        "--hub",
        metavar="INVITATION",
        help="Look at the way to this hub, before joining it: its invitation, or its address.",
        show_default=False,
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", metavar=FLAG, help="Leave the network alone.", show_default=False)
]


def doctor(
    site: SiteOption = None,
    hub: HubOption = None,
    local: LocalOption = False,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look whether everything works on this machine, and say what to do.

    Looks at the core library, the processor, the calibration of forecasts,
    readers of files, and how long the disk takes. Where this site has joined a
    hub, also at the way there: name, port, certificate and who signed it,
    login, limits, clock, versions, delay and speed. Changes nothing. Ends with
    7 if something that Atoll offers does not work here.
    """
    import msgspec

    from atoll.runtime.doctor import findings

    found = list(findings())
    if not local:
        found += _network(site, hub, passphrase_file)
    if as_json:
        console.print_json([msgspec.to_builtins(one) for one in found])
    else:
        show(found, console.out())
    if any(one.state == "problem" for one in found):
        raise typer.Exit(MissingComponent.exit_code)


def _network(site: Path | None, hub: str | None, passphrase_file: Path | None) -> list[Finding]:
    import asyncio

    from atoll.runtime.nats.doctor import examine, examine_invitation
    from atoll.runtime.nats.invitations import PREFIX
    from atoll.runtime.nats.site import Site

    if hub is not None and "".join(hub.split()).lower().startswith(PREFIX):
        return asyncio.run(examine_invitation(hub))
    if hub is not None:
        return asyncio.run(examine(hub))
    try:
        at = Site(site)
        way = at.hub()
    except ParameterError:
        if site is not None:
            raise
        return []  # no site, or one that has not joined a hub: there is no way to look at
    identity, _ = identity_of(at, passphrase_file)
    return asyncio.run(examine(way.url, identity, way.ca))


def show(found: list[Finding], screen: Console) -> None:
    """One line for each finding, and its remedy below."""
    from rich.markup import escape

    made = console.table("", "", "")
    made.show_header = False
    for one in found:
        lines = [escape(one.detail)]
        if one.remedy:
            lines.append(f"[cyan]remedy:[/] {escape(one.remedy)}")
        made.add_row(one.name, _MARKS[one.state], "\n".join(lines))
    screen.print(made)
