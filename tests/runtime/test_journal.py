"""Journals: what comes back after a crash, what is refused, and that nothing can be read without the key."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

import pytest
from tests.runtime.nats.test_receipts import STARTS

from atoll.errors import ResumeRefused
from atoll.protocols.own import Own
from atoll.runtime import entries as kinds
from atoll.runtime import journal as j
from atoll.runtime.entries import Draw, Got, Header, Sent
from atoll.runtime.journal import Journal, erase
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState

KEY = bytes(range(32))
HEADER = Header(1, b"run", "digest", "north", "rows", {"numpy": "2"})
SECRET = b"a draw that nobody may read...!!"


def opened(folder: Path, header: Header = HEADER, key: bytes = KEY, **more: object) -> Journal:
    return Journal(folder, key, header, durable=False, **more)  # type: ignore[arg-type]


def written(folder: Path) -> list[kinds.Entry]:
    """A journal with an entry of some kinds."""
    entries: list[kinds.Entry] = [
        HEADER,
        Draw(0, "seed", SECRET),
        Sent(0, 1, b"d" * 32),
        kinds.Acked(0, 1, 1),
        kinds.PeerBoot(1, 2, b"b" * 16),
        kinds.Gone(1),
        kinds.PeerDone(1, (1, 0)),
        kinds.Finished(),
        kinds.Aborted("RunError", 0),
    ]
    journal = opened(folder)
    for entry in entries[1:]:
        journal.append(entry)
    journal.sync()
    journal.close()
    return entries


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    entries = written(tmp_path)
    journal = opened(tmp_path)
    assert journal.entries == entries
    assert journal.number == 2
    journal.close()


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    entries = written(tmp_path / "whole")
    whole = (tmp_path / "whole" / "small").read_bytes()
    key = (tmp_path / "whole" / "key").read_bytes()
    lengths = set()
    for size in range(len(whole), 0, -7):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "key").write_bytes(key)
        (folder / "small").write_bytes(whole[:size])
        journal = opened(folder)
        count = len(journal.entries)
        assert journal.entries == entries[:count]
        journal.append(Sent(1, 0, b"e" * 32))
        journal.close()
        again = opened(folder)
        assert again.entries == [*(entries[:count] or [HEADER]), Sent(1, 0, b"e" * 32)]
        again.close()
        lengths.add(count)
    assert lengths == set(range(len(entries) + 1))


def test_one_place_is_never_sealed_twice_under_one_key_and_nonce(tmp_path: Path) -> None:
    """What is cut off after a crash may still be on the disk, for whoever looks there."""
    opened(tmp_path).close()  # with its header, so that all later starts write at the same counter
    seen, kept = [], []
    for _ in range(3):
        journal = opened(tmp_path)
        cut = journal._end
        journal.append(Draw(0, "seed", SECRET))
        piece = journal.keep(SECRET)
        journal.close()
        # Without length, checksum and tag: what is left is text and keystream.
        seen.append((tmp_path / "small").read_bytes()[cut + 9 : -16])
        kept.append((tmp_path / "bulk").read_bytes()[piece.offset : -16])
        os.truncate(tmp_path / "small", cut)
        os.truncate(tmp_path / "bulk", piece.offset)
    assert len(set(kept)) == 3
    assert len(set(seen)) == 3


def test_nothing_can_be_read_without_the_key(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.append(Draw(0, "seed", SECRET))
    journal.keep(SECRET)
    journal.close()
    for name in ("small", "bulk", "key"):
        assert SECRET not in (tmp_path / name).read_bytes()
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    with pytest.raises(ResumeRefused, match="another identity"):
        opened(tmp_path, key=bytes(32))
    assert SECRET.decode() not in repr(journal) + repr(Draw(0, "seed", SECRET))


def test_a_changed_entry_is_refused_even_if_its_checksum_fits(tmp_path: Path) -> None:
    written(tmp_path)
    data = bytearray((tmp_path / "small").read_bytes())
    starts = [place for _, _, place in j._whole(bytes(data))]
    place = starts[3]
    length, _ = j._HEAD.unpack_from(data, place)
    data[place + 20] ^= 1
    j._HEAD.pack_into(data, place, length, zlib.crc32(data[place + 8 : place + 8 + length]))
    (tmp_path / "small").write_bytes(data)
    with pytest.raises(ResumeRefused, match="changed"):
        opened(tmp_path)


def test_entries_cannot_change_places(tmp_path: Path) -> None:
    written(tmp_path)
    data = (tmp_path / "small").read_bytes()
    pieces = [data[place:end] for end, _, place in j._whole(data)]
    pieces[2], pieces[3] = pieces[3], pieces[2]
    (tmp_path / "small").write_bytes(data[:16] + b"".join(pieces))
    with pytest.raises(ResumeRefused, match="changed"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": 2}, "another format"),
        ({"data": "other"}, "other rows"),
        ({"run": b"other"}, "another run"),
        ({"study": "other"}, "another study"),
        ({"party": "other"}, "another party"),
        ({"versions": {"numpy": "3"}}, "numpy was 2, is 3"),
        ({"versions": {"numpy": "2", "blas": "x"}}, "blas was None, is x"),
    ],
)
def test_a_journal_of_something_else_is_refused(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    import msgspec

    opened(tmp_path).close()
    with pytest.raises(ResumeRefused, match=said):
        opened(tmp_path, msgspec.structs.replace(HEADER, **changed))
    opened(tmp_path).close()


def test_two_processes_cannot_have_one_journal(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with pytest.raises(ResumeRefused, match="another process"):
        opened(tmp_path)
    journal.close()
    opened(tmp_path).close()


def got(journal: Journal, data: bytes, digest: bytes | None = None) -> Got:
    entry = Got(0, 1, digest or hashlib.sha256(data).digest(), 1, (journal.keep(data),))
    journal.append(entry)
    return entry


def test_payloads_come_back_and_lost_ones_are_hollow(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    first = got(journal, b"on disk")
    journal.sync_bulk()
    second = got(journal, b"not on disk")
    journal.sync()
    assert journal.load(second.pieces) == b"not on disk"
    journal.close()
    os.truncate(tmp_path / "bulk", second.pieces[0].offset)
    journal = opened(tmp_path)
    found = [entry for entry in journal.entries if isinstance(entry, Got)]
    assert [journal.hollow(entry.pieces, entry.digest) for entry in found] == [False, True]
    assert journal.load(first.pieces) == b"on disk"
    assert journal.load(second.pieces) is None
    third = got(journal, b"written over it")
    assert third.pieces[0].offset == second.pieces[0].offset
    assert journal.load(third.pieces) == b"written over it"
    journal.sync_bulk()
    journal.close()
    journal = opened(tmp_path)
    found = [entry for entry in journal.entries if isinstance(entry, Got)]
    assert [journal.hollow(entry.pieces, entry.digest) for entry in found] == [False, True, False]
    journal.close()


def test_a_payload_that_was_torn_is_hollow(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    got(journal, b"x" * 100)
    journal.close()
    data = bytearray((tmp_path / "bulk").read_bytes())
    data[50] ^= 1
    (tmp_path / "bulk").write_bytes(data)
    journal = opened(tmp_path)
    (entry,) = (entry for entry in journal.entries if isinstance(entry, Got))
    assert journal.hollow(entry.pieces, entry.digest)
    journal.close()


def test_the_order_on_disk(tmp_path: Path) -> None:
    """The start's name is synced before anybody can hear of it; payloads before the entry that says so."""
    points: list[str] = []
    journal = opened(tmp_path, probe=points.append)
    assert points == ["append", "sync", "synced"]
    points.clear()
    got(journal, b"data")
    journal.sync_bulk()
    assert points == ["keep", "append", "sync bulk", "append", "sync", "synced"]
    points.clear()
    journal.sync()
    assert points == []
    journal.close()


