"""What the dashboard answers, asked without a server: every header, every refusal, every address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from atoll.crypto.identity import Identity
from atoll.runtime.nats.site import HubAddress, Site
from atoll.web import app, serve
from atoll.web.app import make_app
from atoll.web.guard import Guard, new_token

HOST = "127.0.0.1:8765"
OURS = f"http://{HOST}"
TOKEN = "ab" * 32

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def answer(
    asked: Any, path: str, method: str = "GET", body: bytes = b"", query: str = "", **headers: str
) -> tuple[int, Any, str]:
    """Status, headers and text of one request."""
    named = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(asked(scope, receive, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, b"".join(one.get("body", b"") for one in sent[1:]).decode()


@pytest.fixture
def guarded() -> Guard:
    return Guard(PlainTextResponse("inside"), TOKEN, HOST)


@pytest.fixture
def board(tmp_path: Path) -> Guard:
    site = Site.make(tmp_path / "site")
    Identity.new().save(site.identity_file)
    return make_app(site, TOKEN, HOST)


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        (f"/{TOKEN}/", "GET", {}, 200),
        (f"/{TOKEN}/", "HEAD", {}, 200),
        (f"/{TOKEN}/", "GET", {"origin": OURS, "sec_fetch_site": "same-origin"}, 200),
        (f"/{TOKEN}/", "GET", {"sec_fetch_site": "none"}, 200),
        (f"/{TOKEN}/", "POST", {"origin": OURS}, 200),
        (f"/{TOKEN}/", "POST", {}, 403),
        *((f"/{TOKEN}/", method, {}, 403) for method in ("PUT", "DELETE", "PATCH", "OPTIONS")),
        (f"/{TOKEN}/", "GET", {"origin": "null"}, 403),
        (f"/{TOKEN}/", "GET", {"origin": "http://127.0.0.1:8766"}, 403),
        (f"/{TOKEN}/", "GET", {"origin": f"https://{HOST}"}, 403),
        (f"/{TOKEN}/", "POST", {"origin": OURS, "sec_fetch_site": "same-site"}, 403),
        (f"/{TOKEN}/", "GET", {"sec_fetch_site": "cross-site"}, 403),
        (f"/{TOKEN}/", "GET", {"host": "localhost:8765"}, 421),
        (f"/{TOKEN}/", "GET", {"host": "127.0.0.1"}, 421),
        (f"/{TOKEN}/", "GET", {"host": HOST + "."}, 421),
        (f"/{TOKEN[:-1]}/", "GET", {}, 401),
        (f"/{TOKEN}0/", "GET", {}, 401),
        (f"/{TOKEN.upper()}/", "GET", {}, 401),
        ("/", "GET", {}, 401),
        ("//", "GET", {}, 401),
        (f"//{TOKEN}/", "GET", {}, 401),
    ],
)
def test_who_is_let_in(guarded: Guard, path: str, method: str, headers: Any, status: int) -> None:
    found, told, text = answer(guarded, path, method, **headers)
    assert found == status
    assert {name: told[name] for name in HEADERS} == HEADERS
    assert ("inside" in text) == (status == 200)
    assert TOKEN not in text


def test_every_address_and_what_may_be_done_there(board: Guard) -> None:
    base = f"/{TOKEN}"
    for path, status in (
        ("/", 200),
        ("/static/dashboard.css", 200),
        ("/static/dashboard.js", 200),
        ("/static/icon.svg", 200),
        ("/static/app.py", 404),
        ("/static/..%2fapp.py", 404),
        ("/runs/abc", 409),
        ("/runs/abc/report", 409),
        ("/runs/abc/receipt", 409),
        ("/runs/abc/decision", 405),
        ("/elsewhere", 404),
    ):
        found, told, _ = answer(board, base + path)
        assert found == status, path
        assert {name: told[name] for name in HEADERS} == HEADERS
    for path in ("/", "/events", "/doctor", "/runs/abc", "/runs/abc/report", "/runs/abc/receipt"):
        assert answer(board, base + path, "POST", origin=OURS)[0] == 405, path
    assert answer(board, base + "/runs/abc/decision", "POST", b"does=approve", origin=OURS)[0] == 409


def test_a_report_reaches_nothing_and_presses_no_button(
    board: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names in it are others': it runs in an origin of its own, and own rows are there for "yes" alone."""
    asked: list[bool] = []
    monkeypatch.setattr(app.Board, "_folder", lambda *_: None)
    monkeypatch.setattr(app, "report_of", lambda _, *, own_rows: asked.append(own_rows) or "page")
    for query in ("", "own=no", "own=", "own=yes", "own=1"):
        status, told, text = answer(board, f"/{TOKEN}/runs/abc/report", query=query)
        assert (status, text) == (200, "page")
        assert told["content-security-policy"] == (
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
        )
    assert asked == [False, False, False, True, False]


def test_no_passphrase_is_asked_for_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site.make(tmp_path / "site")
    Identity.new().save(site.identity_file, "correct horse")
    site.set_hub(HubAddress("tls://hub.example:4222"))
    tried: list[object] = []

    async def examine(url: str, identity: object, authority: str) -> list[Any]:
        tried.append(identity)
        return []

    monkeypatch.setattr(app, "examine", examine)
    monkeypatch.setattr(app, "findings", list)
    _, left_out = app._examined(site)
    assert tried == [None]
    assert "the keys have a passphrase" in left_out


def test_a_token_is_256_bits_and_another_each_time() -> None:
    tokens = {new_token() for _ in range(20)}
    assert len(tokens) == 20
    assert {len(bytes.fromhex(token)) for token in tokens} == {32}


def test_the_server_listens_on_this_machine_alone_and_writes_no_address_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    class Server:
        def __init__(self, config: Any) -> None:
            seen["config"] = config

        def run(self, sockets: Any) -> None:
            seen["at"] = [one.getsockname()[0] for one in sockets]

    monkeypatch.setattr(serve.uvicorn, "Server", Server)
    site = Site.make(tmp_path / "site")
    Identity.new().save(site.identity_file)
    told: list[str] = []
    serve.serve(site, 0, told.append)
    assert seen["at"] == ["127.0.0.1"]
    assert told[0].startswith("http://127.0.0.1:")
    assert len(told[0].split("/")[3]) == 64
    config = seen["config"]
    assert (config.access_log, config.log_config, config.server_header) == (False, None, False)
    assert (config.proxy_headers, config.ws, config.lifespan) == (False, "none", "off")
