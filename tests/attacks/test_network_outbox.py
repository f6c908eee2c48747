"""Contents at the hub for several receivers: who can write, read and remove them, on a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.attacks.test_network_hub import counted, raw
from tests.support.hub import admit, carrier, connected, make_hub, run, running, until

from atoll.crypto.identity import Identity
from atoll.runtime.nats import subjects
from atoll.runtime.nats.connection import HubRefused, Login

A, B, C = Identity(b"a" * 32), Identity(b"b" * 32), Identity(b"c" * 32)
NAME = "0f" * 16


def test_contents_are_read_by_name_and_written_and_removed_by_their_owner(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B, C))
        a, b = A.fingerprint, B.fingerprint
        async with running(hub), connected(*(carrier(hub, one) for one in (A, B, C))) as (one, two, three):
            assert await two.shared(a, "run1", NAME, 0) is None  # there is no outbox
            for part in range(3):
                assert await one.share("run1", NAME, part, bytes([part]) * 1000)
            for reader in (two, three):
                got = [await reader.shared(a, "run1", NAME, part) for part in range(3)]
                assert got == [bytes([part]) * 1000 for part in range(3)]
            assert await two.shared(a, "run1", "0e" * 16, 0) is None
            errors: list[str] = []
            async with raw(hub, Login.of(B), errors) as client:
                box = subjects.outbox(a)
                refused = (
                    subjects.content(a, "run1", NAME, "0"),  # another's content
                    subjects.ask(a, "unshare"),
                    f"$JS.API.DIRECT.GET.{box}",  # by place, or by a pattern: a list of names
                    f"$JS.API.STREAM.MSG.GET.{box}",
                    f"$JS.API.STREAM.INFO.{box}",
                    f"$JS.API.CONSUMER.CREATE.{box}",
                    f"$JS.API.STREAM.PURGE.{box}",
                    f"$JS.API.CONSUMER.MSG.NEXT.{box}.x",
                    f"$JS.API.DIRECT.GET.{subjects.stream(a)}.{subjects.inbox(a, b, 'run1')}",
                )
                for subject in refused:
                    await client.publish(subject, b'{"seq":1}')
                await until(counted(errors, "permissions violation for publish", len(refused)))
                # The answer to a question goes to whoever asked, wherever it says to send it.
                question = subjects.read_content(a, "run1", NAME, "1")
                await client.publish(question, b"", reply=subjects.content(a, "run1", NAME, "0"))
                await client.publish(question, b"", reply=subjects.ask(a, "unshare"))
                await client.flush()
                await asyncio.sleep(0.3)
            assert await three.shared(a, "run1", NAME, 0) == bytes(1000)
            await two.unshare("run1", [NAME])  # its own, of which there are none
            assert await three.shared(a, "run1", NAME, 2) == b"\2" * 1000
            with pytest.raises(HubRefused):
                await two.ask("unshare", subjects.Unshare("run1.>"), subjects.Done)
            with pytest.raises(HubRefused):
                await two.ask("unshare", subjects.Unshare("run1", ("*.>",)), subjects.Done)
            await one.unshare("run1", [NAME])
            assert await two.shared(a, "run1", NAME, 0) is None

    run(course())
