"""The server: on this machine's loopback only, until it is stopped."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn

from atoll.errors import ParameterError
from atoll.runtime.nats.site import Site
from atoll.web.app import make_app
from atoll.web.guard import new_token

LOOPBACK = "127.0.0.1"


def serve(site: Site, port: int, tell: Callable[[str], None]) -> None:
    """Serve until the process is asked to end; ``tell`` is given the address, token and all.

    ``port``: 0 takes a free one.
    """
    with _listening(port) as listener:
        host = f"{LOOPBACK}:{listener.getsockname()[1]}"
        token = new_token()
        config = uvicorn.Config(
            make_app(site, token, host),
            access_log=False,  # addresses have the token in them
            log_config=None,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        tell(f"http://{host}/{token}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(64)  # whoever opens the address at once waits, and is not turned away
    except OSError as error:
        listener.close()
        raise ParameterError(
            f"cannot listen on {LOOPBACK}:{port}: {error.strerror}", hint="choose another --port"
        ) from None
    return listener
