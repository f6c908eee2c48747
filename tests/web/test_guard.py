"""The dashboard answers the holder of its token, asked by its own page, and nobody else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse
from tests.support.dashboards import Address, dashboard

from atoll.crypto.identity import Identity
from atoll.runtime.nats.site import Site
from atoll.web.guard import Guard

Answer = tuple[int, dict[str, str], str]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    site = Site.make(tmp_path_factory.mktemp("guard") / "site")
    Identity.new().save(site.identity_file)
    with dashboard(site) as address:
        yield address


def ask(at: Address, path: str, method: str = "GET", **headers: str) -> Answer:
    """One request; headers named as Python names things."""
    connection = http.client.HTTPConnection(at.host, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"host": at.host, **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    told = {name.lower(): value for name, value in answer.getheaders()}
    body = answer.read().decode()
    connection.close()
    return answer.status, told, body


PATHS = ("", "events", "doctor", "runs/abc", "static/dashboard.css")


def test_the_holder_of_the_token_sees_the_page_and_its_rules(at: Address) -> None:
    status, headers, body = ask(at, f"/{at.token}/")
    assert status == 200
    assert "Waiting for your answer" in body
    assert "No node of this site is running" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers  # a cookie would be sent to every port of this machine
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_or_with_another_nothing_is_shown(at: Address, path: str) -> None:
    for token in ("", "x" * 64, at.token[:-1], at.token + "x", at.token.swapcase(), "%00", "%C3%BC", "%FF"):
        status, _, body = ask(at, f"/{token}/{path}")
        assert status == 401
        assert "Waiting" not in body
        assert at.token not in body


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1"])
def test_a_name_that_was_pointed_here_is_refused(at: Address, host: str) -> None:
    """DNS rebinding: a browser believes that it talks to another site, and lets that site's scripts read."""
    assert ask(at, f"/{at.token}/", host=host)[0] == 421


def test_a_second_host_name_is_refused() -> None:
    """Whatever the server in front makes of two: the guard takes exactly one, its own."""
    guard = Guard(PlainTextResponse("inside"), "t" * 64, "127.0.0.1:80")
    for hosts, status in ((["127.0.0.1:80"], None), (["127.0.0.1:80", "evil.example"], 421), ([], 421)):
        headers = [(b"host", host.encode()) for host in hosts]
        scope = {"type": "http", "method": "GET", "path": f"/{'t' * 64}/", "headers": headers}
        refusal = guard._refusal(scope)
        assert (None if refusal is None else refusal.status_code) == status


FOREIGN = ("http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1")


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused(at: Address, origin: str, method: str) -> None:
    assert ask(at, f"/{at.token}/runs/abc/decision", method, origin=origin)[0] == 403
    assert ask(at, f"/{at.token}/", method, origin=origin)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_came_from_elsewhere_is_refused(at: Address, site: str) -> None:
    assert ask(at, f"/{at.token}/", sec_fetch_site=site)[0] == 403


def test_a_change_needs_an_origin(at: Address) -> None:
    path = f"/{at.token}/runs/abc/decision"
    assert ask(at, path, "POST", content_length="0")[0] == 403
    status, _, body = ask(at, path, "POST", content_length="0", origin=f"http://{at.host}")
    assert (status, "no run begins" in body) == (409, True)
    assert ask(at, path)[0] == 405  # an address alone, in a link or a picture, decides nothing


def test_only_named_files_are_served(at: Address) -> None:
    assert ask(at, f"/{at.token}/static/dashboard.js")[0] == 200
    for name in ("app.py", "..%2fapp.py", "report.css", "dashboard.css%00"):
        assert ask(at, f"/{at.token}/static/{name}")[0] == 404
