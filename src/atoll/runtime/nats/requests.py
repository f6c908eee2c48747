"""What other commands ask of a site's node, as files in its folder: only the site's owner can write there."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Literal

import msgspec

from atoll.runtime.nats.site import Site
from atoll.runtime.result import write_whole


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One wish."""

    does: Literal["approve", "decline", "cancel", "submit"]
    run: str = ""
    data_set: str | None = None
    words: str = ""
    study: bytes = b""
    """Of ``submit``: the study's canonical bytes."""
    reason: str = ""
    lifetime: int = 0
    deadline: float = 0.0
    rehearse: bool = False
    token: str = ""


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of it."""

    run: str = ""
    error: str = ""
    hint: str = ""


def ask(site: Site, request: Request) -> str:
    """Put a request where the node looks; the token under which its answer will stand."""
    token = uuid.uuid4().hex
    write_whole(site.requests / f"{token}.json", msgspec.json.encode(request))
    return token


def answer_of(site: Site, token: str) -> Answered | None:
    """What the node answered, taken away; None while it has not."""
    path = site.requests / f"{token}.answer"
    try:
        answered = msgspec.json.decode(path.read_bytes(), type=Answered)
    except FileNotFoundError:
        return None
    path.unlink(missing_ok=True)
    return answered


def withdraw(site: Site, token: str) -> None:
    """Nobody waits for the answer any more."""
    for ending in ("json", "answer"):
        (site.requests / f"{token}.{ending}").unlink(missing_ok=True)


def waiting(site: Site) -> Iterator[tuple[str, Request]]:
    """Requests in the order of their making, each once."""
    for path in sorted(site.requests.glob("*.json"), key=lambda one: one.stat().st_mtime):
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError, FileNotFoundError):
            request = msgspec.json.decode(path.read_bytes(), type=Request)
            path.unlink(missing_ok=True)
            yield path.stem, request


def answer(site: Site, token: str, answered: Answered) -> None:
    """Tell whoever asked."""
    write_whole(site.requests / f"{token}.answer", msgspec.json.encode(answered))