def test_one_sync_serves_all_that_was_written_before_it(tmp_path: Path) -> None:
    points: list[str] = []
    journal = opened(tmp_path, probe=points.append)
    points.clear()
    places = [journal.append(Sent(0, 1, bytes(32))) for _ in range(5)]
    journal.sync(places[0])
    for place in places:
        journal.sync(place)
    assert points.count("sync") == 1
    assert journal.synced == places[-1]
    journal.close()


def test_what_destroys_the_key_writes_over_it_first(tmp_path: Path) -> None:
    """A file that is only unlinked stays on the disk: here, under another name."""
    written(tmp_path)
    (tmp_path / "other name").hardlink_to(tmp_path / "key")
    size = (tmp_path / "key").stat().st_size
    erase(tmp_path, b"")
    assert (tmp_path / "other name").read_bytes() == bytes(size)


def test_a_journal_without_its_key_is_not_begun_again(tmp_path: Path) -> None:
    """A role that began anew would draw other masks over what it has sent."""
    written(tmp_path)
    small = (tmp_path / "small").read_bytes()
    (tmp_path / "key").unlink()
    with pytest.raises(ResumeRefused, match="was erased"):
        opened(tmp_path)
    assert (tmp_path / "small").read_bytes() == small
    assert not (tmp_path / "key").exists()


