"""Who may ask: the holder of the token, from this very page, on this machine.

The token is the first part of every address, and there is no cookie: a browser sends cookies of 127.0.0.1 to
every port of the machine, so a page that another user serves there would be handed the key. An address is
handed to nobody: pages are not cached, and other origins see no referrer.

What is refused, whatever the token: a Host that is not ours (somebody's name that was pointed here), an
Origin or a Sec-Fetch-Site that is not ours, and a request that changes something and names no Origin.
"""

from __future__ import annotations

import hmac
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atoll import randomness

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Of the dashboard's own pages. A report brings a stricter one along: it reaches nothing at all."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # "no-referrer" would make forms come from the Origin "null"
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_SAFE: Final = ("GET", "HEAD")


def new_token() -> str:
    """256 bits that nobody guesses, for one start of the server."""
    return randomness.fresh_seed().hex()


class Guard:
    """Stands before the application; the token is taken off the path of what it lets through."""

    def __init__(self, app: ASGIApp, token: str, host: str) -> None:
        self._app = app
        self._token = token.encode()
        self._host = host
        self._origin = f"http://{host}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        inside = {**scope, "root_path": f"/{self._token.decode()}"}
        await self._app(inside, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._host]:
            return PlainTextResponse(f"this server answers as {self._host} only\n", 421)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if (origin is None and scope["method"] not in _SAFE) or origin not in (None, self._origin):
            return PlainTextResponse("requests of other origins are refused\n", 403)
        if site not in (None, "same-origin", "none"):
            return PlainTextResponse("requests of other origins are refused\n", 403)
        given = scope["path"].split("/", 2)[1].encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, self._token):
            return PlainTextResponse(
                "the address lacks its token: use the one that atoll dashboard printed\n", 401
            )
        return None
