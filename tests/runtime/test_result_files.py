"""Result files: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.examples import pppca

from atoll import codec
from atoll.errors import DataError
from atoll.runtime.result import Result, load_result, write_whole
from atoll.runtime.transcript import Transcript

RECORDED = Path(__file__).parent / "recorded"


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


def test_a_result_whose_study_was_edited_is_refused(tmp_path: Path) -> None:
    """The study in a result is the one that everybody approved, or it says nothing."""
    path = Result(pppca().study, {"n_samples": 40}, Transcript()).save(tmp_path / "study.atoll")
    assert load_result(path).study == pppca().study
    header, _, body = path.read_bytes().partition(b"\n")
    content = codec.decode(body)
    content["study"]["release"]["scores"] = ["server"]
    path.write_bytes(header + b"\n" + codec.encode(content))
    with pytest.raises(DataError, match="its study does not match its digest"):
        load_result(path)


def test_a_result_of_the_first_format_of_digests_still_loads(tmp_path: Path) -> None:
    """Its digest covers what the study stated; the study in it is as it was, and an edited one is refused."""
    old = load_result(RECORDED / "pppca-0.1.0.atoll")
    assert old.study.digest_as_stated == "1f329792bd57500bc34f4d7617905255ea788619790bc70052558b67fdb5992c"
    assert (old.study.version, old["n_samples"], old["components"].shape) == (None, 40, (2, 4))
    assert load_result(old.save(tmp_path / "again.atoll")).study == old.study
    header, _, body = (RECORDED / "pppca-0.1.0.atoll").read_bytes().partition(b"\n")
    content = codec.decode(body)
    content["study"]["release"]["scores"] = ["server"]
    edited = tmp_path / "edited.atoll"
    edited.write_bytes(header + b"\n" + codec.encode(content))
    with pytest.raises(DataError, match="its study does not match its digest"):
        load_result(edited)
