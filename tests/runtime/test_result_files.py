"""Result files: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
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


def test_a_file_is_whole_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "study.atoll", list[tuple[int, bool, bool]]()

    def fsync(fd: int) -> None:
        beside = Path(f"/proc/self/fd/{fd}").readlink().parent == tmp_path
        seen.append((os.fstat(fd).st_size, beside, path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, b"x" * 1000)
    write_whole(tmp_path / "other", b"y", durable=False)
    assert seen == [(1000, True, False)]
    assert path.read_bytes() == b"x" * 1000


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


def test_a_file_of_another_kind_or_version_is_no_result(tmp_path: Path) -> None:
    path = Result(pppca().study, {"n_samples": 40}, Transcript()).save(tmp_path / "study.atoll")
    whole = path.read_bytes()
    assert whole.startswith(b"atoll result 1\n")
    for other in (b"atoll result 2\n" + whole[15:], b"atoll_result 1\n" + whole[15:], whole[15:], b""):
        path.write_bytes(other)
        with pytest.raises(DataError, match="is not a result of this version of Atoll"):
            load_result(path)
    for cut in (whole[:-1], whole[:15]):
        path.write_bytes(cut)
        with pytest.raises(DataError, match="is damaged"):
            load_result(path)


def test_what_was_loaded_is_the_callers_own_and_as_it_was(tmp_path: Path) -> None:
    study = pppca().study
    outputs = {
        "mean": np.arange(3.0),
        "scores": {"a": np.ones((2, 1)), "b": np.zeros((1, 1))},
        "columns": ("x", "y"),
    }
    certificate = {"epsilon": 1.5}
    path = Result(study, outputs, Transcript(rounds=7), certificate, "booked in the ledger").save(
        tmp_path / "study.atoll"
    )
    back = load_result(path)
    assert (back.certificate, back.booked, back.transcript.rounds) == (certificate, "booked in the ledger", 7)
    assert back["columns"] == ("x", "y")
    for array in (back["mean"], back["scores"]["a"]):
        array += 1
    assert back["mean"].tolist() == [1.0, 2.0, 3.0]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_frame_of_projections_has_every_islands_own_ids_and_labels() -> None:
    outputs = {
        "scores": {"a": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": np.array([[5.0, 6.0]])},
        "ids": {"a": ["a1", "a2"], "b": ["b1"]},
        "labels": {"b": ["no"], "a": ["yes", "no"]},
    }
    frame = Result(pppca().study, outputs, Transcript()).consumer_frame()
    assert frame.columns.tolist() == ["island", "row_id", "PC1", "PC2", "label"]
    assert frame.to_numpy().tolist() == [
        ["a", "a1", 1.0, 2.0, "yes"],
        ["a", "a2", 3.0, 4.0, "no"],
        ["b", "b1", 5.0, 6.0, "no"],
    ]