def test_every_byte_of_the_wrapped_key_counts(tmp_path: Path) -> None:
    written(tmp_path)
    whole = (tmp_path / "key").read_bytes()
    assert len(whole) == 32 + 32 + 16  # salt, key, tag
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        (tmp_path / "key").write_bytes(changed)
        with pytest.raises(ResumeRefused, match="its key is damaged"):
            opened(tmp_path)


def test_files_and_starts_have_keys_of_their_own(tmp_path: Path) -> None:
    """Both files count their nonces from zero: under one key, two texts would be sealed alike."""
    journal = opened(tmp_path)
    found = {journal._derived(name, boot) for name in ("small", "bulk") for boot in (b"a" * 16, b"b" * 16)}
    journal.close()
    (tmp_path / "other").mkdir()
    other = opened(tmp_path / "other")
    assert len(found | {other._derived("small", b"a" * 16)}) == 5
    other.close()


def test_a_journals_folder_is_its_owners(tmp_path: Path) -> None:
    opened(tmp_path / "runs" / "one").close()
    assert (tmp_path / "runs" / "one").stat().st_mode & 0o777 == 0o700


def test_a_durable_journal_is_on_disk_when_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File by file, and nothing counts as synced whose sync has failed."""
    synced: list[str] = []
    sizes: dict[str, int] = {}

    def fdatasync(fd: int) -> None:
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        synced.append(name)
        sizes[name] = os.fstat(fd).st_size

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    journal = Journal(tmp_path, KEY, HEADER)
    assert synced == ["small"]
    synced.clear()
    place = journal.append(Sent(0, 1, bytes(32)))
    journal.sync()
    assert synced == ["small"]
    assert journal.synced == place == sizes["small"]
    piece = journal.keep(SECRET)
    synced.clear()
    journal.sync_bulk()
    assert synced == ["bulk", "small"]
    assert sizes["bulk"] == piece.offset + piece.length + 16  # what is synced was written before

    def fails(fd: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fdatasync", fails)
    before = journal.synced
    later = journal.append(Sent(0, 1, bytes(32)))
    with pytest.raises(OSError, match="gone"):
        journal.sync()
    assert journal.synced == before < later
    journal.keep(SECRET)
    with pytest.raises(OSError, match="gone"):
        journal.sync_bulk()
    journal.close()
    again = opened(tmp_path)
    assert not any(isinstance(entry, kinds.Kept) for entry in again.entries[3:])
    again.close()


def test_bytes_of_another_digest_are_hollow(tmp_path: Path) -> None:
    """What opens under the key need not be what was written down: its sender sends it again."""
    journal = opened(tmp_path)
    got(journal, b"these bytes")
    got(journal, b"those bytes", hashlib.sha256(b"these bytes").digest())
    journal.close()
    journal = opened(tmp_path)
    found = [entry for entry in journal.entries if isinstance(entry, Got)]
    assert [journal.hollow(entry.pieces, entry.digest) for entry in found] == [False, True]
    journal.close()


def test_an_erased_journal_is_gone(tmp_path: Path) -> None:
    written(tmp_path)
    key = (tmp_path / "key").read_bytes()
    erase(tmp_path, b"what stays")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "tombstone"]
    assert (tmp_path / "tombstone").read_bytes() == b"what stays"
    with pytest.raises(ResumeRefused, match="erased"):
        opened(tmp_path)
    assert key not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    (tmp_path / "key").write_bytes(key)  # from a backup
    with pytest.raises(ResumeRefused, match="erased"):
        opened(tmp_path)


def test_what_an_earlier_start_left_in_memory_is_synced_before_it_counts(tmp_path: Path) -> None:
    """A start that was killed may have written bytes that no disk has: a later one would acknowledge them."""
    start = STARTS["hospital-0"]
    header, points = header_of(start, Own()), list[str]()
    first = Journal(tmp_path, start.journal_key, header, durable=False)
    first.keep(b"bytes of a message")
    first.close()
    again = Journal(tmp_path, start.journal_key, header, durable=False, probe=points.append)
    assert "sync bulk" not in points
    RunState(start, again)
    again.close()
    assert points.count("sync bulk") == 1
