"""What a hub can find out about contents: it keeps every frame, and guesses.

A hub that knows what a short message may be ("yes" or "no", a count below a hundred) can try all of them. The
first version of frames had the SHA-256 of each message in the clear, and so told which guess was right.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from tests.support.crashes import Lab
from tests.support.examples import summation
from tests.support.networks import identity_of, pinned

from atoll.errors import MessageError
from atoll.runtime.nats import wire
from atoll.runtime.nats.starts import Approval, Decline, Seen, approve, propose, seal, sign, unseal

RUN, BOOT, CIPHER = b"r" * 16, b"b" * 16, ChaCha20Poly1305(bytes(32))
GUESSES = [f"{count} patients".encode() for count in range(100)]


def first_version(payload: bytes) -> bytes:
    """A frame as it was: all of its head in the clear."""
    head = struct.pack(
        "<BB16sHH16sQQIIQ32sI", 1, 1, RUN, 2, 5, BOOT, 1, 1, 0, 1, len(payload), _sha(payload), 3
    )
    return head + CIPHER.encrypt(bytes(12), payload, head)


def this_version(payload: bytes) -> bytes:
    (frame,) = wire.Sealer(CIPHER, RUN, 4, BOOT).data(2, 5, 1, payload, _sha(payload), 3)
    return frame


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def fingerprints(guess: bytes, frame: bytes) -> Iterable[bytes]:
    """What a hub can compute of a guess: digests, also keyed with anything that it sees."""
    yield _sha(guess)
    for key in (frame[: wire.COVER_BYTES], frame[1:17], frame[19:35], RUN, BOOT):
        yield hmac.new(key, guess, "sha256").digest()
        yield _sha(key + guess)


def guessed(frame: bytes) -> list[bytes]:
    """The guesses that a hub finds confirmed in a frame."""
    return [guess for guess in GUESSES if any(found in frame for found in fingerprints(guess, frame))]


@pytest.mark.parametrize(("form", "told"), [(first_version, True), (this_version, False)])
def test_a_hub_cannot_test_guesses_of_a_short_message(form: Callable[[bytes], bytes], told: bool) -> None:
    secret = GUESSES[37]
    assert guessed(form(secret)) == ([secret] if told else [])
    sizes = {len(form(guess)) for guess in GUESSES}
    assert (len(sizes) == 1) is not told  # "9 patients" is shorter than "10 patients"


def test_a_whole_run_shows_a_hub_covers_and_lengths_and_nothing_else(tmp_path: Path) -> None:
    """Every message of a secure sum, known to the test by the parties' keys, is looked for at the hub."""
    lab = Lab(summation(), tmp_path)
    seen: list[tuple[str, bytes]] = []

    def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes:
        seen.append((to, frame))
        return frame

    lab.hub.alter = alter
    lab.run()
    contents = {}
    for to, frame in seen:
        opened = lab.wiretap.opener(to, frame)
        assert opened is not None
        head, body = opened
        if head.kind == wire.DATA:
            contents[bytes(body)] = head.digest
            assert head.digest == _sha(body)
    assert len(contents) > 5
    covers = set()
    for to, frame in seen:
        cover = wire.read_cover(frame, lab.wiretap.opener.run)
        covers.add((to, cover.boot, cover.number))
        assert (len(frame) - wire.COVER_BYTES - 16) % wire.BLOCK == 0
        for content, digest in contents.items():
            assert digest not in frame
            assert content not in frame
    assert len(covers) == len(seen)  # no number twice under one key


def test_a_yes_and_a_no_look_alike() -> None:
    """Approvals, refusals and receipts of control messages have one length."""
    study = pinned(summation().study)
    names = [party.name for party in study.parties]
    me, other = identity_of(names[0]), identity_of(names[1])
    proposed = propose(me, study, "a test")
    given, _ = approve(other, proposed)
    no = sign(other, Decline(proposed.id, names[1], "owner", "not on a Friday"))
    seen = sign(other, Seen(proposed.id))
    frames = [seal(one, me.public) for one in (given.signed, no, seen)]
    assert len(set(map(len, frames))) == 1
    assert [type(unseal(me, frame).message) for frame in frames] == [Approval, Decline, Seen]
    with pytest.raises(MessageError):
        unseal(me, me.public.seal_for(seen, "control v2"))
