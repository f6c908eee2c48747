"""Receipts: the same for a run that was killed, refused once altered, compared with the other parties'."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.support.examples import pppca
from tests.support.sites import identities, pinned

from atoll.cli.receipt import verify
from atoll.errors import DataError, RunError
from atoll.runtime.nats.receipts import Receipt, ReceiptTap, contradictions, read_receipt
from atoll.runtime.nats.starts import RunStart, approve, begin, propose
from atoll.study.address import Address

STUDY = pinned(pppca().study)
KEYS = identities(STUDY)
NORTH, SERVER = Address("hospital-0", "provider"), Address("server", "server")


def starts() -> dict[str, RunStart]:
    of = propose(KEYS["consumer"], STUDY, "")
    answers = {name: approve(key, of) for name, key in KEYS.items()}
    given = {name: one for name, (one, _) in answers.items()}
    return {name: begin(key, of, given, answers[name][1]) for name, key in KEYS.items()}


STARTS = starts()


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def story(
    tap: ReceiptTap, me: Address, peer: Address, texts: tuple[str, ...] = ("a", "b"), back: str = "c"
) -> None:
    for text in texts:
        if me == NORTH:
            tap.sent(me, peer, "Share", 10, digest(text))
        else:
            tap.received(me, peer, "Share", 10, digest(text))
    if me == NORTH:
        tap.received(me, peer, "Total", 20, digest(back))
    else:
        tap.sent(me, peer, "Total", 20, digest(back))
    tap.opened(me, ("components", "mean"))


def written(
    folder: Path, me: Address = NORTH, peer: Address = SERVER, ended: str = "finished", **options: str
) -> Path:
    tap = ReceiptTap(STARTS[me.party], folder)
    story(tap, me, peer, **options)  # type: ignore[arg-type]
    return tap.finish(KEYS[me.party], ended)


def test_two_honest_receipts_agree(tmp_path: Path) -> None:
    north = read_receipt(written(tmp_path / "n"))
    server = read_receipt(written(tmp_path / "s", SERVER, NORTH))
    assert contradictions([north, server]) == []
    assert north.finished
    assert north.entries[-1].names == ("components", "mean")
    assert {entry.digest for entry in north.entries[:2]} == {entry.digest for entry in server.entries[:2]}


def test_digests_are_blinded_so_that_a_guess_cannot_be_tested(tmp_path: Path) -> None:
    text = written(tmp_path / "n").read_text()
    assert digest("a").hex() not in text
    tap = ReceiptTap(STARTS["hospital-0"], tmp_path / "other")
    tap.sent(NORTH, Address("hospital-1", "provider"), "Share", 10, digest("a"))
    tap.sent(NORTH, SERVER, "Share", 10, digest("a"))
    first, second = read_receipt(tap.finish(KEYS["hospital-0"], "finished")).entries
    assert first.digest != second.digest


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"texts": ("a", "x")}, "message 2 from hospital-0/provider to server/server is not the same"),
        ({"texts": ("a",)}, "sent message 2 to server/server, which never got it"),
        ({"texts": ("a", "b", "d")}, "has message 3 from hospital-0/provider, which"),
        ({"back": "other"}, "message 1 from server/server to hospital-0/provider is not the same"),
    ],
)
def test_contradictions_are_found(tmp_path: Path, options: dict[str, str], says: str) -> None:
    north = read_receipt(written(tmp_path / "n"))
    server = read_receipt(written(tmp_path / "s", SERVER, NORTH, **options))
    (said,) = contradictions([north, server])
    assert says in said
    assert contradictions([server, north]) == [said]


def test_a_message_from_whoever_says_it_sent_nothing_is_a_contradiction(tmp_path: Path) -> None:
    """A sender that leaves a whole receiver out of its receipt is found by the receiver's alone."""
    silent = ReceiptTap(STARTS["hospital-0"], tmp_path / "n")
    silent.opened(NORTH, ())
    north = read_receipt(silent.finish(KEYS["hospital-0"], "finished"))
    tap = ReceiptTap(STARTS["server"], tmp_path / "s")
    tap.received(SERVER, NORTH, "Share", 10, digest("a"))
    server = read_receipt(tap.finish(KEYS["server"], "finished"))
    said = (
        "server/server has message 1 from hospital-0/provider, which hospital-0/provider does not say it sent"
    )
    assert contradictions([north, server]) == contradictions([server, north]) == [said]


def test_a_failed_run_leaves_messages_on_their_way(tmp_path: Path) -> None:
    north = read_receipt(written(tmp_path / "n"))
    short = read_receipt(written(tmp_path / "s", SERVER, NORTH, ended="failed", texts=("a",)))  # type: ignore[arg-type]
    assert contradictions([north, short]) == []


