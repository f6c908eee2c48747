"""A TCP proxy that delays what passes, each way: ``python delay_proxy.py HOST:PORT HOST:PORT SECONDS``."""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Pass bytes on, each ``delay`` seconds after they came."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(256)

    async def read() -> None:
        data = b"."
        while data:
            try:
                data = await reader.read(65536)
            except OSError:  # that side was killed: the other must hear of it
                data = b""
            await queue.put((loop.time() + delay, data))

    reading = asyncio.create_task(read())
    try:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        reading.cancel()
        writer.close()


async def serve(listen: str, target: str, delay: float) -> None:
    """Until it is ended."""

    kept: set[object] = set()
    """Whoever is connected: a loop forgets tasks that nobody holds."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        kept.add(task)
        try:
            await passed_on(reader, writer)
        finally:
            kept.discard(task)

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = target.rsplit(":", 1)
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        with contextlib.suppress(OSError):
            await asyncio.gather(pipe(reader, back, delay), pipe(there, writer, delay))

    host, port = listen.rsplit(":", 1)
    async with await asyncio.start_server(connected, host, int(port)) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], float(sys.argv[3])))
