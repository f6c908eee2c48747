"""A party's journal of one run: enough to go on after a crash, and to notice that it may not.

Two files that only grow. The *small* one holds, in order, what was drawn, the digests of what was sent and
received, who left, and what others acknowledged. The *bulk* one holds what was received. A role is a function
of its study, its table, its draws and its inbox, so nothing that it sends need be kept: it is sent again by
running the role again.

Order is what makes it safe. An entry is on disk (:meth:`Journal.sync`) before anything that follows from it
leaves, and a received message is on disk (:meth:`Journal.sync_bulk`) before it is acknowledged. A message
whose entry is on disk but whose bytes are not is *hollow*: its sender still has it, and its place in the
inbox is kept.

Both files are sealed. The key is the run's own, wrapped by a key of the identity in a third file; destroying
that file (:func:`erase`) destroys the journal. Every start has a key of its own, from a random name that
stands in the file: a journal that was cut short by a power failure, or restored from a backup, never seals
two texts under one nonce.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll import randomness
from atoll.errors import ResumeRefused
from atoll.runtime.entries import Entries, Entry, Header, Kept, Piece
from atoll.runtime.result import write_whole

FORMAT: Final = 1
_TAIL_BYTES: Final = 1 << 16  # so much is gathered before it is written, if there is no sync before
PIECE_BYTES: Final = 1 << 19
"""The most of a payload that is sealed at once."""
BOOT_BYTES: Final = 16

_MAGIC: Final = b"atoll journal 1\n"
_HEAD: Final = struct.Struct("<II")
_TAG_BYTES: Final = 16
_PLAIN, _SEALED = 0, 1
_MAX_ENTRY: Final = 1 << 24

Probe = Callable[[str], None]
"""Called at every point at which a crash would matter; a test may raise from it."""


_decoder: msgspec.msgpack.Decoder[Entries] = msgspec.msgpack.Decoder(Entries)
_encoder = msgspec.msgpack.Encoder()


class Journal:
    """Both files of one party, for one process at a time.

    ``entries``: what earlier starts wrote. ``boot``: the random name of this start; ``number``: its place
    among all starts, from 1. All methods may be called from any thread.
    """

    def __init__(
        self,
        folder: Path,
        wrapping: bytes,
        header: Header,
        *,
        durable: bool = True,
        probe: Probe | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.durable = durable
        self._probe = probe or (lambda _: None)
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._syncing_bulk = threading.Lock()
        self._loading = threading.Lock()
        self._end = self._synced = 0
        self._kept: dict[int, int] = {}
        """By start: up to here the bulk file was on disk before that start ended."""
        self._tails = {"_small": bytearray(), "_bulk": bytearray()}
        self._held = _locked(folder)
        try:
            self._key = _run_key(folder, wrapping, durable=durable)
            self._small = _opened(folder / "small")
            self._bulk = _opened(folder / "bulk")
            self.entries, boots = self._read_small()
            self._check(header)
            self._bulk_end = os.lseek(self._bulk, 0, os.SEEK_END)
            self._bulk_synced = min(max(self._kept.values(), default=0), self._bulk_end)
            self.boot = randomness.fresh_seed()[:BOOT_BYTES]
            self.number = len(boots) + 1
            self._bulk_keys = [ChaCha20Poly1305(self._derived("bulk", boot)) for boot in (*boots, self.boot)]
            self._start(header)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Journal: {len(self.entries)} entries, start {self.number}>"

    # ---- the small file ----

    def append(self, entry: Entry) -> int:
        """Write an entry; returns the place up to which :meth:`sync` must go for it to be on disk."""
        self._probe("append")
        body = _encoder.encode(entry)
        with self._lock:
            sealed = self._cipher.encrypt(_nonce(self._counter), body, struct.pack("<Q", self._end))
            self._counter += 1
            return self._write(bytes([_SEALED]) + sealed)

    def sync(self, upto: int | None = None) -> None:
        """Return when everything up to a place, or everything so far, is on disk. Callers share one sync."""
        upto = self._end if upto is None else upto
        if self._synced >= upto:
            return
        with self._syncing:
            if self._synced >= upto:
                return
            with self._lock:
                self._flush("_small")
                end = self._end
            self._probe("sync")
            if self.durable:
                os.fdatasync(self._small)
            self._synced = end
            self._probe("synced")

    @property
    def synced(self) -> int:
        """The place up to which the small file is on disk."""
        return self._synced

    def _write(self, body: bytes) -> int:
        self._add("_small", _HEAD.pack(len(body), zlib.crc32(body)) + body)
        self._end += _HEAD.size + len(body)
        return self._end

    def _add(self, name: str, data: bytes) -> None:
        """To the end of a file: one write for what many messages leave between two syncs."""
        self._tails[name] += data
        if len(self._tails[name]) >= _TAIL_BYTES:
            self._flush(name)

    def _flush(self, name: str) -> None:
        _write_all(getattr(self, name), self._tails[name])
        self._tails[name] = bytearray()

    def _start(self, header: Header) -> None:
        """The new start's name and, in a new journal, its header, on disk before anybody hears of them."""
        with self._lock:
            self._cipher = ChaCha20Poly1305(self._derived("small", self.boot))
            self._counter = 0
            self._write(bytes([_PLAIN]) + self.boot)
        if not self.entries:
            self.append(header)
            _sync_folder(self.folder)
        self.sync()

    def _read_small(self) -> tuple[list[Entries], list[bytes]]:
        """Every whole entry and every start's name; a torn tail is cut off."""
        data = _read_all(self._small)
        entries: list[Entries] = []
        boots: list[bytes] = []
        end = len(_MAGIC)
        for end, body, place in _whole(data):  # noqa: B007
            if body[0] == _PLAIN:
                boots.append(body[1:])
                cipher, counter = ChaCha20Poly1305(self._derived("small", body[1:])), 0
            else:
                entries.append(entry := _opened_entry(cipher, counter, body[1:], place))
                counter += 1
                if isinstance(entry, Kept):
                    self._kept[len(boots)] = entry.end
        if len(data) < len(_MAGIC):
            os.ftruncate(self._small, 0)
            os.pwrite(self._small, _MAGIC, 0)
        os.ftruncate(self._small, end)
        os.lseek(self._small, end, os.SEEK_SET)
        self._end = self._synced = end
        return entries, boots

    def _check(self, header: Header) -> None:
        """The journal is this run's, on these data, made by this software."""
        if not self.entries:
            return
        was = self.entries[0]
        if not isinstance(was, Header):
            raise _damaged(self.folder)
        for name, what, hint in _MUST_STAY:
            if getattr(was, name) != getattr(header, name):
                raise ResumeRefused(f"the journal in {self.folder} {what}", hint=hint)
        changed = [
            k for k in {**was.versions, **header.versions} if was.versions.get(k) != header.versions.get(k)
        ]
        if changed:
            said = ", ".join(
                f"{name} was {was.versions.get(name)}, is {header.versions.get(name)}"
                for name in sorted(changed)
            )
            raise ResumeRefused(
                f"the run began with other software: {said}",
                hint="the same rows could give other bytes: go on with that software, or start anew",
            )

    def _derived(self, name: str, boot: bytes) -> bytes:
        return randomness.derive(self._key, "atoll/journal/v1", name, boot)

    # ---- the bulk file ----

    def keep(self, data: bytes | memoryview) -> Piece:
        """Write a piece of a payload."""
        self._probe("keep")
        with self._lock:
            at = self._bulk_end
            # No place is written twice under the key of one start, so the place can be the nonce.
            sealed = self._bulk_keys[-1].encrypt(_nonce(at), data, None)
            self._add("_bulk", sealed)
            self._bulk_end += len(sealed)
        return Piece(self.number, at, len(data))

    def load(self, pieces: Sequence[Piece]) -> bytes | None:
        """A payload; None where a piece of it never came to the disk."""
        parts = []
        with self._lock:
            self._flush("_bulk")
        for piece in pieces:
            with self._loading:
                sealed = os.pread(self._bulk, piece.length + _TAG_BYTES, piece.offset)
            try:
                parts.append(self._bulk_keys[piece.boot - 1].decrypt(_nonce(piece.offset), sealed, None))
            except (InvalidTag, ValueError, IndexError):
                return None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def sync_bulk(self) -> None:
        """Return when every piece and every entry so far is on disk."""
        with self._syncing_bulk:
            with self._lock:
                end = self._bulk_end
                self._flush("_bulk")
            if end > self._bulk_synced:
                self._probe("sync bulk")
                if self.durable:
                    os.fdatasync(self._bulk)
                self._bulk_synced = end
                self.append(Kept(end))
        self.sync()

    def hollow(self, pieces: Sequence[Piece], digest: bytes) -> bool:
        """Whether a message of an earlier start lacks its bytes. Those known to be on disk are not read."""
        # What a start left unsynced may be lost; a later start then writes over its place.
        if all(p.offset + p.length + _TAG_BYTES <= self._kept.get(p.boot, 0) for p in pieces):
            return False
        data = self.load(pieces)
        return data is None or hashlib.sha256(data).digest() != digest

    # ---- the end ----

    def close(self) -> None:
        """Let another process have the journal."""
        with self._syncing, self._syncing_bulk, self._loading, self._lock:
            for name in ("_small", "_bulk", "_held"):
                fd = getattr(self, name, -1)
                if fd >= 0:
                    if self._tails.get(name):
                        self._flush(name)
                    os.close(fd)
                setattr(self, name, -1)


