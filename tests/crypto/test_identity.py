"""Identities: fingerprints, signatures, envelopes, files, notices."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
from pathlib import Path

import msgspec
import pytest

from atoll.crypto.identity import (
    Identity,
    PublicIdentity,
    needs_passphrase,
    public_of,
    read_notice,
    revocation,
    rotation,
    words,
)
from atoll.errors import MessageError, ParameterError

SEED = bytes(range(32))


def test_an_identity_is_its_seed() -> None:
    assert Identity(SEED).public == Identity(SEED).public
    assert Identity.new().fingerprint != Identity.new().fingerprint


def test_the_fingerprint_stands_for_both_keys() -> None:
    public = Identity(SEED).public
    assert public.fingerprint == hashlib.sha256(b"atoll/identity/v1/fingerprint" + public.raw).hexdigest()
    assert PublicIdentity.from_raw(public.raw) == public
    other = Identity.new().public
    assert PublicIdentity(public.signing, other.sealing).fingerprint != public.fingerprint
    assert PublicIdentity(other.signing, public.sealing).fingerprint != public.fingerprint


def test_words_say_the_first_128_bits() -> None:
    # 16 bits: 4 for a consonant, 2 for a vowel, 4, 2, 4.
    assert words("0000" * 16) == "-".join(["babab"] * 8)
    assert words("ffff" * 8 + "0" * 32) == "-".join(["zuzuz"] * 8)
    assert words("7f000001" + "0" * 56).startswith("lusab-babad-")
    assert len({words(f"{i:04x}" + "0" * 60) for i in range(1 << 16)}) == 1 << 16
    one = "0123456789abcdeffedcba9876543210"
    assert len(set(words(one + "0" * 32).split("-"))) == 8
    for place in range(32):  # every digit is read out
        other = one[:place] + f"{int(one[place], 16) ^ 1:x}" + one[place + 1 :]
        assert words(other + "0" * 32) != words(one + "0" * 32)
    assert words(one + "f" * 32) == words(one + "0" * 32)


def test_a_signature_is_for_one_purpose_and_one_text() -> None:
    one = Identity(SEED)
    signature = one.sign("approval", b"data")
    one.public.verify("approval", b"data", signature)
    for context, data, by in (
        ("proposal", b"data", one),
        ("approval", b"date", one),
        ("approvald", b"ata", one),
        ("approval", b"data", Identity.new()),
    ):
        with pytest.raises(MessageError, match="signature"):
            by.public.verify(context, data, signature)
    for bad in (b"", signature[:-1], signature + b"x", bytes(64)):
        with pytest.raises(MessageError, match="signature"):
            one.public.verify("approval", b"data", bad)


def test_a_key_that_is_no_point_verifies_nothing() -> None:
    with pytest.raises(MessageError):
        PublicIdentity(b"\xff" * 32, b"\xff" * 32).verify("c", b"", bytes(64))
    for length in (0, 63, 65, 96):
        with pytest.raises(MessageError, match="64 bytes"):
            PublicIdentity.from_raw(bytes(length))


def test_an_envelope_opens_for_one_identity_and_context() -> None:
    one = Identity.new()
    sealed = one.public.seal_for(b"content", "start")
    assert one.unseal(sealed, "start") == b"content"
    assert one.public.seal_for(b"content", "start") != sealed
    for by, context in ((Identity.new(), "start"), (one, "stop")):
        with pytest.raises(MessageError):
            by.unseal(sealed, context)


def test_derived_secrets_differ_by_label_and_are_not_the_keys() -> None:
    one = Identity(SEED)
    assert one.derive("login") == Identity(SEED).derive("login")
    derived = {one.derive("login"), one.derive("journal"), one.derive("")}
    assert len(derived) == 3
    assert not derived & {SEED, one.public.signing, one.public.sealing, one._sealing}


def test_no_secret_in_text_or_copies() -> None:
    one = Identity(SEED)
    assert repr(one) == f"<Identity {one.fingerprint[:16]}>" == str(one)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(one)


def test_files_come_back(tmp_path: Path) -> None:
    one = Identity.new()
    path = tmp_path / "site" / "identity.json"
    one.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Identity.load(path).public == one.public == public_of(path)
    assert not needs_passphrase(path)
    with pytest.raises(ParameterError, match="already"):
        Identity.new().save(path)
    assert Identity.load(path).public == one.public
    two = Identity.new()
    two.save(path, replace=True)
    assert Identity.load(path).public == two.public
    assert list(path.parent.iterdir()) == [path]


def test_a_passphrase_seals_the_file(tmp_path: Path) -> None:
    one = Identity(SEED)
    path = tmp_path / "identity.json"
    one.save(path, "correct horse")
    assert SEED.hex() not in path.read_text()
    assert needs_passphrase(path)
    assert public_of(path) == one.public
    assert Identity.load(path, "correct horse").public == one.public
    with pytest.raises(ParameterError, match="does not open"):
        Identity.load(path, "correct house")
    with pytest.raises(ParameterError, match="passphrase"):
        Identity.load(path)
    with pytest.raises(ParameterError, match="empty"):
        one.save(tmp_path / "other", "")


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    Identity.new().save(path)
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(ParameterError, match="others"):
            Identity.load(path)


def test_a_file_that_is_not_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    with pytest.raises(ParameterError, match="no identity"):
        Identity.load(path)
    one = Identity.new()
    one.save(path)
    whole = json.loads(path.read_text())
    for field, value in (
        ("atoll_identity", 2),
        ("public", Identity.new().public.raw.hex()),
        ("public", (one.public.signing + Identity.new().public.sealing).hex()),
        ("public", (Identity.new().public.signing + one.public.sealing).hex()),
        ("public", "zz"),
        ("secret", "00"),
        ("secret", "zz"),
    ):
        path.write_text(json.dumps({**whole, field: value}))
        with pytest.raises((ParameterError, MessageError)):
            Identity.load(path)
    path.write_text("{")
    with pytest.raises(ParameterError, match="damaged"):
        Identity.load(path)


def test_a_sealed_file_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    Identity.new().save(path, "secret")
    path.write_text(json.dumps({**json.loads(path.read_text()), "scrypt": [1 << 30, 8, 1]}))
    with pytest.raises(ParameterError, match="does not open"):
        Identity.load(path, "secret")


def test_a_rotation_is_signed_by_both() -> None:
    old, new = Identity.new(), Identity.new()
    notice = rotation(old, new, 17)
    assert read_notice(notice.encode()) == notice
    for change in (
        {"new": Identity.new().public.raw},
        {"at": 18},
        {"kind": "revoked"},
        {"old": new.public.raw},
        {"new_signature": notice.signature},
        {"new_signature": b""},
    ):
        with pytest.raises(MessageError):
            read_notice(msgspec.structs.replace(notice, **change).encode())


def test_a_revocation_is_signed_by_the_identity() -> None:
    one = Identity.new()
    notice = revocation(one, 17)
    assert read_notice(notice.encode()) == notice
    with pytest.raises(MessageError):
        read_notice(msgspec.structs.replace(notice, old=Identity.new().public.raw).encode())
    with pytest.raises(MessageError):
        read_notice(b"\x00")


def test_a_public_identity_has_two_whole_keys() -> None:
    for signing, sealing in ((31, 32), (33, 32), (32, 31), (32, 33), (0, 32)):
        with pytest.raises(MessageError, match="two keys of 32 bytes"):
            PublicIdentity(bytes(signing), bytes(sealing))


def test_a_revocation_names_no_successor() -> None:
    """What nobody has signed is in no notice."""
    one, two = Identity(SEED), Identity.new()
    good = revocation(one, 7)
    bare = msgspec.structs.replace(good, new=two.public.raw)
    named = msgspec.structs.replace(bare, signature=one.sign("identity notice", bare.signed()))
    for bad in (named, msgspec.structs.replace(good, new_signature=b"x")):
        with pytest.raises(MessageError, match="malformed"):
            read_notice(bad.encode())


def test_every_sealed_file_has_a_salt_of_its_own(tmp_path: Path) -> None:
    """With one salt for all, a list of passphrases is stretched once for every file that was stolen."""
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for path in files:
        Identity(SEED).save(path, "correct horse")
    salts = [json.loads(path.read_text())["salt"] for path in files]
    assert [len(bytes.fromhex(salt)) for salt in salts] == [32, 32]
    assert salts[0] != salts[1]


def test_a_passphrase_costs_what_docs_say_to_try(tmp_path: Path) -> None:
    """2^15 rounds of 8 blocks: 32 MB and some tenths of a second for every guess."""
    path = tmp_path / "identity.json"
    Identity(SEED).save(path, "correct horse")
    assert json.loads(path.read_text())["scrypt"] == [32768, 8, 1]


def test_an_identity_is_on_disk_with_its_name_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost in a power failure, it takes every run that others have approved with it."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    Identity(SEED).save(tmp_path / "identity.json")
    assert synced == [str(tmp_path / "identity.json.new"), str(tmp_path)]
