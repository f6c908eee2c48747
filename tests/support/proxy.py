"""A TCP proxy for tests: delays, and cuts that nobody is told about."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Proxy:
    """Forwards connections to a port on this machine."""

    def __init__(self, to: int, delay: float = 0.0) -> None:
        self.to, self.delay = to, delay
        self.port = 0
        self.loop = asyncio.get_running_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Forward nothing any more; connections stay open and silent, as when a cable is pulled."""
        self._open.clear()

    def mend(self) -> None:
        """End a cut."""
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        await self._open.wait()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(back)
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._forward(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                await self._open.wait()
                if self.delay:
                    loop.call_later(self.delay, target.write, data)
                else:
                    target.write(data)
                    await target.drain()
        target.transport.abort()


@contextlib.asynccontextmanager
async def proxy(to: int, delay: float = 0.0) -> AsyncIterator[Proxy]:
    """A proxy on a port of its own, until the block ends."""
    made = Proxy(to, delay)
    server = await asyncio.start_server(made._accept, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(made._tasks):
            task.cancel()
        for writer in made._writers:
            writer.transport.abort()
        await asyncio.sleep(0)
