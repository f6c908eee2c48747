"""Result files: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.runtime.result import write_whole


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "study.atoll"
    write_whole(old, b"the old result")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(old, b"half of the new one")
    assert [path.name for path in tmp_path.iterdir()] == ["study.atoll"]
    assert old.read_bytes() == b"the old result"
