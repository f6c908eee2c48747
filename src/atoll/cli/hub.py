"""``atoll hub``: the server through which parties reach each other, and who is let in."""

from __future__ import annotations

import contextlib
import datetime
import logging
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption
from atoll.lazy import lazy

if TYPE_CHECKING:
    import asyncio

    from atoll.runtime.nats.hub_config import HubFolder
    from atoll.runtime.nats.hub_status import HubStatus
else:
    asyncio = lazy("asyncio")

app = typer.Typer(
    cls=Group, help="Run the hub through which parties reach each other, and say who is let in."
)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="DIR", help="The hub's folder, if not the usual one.", show_default=False
    ),
]
WhoArgument = Annotated[
    str,
    typer.Argument(metavar="WHO", help="A name, a fingerprint or an invitation's name.", show_default=False),
]


def _pem(name: str, words: str) -> Any:
    return typer.Option(name, metavar="PEM", help=words, show_default=False)


def _text(name: str, metavar: str, words: str) -> Any:
    return typer.Option(name, metavar=metavar, help=words, show_default=False)


@app.command(cls=Command)
def init(
    name: Annotated[str, typer.Argument(metavar="HOST", help="How parties reach it.", show_default=False)],
    folder: FolderOption = None,
    listen: Annotated[str, typer.Option("--listen", metavar="ADDRESS", help="Where to listen.")] = "0.0.0.0",
    port: Annotated[int, typer.Option("--port", metavar="NUMBER", help="The one port it needs.")] = 4222,
    web_port: Annotated[
        int, typer.Option("--web-port", metavar="NUMBER", help="Also wss:// on this port; 0 for not.")
    ] = 0,
    certificate: Annotated[Path | None, _pem("--certificate", "Use this certificate.")] = None,
    key: Annotated[Path | None, _pem("--key", "The certificate's key.")] = None,
    authority: Annotated[
        Path | None, _pem("--authority", "Who signed it, where parties' systems do not know.")
    ] = None,
    server: Annotated[str, _text("--server", "URL", "Use a NATS server of yours.")] = "",
    reload: Annotated[str, _text("--reload", "COMMAND", "How that server reads its accounts again.")] = "",
) -> None:
    """Make a hub. This is done once."""
    from atoll.errors import ParameterError
    from atoll.runtime.nats import connection, hub
    from atoll.runtime.nats.hub_config import HubSettings

    if (certificate is None) != (key is None):
        raise ParameterError("--certificate and --key belong together", option="key")
    if server:
        connection.split_url(server)
    for number in (port, web_port):
        if not 0 <= number < 65536:
            raise ParameterError(f"{number} is not a port", option="port")
    pems = [str(one.absolute()) if one else "" for one in (certificate, key, authority)]
    settings = HubSettings(
        name=name,
        listen=listen,
        port=port,
        web_port=web_port,
        certificate=pems[0],
        key=pems[1],
        authority=pems[2],
        server=server,
        reload=tuple(shlex.split(reload)),
    )
    made = hub.make(folder or _usual(), settings)
    console.out().print(f"made {made.folder}", soft_wrap=True)
    option = f" --folder {made.folder}" if folder else ""
    first = f"atoll hub config{option}" if server else f"atoll hub up{option}"
    console.err().print(f"next: {first}, and for each party: atoll hub invite NAME{option}", soft_wrap=True)


@app.command(cls=Command)
def up(folder: FolderOption = None) -> None:
    """Run the hub until it is stopped."""
    from atoll.runtime.nats import hub

    opened = _opened(folder)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    console.err().print(f"the hub is at {opened.settings.url}; Ctrl-C stops it", soft_wrap=True)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_until_stopped(hub.RunningHub(opened)))


async def _until_stopped(running: Any) -> None:
    task = asyncio.ensure_future(running.run())
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, task.cancel)
    await task