def erase(folder: Path, tombstone: bytes) -> None:
    """Destroy a journal's key, and with it all that the journal says; ``tombstone`` stays in its place."""
    write_whole(folder / "tombstone", tombstone)
    key = folder / "key"
    if key.is_file():
        with key.open("r+b") as stream:
            stream.write(bytes(key.stat().st_size))
            stream.flush()
            os.fsync(stream.fileno())
        key.unlink()
    for name in ("bulk", "small"):
        (folder / name).unlink(missing_ok=True)
    _sync_folder(folder)


_MUST_STAY: Final = (
    ("format", "has another format", "go on with the version of Atoll that began the run"),
    ("run", "belongs to another run", "every run has a folder of its own"),
    ("study", "belongs to another study", "every run has a folder of its own"),
    ("party", "belongs to another party", "every party has folders of its own"),
    (
        "data",
        "was begun on other rows",
        "bring back the table as it was when the run began, or start a new run",
    ),
)


def _whole(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each entry that is all there: where it ends, its body, where it begins."""
    place = len(_MAGIC)
    if data[:place] != _MAGIC:
        return
    while place + _HEAD.size < len(data):
        length, crc = _HEAD.unpack_from(data, place)
        body = data[place + _HEAD.size : place + _HEAD.size + length]
        if not 0 < length <= _MAX_ENTRY or len(body) < length or zlib.crc32(body) != crc:
            return
        end = place + _HEAD.size + length
        yield end, body, place
        place = end


def _opened_entry(cipher: ChaCha20Poly1305, counter: int, sealed: bytes, place: int) -> Entries:
    try:
        return _decoder.decode(cipher.decrypt(_nonce(counter), sealed, struct.pack("<Q", place)))
    except (InvalidTag, msgspec.DecodeError, msgspec.ValidationError):
        raise ResumeRefused(
            "a journal cannot be read: it was changed, or belongs to another identity",
            hint="restore the run's whole folder from one backup, or start a new run",
        ) from None


def _run_key(folder: Path, wrapping: bytes, *, durable: bool) -> bytes:
    """The run's key; made and wrapped at the first start."""
    path = folder / "key"
    lost = (folder / "small").is_file() and not path.is_file()
    if lost or (folder / "tombstone").is_file():  # whatever else was brought back from a backup
        raise ResumeRefused(f"the journal in {folder} was erased", hint="the run is over; start a new one")
    if not path.is_file():
        salt, key = randomness.fresh_seed(), randomness.fresh_seed()
        write_whole(path, salt + _wrapper(wrapping, salt).encrypt(_nonce(0), key, None), durable=durable)
        if durable:
            _sync_folder(folder)
        return key
    stored = path.read_bytes()
    try:
        return _wrapper(wrapping, stored[:32]).decrypt(_nonce(0), stored[32:], None)
    except InvalidTag:
        raise ResumeRefused(
            f"the journal in {folder} belongs to another identity, or its key is damaged",
            hint="use the identity that began the run",
        ) from None


def _wrapper(wrapping: bytes, salt: bytes) -> ChaCha20Poly1305:
    # A salt for each wrapping: the nonce may be fixed.
    return ChaCha20Poly1305(randomness.derive(wrapping, "atoll/journal/v1", "wrap", salt))


def _locked(folder: Path) -> int:
    """The folder's lock, for as long as the process has it."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ResumeRefused(
            f"another process is at work on {folder}", hint="wait for it, or end it first"
        ) from None
    return fd


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")


def _write_all(fd: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_all(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _damaged(folder: Path) -> ResumeRefused:
    return ResumeRefused(
        f"the journal in {folder} is damaged",
        hint="restore the run's folder from a backup, or start a new run",
    )
