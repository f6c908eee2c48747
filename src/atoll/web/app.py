"""Which address shows or does what. Everything that changes something is a form's POST, and asks the node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from atoll.errors import AtollError, ParameterError
from atoll.runtime.doctor import Finding, findings
from atoll.runtime.nats.doctor import examine
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder, find_run
from atoll.runtime.nats.site import Site
from atoll.runtime.nats.submit import asked
from atoll.web import pages, views
from atoll.web.guard import Guard
from atoll.web.reports import report_of

EVERY: Final = 0.5
"""Seconds between two looks at the folder."""
ALIVE: Final = 15.0
"""Seconds after which a word is sent that says nothing: a browser that is gone is noticed."""
_LONGEST_FORM: Final = 64_000
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_REPORT_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
)
"""A report runs in an origin of its own: whatever stands in it, it cannot press a button of this page."""


def make_app(site: Site, token: str, host: str) -> Guard:
    """The application for one site, behind its guard."""
    board = Board(site, f"/{token}")
    routes = [
        Route("/", board.index),
        Route("/events", board.events),
        Route("/doctor", board.doctor),
        Route("/runs/{name}", board.run),
        Route("/runs/{name}/report", board.report),
        Route("/runs/{name}/receipt", board.receipt),
        Route("/runs/{name}/decision", board.decide, methods=["POST"]),
        Route("/static/{name}", board.static),
    ]
    app = Starlette(routes=routes, exception_handlers={AtollError: board.refused})
    return Guard(app, token, host)


class Board:
    """The pages of one site."""

    def __init__(self, site: Site, base: str) -> None:
        self._site = site
        self._base = base

    async def index(self, _: Asked) -> Response:
        shown = await run_in_threadpool(views.overview, self._site)
        return HTMLResponse(pages.index(self._base, shown))

    async def run(self, request: Asked) -> Response:
        folder = self._folder(request)
        reviewed = await run_in_threadpool(views.reviewed, self._site, folder)
        return HTMLResponse(pages.run(self._base, reviewed))

    async def receipt(self, request: Asked) -> Response:
        part = await run_in_threadpool(views.receipt_section, self._folder(request))
        return HTMLResponse(pages.section(self._base, part))

    async def report(self, request: Asked) -> Response:
        own = request.query_params.get("own") == "yes"
        page = await run_in_threadpool(report_of, self._folder(request), own_rows=own)
        return HTMLResponse(page, headers={"Content-Security-Policy": _REPORT_POLICY})

    async def doctor(self, _: Asked) -> Response:
        found, left_out = await run_in_threadpool(_examined, self._site)
        return HTMLResponse(pages.doctor(self._base, found, left_out))

    async def static(self, request: Asked) -> Response:
        name = request.path_params["name"]
        if name not in ("dashboard.css", "dashboard.js", "icon.svg"):
            return Response(status_code=404)
        return Response(pages.asset(name), media_type=_TYPES[name.rpartition(".")[2]])

    async def decide(self, request: Asked) -> Response:
        folder, given = self._folder(request), await _form(request)
        if given.get("digest") != folder.state().digest:
            raise ParameterError("the form is of another study", hint="open the study's page again")
        wish = _wish(folder, given)
        await run_in_threadpool(asked, self._site, wish)
        return RedirectResponse(f"{self._base}/", status_code=303)

    async def refused(self, _: Asked, error: Exception) -> Response:
        assert isinstance(error, AtollError)
        return HTMLResponse(pages.problem(self._base, error.message, error.hint or ""), status_code=409)

    def _folder(self, request: Asked) -> RunFolder:
        return find_run(self._site, request.path_params["name"])[0]

    # ---- what changes while somebody looks ----

    async def events(self, request: Asked) -> Response:
        return StreamingResponse(self._changes(request.is_disconnected), media_type="text/event-stream")

    async def _changes(self, is_gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """Parts of the first page, each as often as it changes."""
        known: dict[str, str] = {}
        quiet = 0.0
        while not await is_gone():
            shown = await run_in_threadpool(self._fragments)
            changed = {name: text for name, text in shown.items() if known.get(name) != text}
            known = shown
            quiet = 0.0 if changed else quiet + EVERY
            if changed:
                yield f"event: parts\ndata: {json.dumps(changed)}\n\n"
            elif quiet >= ALIVE:
                quiet = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(EVERY)

    def _fragments(self) -> dict[str, str]:
        return pages.fragments(self._base, views.overview(self._site))


async def _form(request: Asked) -> dict[str, str]:
    """What a form of ours says; it is short."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_FORM:
            raise ParameterError("the form is too long")
    return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=10))


def _wish(folder: RunFolder, form: dict[str, Any]) -> Request:
    does = form.get("does")
    if does == "approve":
        return Request(does="approve", run=folder.name, data_set=form.get("data_set") or None)
    if does == "decline":
        return Request(does="decline", run=folder.name, words=form.get("because", "")[:500])
    raise ParameterError("a decision is approve or decline")


def _examined(site: Site) -> tuple[list[Finding], str]:
    """What ``atoll doctor`` finds; a passphrase is never asked for in a browser."""
    found = list(findings())
    if not site.hub_file.exists():
        return found, "The way to a hub was not looked at: this site has not joined one."
    hub = site.hub()
    identity = None if site.needs_passphrase else site.identity()
    found += asyncio.run(examine(hub.url, identity, hub.ca))
    left_out = (
        f"The login at the hub was not tried, because the keys have a passphrase: atoll doctor{site.option}"
    )
    return found, "" if identity is not None else left_out
