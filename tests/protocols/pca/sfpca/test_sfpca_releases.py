"""To whom the coordinator sends what: the study's releases, output by output."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import sfpca

from atoll.protocols.pca.released import SampleCount
from atoll.protocols.pca.sfpca import releases
from atoll.study.address import Address

SENT = {
    "explained_variance": ["variances"],
    "n_samples": ["SampleCount", "RowCounts"],
    "certificate": ["certificate"],
    "components": ["names"],
}


@pytest.mark.parametrize("output", [*SENT, None])
def test_a_consumer_is_sent_what_is_released_to_it_and_nothing_else(
    output: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    class Net:
        async def send(self, to: Address, message: Any) -> None:
            sent.append(message)

    monkeypatch.setattr(releases, "variances", lambda *_: "variances")
    monkeypatch.setattr(releases, "certified", lambda *_: "certificate")
    # Every other output is released as well, to somebody else.
    release = {name: ("consumer",) if name == output else ("provider",) for name in SENT}
    study, consumer = structs.replace(sfpca().study, release=release), sfpca().study.the("consumer")
    public: Any = SimpleNamespace(n=40, rows=(14, 13, 13))
    found: Any = SimpleNamespace(certificate=None)
    asyncio.run(releases.send_public(Net(), study, consumer, public, found, "direct", "names"))  # type: ignore[arg-type]
    assert [m if isinstance(m, str) else type(m).__name__ for m in sent] == SENT.get(output or "", [])
    for message in sent:
        if isinstance(message, SampleCount):
            assert (message.n_samples, len(message.islands)) == (40, 3)