@app.command(cls=Command)
def invite(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the party is called.", show_default=False)
    ],
    days: Annotated[float, typer.Option("--days", metavar="NUMBER", help="How long it may be used.")] = 7,
    party_days: Annotated[
        float, typer.Option("--party-days", metavar="NUMBER", help="How long the party stays; 0 for always.")
    ] = 0,
    wss: Annotated[
        bool, typer.Option("--wss", metavar=FLAG, help="By wss://, for sites behind a proxy.")
    ] = False,
    folder: FolderOption = None,
) -> None:
    """Print an invitation, which one party redeems once: atoll node join INVITATION."""
    from atoll.runtime.nats import hub

    opened = _opened(folder)
    made = hub.invite(opened, name, days=days, party_days=party_days, web=wss)
    told = hub.reload(opened)
    print(made)
    console.err().print(
        f"send it to {name} alone; it can be used once, until {_when(made.expires)}",
        markup=False,
        soft_wrap=True,
    )
    if not told:
        console.print_warning(
            "the server was not told: have it read accounts.conf again"
            if opened.settings.server
            else "the hub does not run; the invitation works once it does"
        )


@app.command(cls=Command)
def revoke(who: WhoArgument, folder: FolderOption = None) -> None:
    """Shut a party out for good, or withdraw an invitation."""
    from atoll.runtime.nats import hub

    opened = _opened(folder)
    done = hub.revoke(opened, who)
    told = hub.reload(opened)
    console.out().print(f"{done}: {who}", markup=False, soft_wrap=True)
    if not told and opened.settings.server:
        console.print_warning("the server was not told: have it read accounts.conf again")


@app.command(cls=Command)
def renew(folder: FolderOption = None) -> None:
    """Renew the server's certificate now. A running hub does so by itself."""
    from atoll.runtime.nats import hub

    opened = _opened(folder)
    console.out().print(
        "renewed" if hub.renew(opened, always=True) else "this hub has no certificate of its own"
    )
    hub.reload(opened)


@app.command(cls=Command)
def config(folder: FolderOption = None) -> None:
    """Print the accounts that a NATS server of yours needs."""
    print(_opened(folder).path("accounts.conf").read_text(), end="")


@app.command(cls=Command)
def streams(folder: FolderOption = None) -> None:
    """Make the inboxes that are missing on a NATS server of yours, and end."""
    from atoll.runtime.nats import hub

    made = asyncio.run(hub.make_inboxes(_opened(folder)))
    console.out().print(f"made {made} inbox(es)")


@app.command(cls=Command)
def status(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show who is at the hub, who is connected and what waits for whom."""
    from dataclasses import asdict

    from atoll.runtime.nats import hub_status

    now = asyncio.run(hub_status.status(_opened(folder)))
    if as_json:
        console.print_json(asdict(now))
        return
    _print_status(now)


def _print_status(now: HubStatus) -> None:
    from rich.markup import escape

    out = console.out()
    addresses = " and ".join(one for one in (now.url, now.web_url) if one)
    state = f"runs (nats-server {now.server})" if now.runs else f"does not run: {now.trouble}"
    out.print(f"{addresses}: {state}", markup=False, soft_wrap=True)
    if now.certificate_days is not None:
        out.print(f"certificate: {now.certificate_days:.0f} days left")
    right = ("connections", "waiting", "bytes")
    made = console.table("party", "fingerprint", *right, "until", right=right)
    for one in now.parties:
        shown = [
            "-" if x is None else str(x) for x in (one.connections, one.waiting_frames, one.waiting_bytes)
        ]
        until = _when(one.expires) if one.expires else ""
        made.add_row(escape(one.name), one.fingerprint[:16], *shown, until)
    out.print(made if now.parties else "no party has joined")
    for name, invitation, expires in now.invitations:
        out.print(f"invited: {name} ({invitation}), until {_when(expires)}", markup=False, soft_wrap=True)
    if now.revoked:
        out.print(f"{now.revoked} revoked")


def _when(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _usual() -> Path:
    from atoll.runtime.nats.site import site_folder

    return site_folder() / "hub"


def _opened(folder: Path | None) -> HubFolder:
    from atoll.runtime.nats.hub_config import HubFolder

    return HubFolder(folder or _usual())
