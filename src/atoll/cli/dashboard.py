"""``atoll dashboard``: a local page over this site's node."""

from __future__ import annotations

from typing import Annotated

import typer

from atoll.cli import console
from atoll.cli.sites import SiteOption, opened


def dashboard(
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Where to listen; 0 takes a free port."),
    ] = 0,
    site: SiteOption = None,
) -> None:
    """Look at this site's studies in a browser, and approve or decline them.

    Prints the address of a page that only this machine can open. The address
    holds a key, new at every start: whoever has it can decide for this site, so
    keep it to yourself. The page shows the site's folder; the node is another
    command (atoll node run). Stop it with Ctrl-C: runs go on.
    """
    from atoll.web.serve import serve

    at = opened(site)

    def tell(address: str) -> None:
        console.out().print(f"open this page: {address}", soft_wrap=True, highlight=False)
        console.out().file.flush()

    serve(at, port, tell)