def test_receipts_of_other_runs_are_not_compared(tmp_path: Path) -> None:
    north = read_receipt(written(tmp_path / "n"))
    elsewhere = ReceiptTap(starts()["server"], tmp_path / "s")
    other = read_receipt(elsewhere.finish(KEYS["server"], "finished"))
    assert any("have different runs" in said for said in contradictions([north, other]))
    assert contradictions([north, north]) == ["two of the receipts are by the same party"]


@pytest.mark.parametrize(
    ("field", "other", "said"),
    [
        ("run", "00", "different runs"),
        ("study", "00", "different studies"),
        ("parties", {"hospital-0": "00"}, "different parties"),
        ("approvals", {"hospital-0": "00"}, "different approvals"),
        ("rehearse", True, "different kinds of run"),
    ],
)
def test_receipts_are_of_one_run_in_every_respect(
    tmp_path: Path, field: str, other: object, said: str
) -> None:
    north = read_receipt(written(tmp_path / "n"))
    server = read_receipt(written(tmp_path / "s", SERVER, NORTH))
    assert contradictions([north, server]) == []
    changed = replace(server, header=structs.replace(server.header, **{field: other}))
    assert contradictions([north, changed]) == [f"server and hospital-0 have {said}"]


def test_every_altered_byte_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "n")
    good = path.read_bytes()
    for place in range(0, len(good), 7):
        bad = bytearray(good)
        bad[place] ^= 1
        path.write_bytes(bytes(bad))
        with pytest.raises(DataError, match="is no good receipt"):
            read_receipt(path)
    lines = good.splitlines(keepends=True)
    for shorter in (lines[:-1], lines[:2] + lines[3:], [lines[0], lines[2], lines[1], *lines[3:]]):
        path.write_bytes(b"".join(shorter))
        with pytest.raises(DataError, match="is no good receipt"):
            read_receipt(path)


def test_a_receipt_is_signed_with_the_key_that_the_study_pins(tmp_path: Path) -> None:
    tap = ReceiptTap(STARTS["hospital-0"], tmp_path)
    story(tap, NORTH, SERVER)
    with pytest.raises(DataError, match="not signed with the key that the study pins"):
        read_receipt(tap.finish(KEYS["server"], "finished"))


def test_a_run_that_was_killed_leaves_the_same_receipt(tmp_path: Path) -> None:
    """Whatever the first process had noted: a replay notes it again, and what differs is replaced."""
    whole = read_receipt(written(tmp_path / "whole"))
    for noted in (("a",), ("a", "b"), ("a", "never left")):
        folder = tmp_path / "-".join(noted)
        first = ReceiptTap(STARTS["hospital-0"], folder)
        for text in noted:
            first.sent(NORTH, SERVER, "Share", 10, digest(text))
        first.close()
        with (folder / "lines-provider.jsonl").open("ab") as torn:
            torn.write(b'{"role": "prov')
        assert read_receipt(written(folder)).entries == whole.entries


def test_what_was_noted_before_a_run_could_not_go_on_is_in_the_receipt(tmp_path: Path) -> None:
    first = ReceiptTap(STARTS["hospital-0"], tmp_path)
    first.sent(NORTH, SERVER, "Share", 10, digest("a"))
    first.close()
    later = ReceiptTap(STARTS["hospital-0"], tmp_path)
    receipt = read_receipt(later.finish(KEYS["hospital-0"], "failed", error="RunError", missing=("server",)))
    assert [entry.kind for entry in receipt.entries] == ["Share"]
    assert (receipt.end.error, receipt.end.missing, receipt.finished) == ("RunError", ("server",), False)
    assert not list(tmp_path.glob("lines-*"))


def test_a_receipt_has_no_content(tmp_path: Path) -> None:
    receipt: Receipt = read_receipt(written(tmp_path / "n"))
    assert {entry.did for entry in receipt.entries} == {"sent", "received", "opened"}
    assert set(receipt.entries[0].__struct_fields__) == {
        "role", "did", "peer", "kind", "bytes", "digest", "names",
    }  # fmt: skip


def test_receipts_that_contradict_each_other_are_an_error_for_scripts_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [written(tmp_path / "n"), written(tmp_path / "s", SERVER, NORTH, back="other")]  # type: ignore[arg-type]
    with pytest.raises(RunError, match="the receipts contradict each other"):
        verify(files, as_json=True)
    assert "is not the same in both receipts" in capsys.readouterr().out


def test_what_is_sent_to_two_is_blinded_for_each(tmp_path: Path) -> None:
    """One of them could else test, against the receipt, what the other was sent."""
    tap = ReceiptTap(STARTS["hospital-0"], tmp_path)
    peers = [SERVER, Address("hospital-1", "provider"), Address("consumer", "consumer"), NORTH]
    for peer in peers:
        tap.sent(NORTH, peer, "Share", 10, digest("the same"))
    entries = read_receipt(tap.finish(KEYS["hospital-0"], "finished")).entries
    assert len({entry.digest for entry in entries}) == len(peers)
