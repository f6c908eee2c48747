"""What a site trusts of a hub before it has joined: an invitation, and the authority that it names."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from atoll.crypto.identity import Identity
from atoll.errors import ParameterError
from atoll.runtime.nats import certificates, invitations
from atoll.runtime.nats.connection import HubNotTrusted
from atoll.runtime.nats.invitations import Invitation, join, pinned_authority

SECRET = bytes(range(32))
GOOD = Invitation("tls://hub.example.org:4222", "ab" * 32, SECRET, 2_000_000_000)
AUTHORITY, OTHER = certificates.new_authority("one"), certificates.new_authority("two")


def written(*fields: object, check: bool = True) -> str:
    """An invitation's string, of whatever it says."""
    data = msgspec.msgpack.encode(fields)
    digest = hashlib.sha256(b"atoll/invitation/v1/check" + data).digest()[:4] if check else bytes(4)
    return "atoll1-" + base64.b32encode(data + digest).decode().rstrip("=").lower()


def test_an_invitation_comes_back_however_a_mail_broke_it() -> None:
    text = str(GOOD)
    assert Invitation.read(text) == GOOD
    assert Invitation.read(f" {text[:20]}\n  {text[20:50].upper()}\t{text[50:]} \n") == GOOD
    assert text == written(GOOD.url, bytes.fromhex(GOOD.authority), SECRET, GOOD.expires)


def test_every_letter_of_an_invitation_counts() -> None:
    text = str(GOOD)
    for place in range(len(text)):
        other = text[:place] + ("a" if text[place] != "a" else "b") + text[place + 1 :]
        with pytest.raises(ParameterError, match="this is not an invitation"):
            Invitation.read(other)
    for cut in (text[:-1], text[:-8], text[7:], text + "aaaaaaaa", ""):
        with pytest.raises(ParameterError, match="this is not an invitation"):
            Invitation.read(cut)


@pytest.mark.parametrize(
    "text",
    [
        written("tls://hub:4222", bytes(32), SECRET, 1, check=False),
        written("tls://hub:4222", bytes(32), SECRET[:31], 1),
        written("tls://hub:4222", bytes(32), SECRET + b"x", 1),
        written("tls://hub:4222", bytes(31), SECRET, 1),
        written("tls://hub:4222", bytes(32), SECRET, 1, "more"),
        written("tls://hub:4222", bytes(32), SECRET),
    ],
)
def test_what_is_said_has_its_form(text: str) -> None:
    with pytest.raises(ParameterError, match="this is not an invitation"):
        Invitation.read(text)


def test_an_invitation_shows_its_name_and_no_secret() -> None:
    for text in (repr(GOOD), GOOD.name):
        assert SECRET.hex() not in text
        assert str(GOOD)[7:40] not in text
    assert repr(GOOD) == f"<Invitation {GOOD.name} to {GOOD.url}>"
    assert GOOD.name == hashlib.sha256(b"atoll/invitation/v1" + SECRET).hexdigest()[:16]


def test_an_expired_invitation_is_not_presented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anybody asked for anything."""

    async def asked(url: str) -> list[str]:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr(invitations, "shown_chain", asked)
    for late in (1, int(time.time()) - 1):
        old = Invitation(GOOD.url, GOOD.authority, SECRET, late)
        for invitation in (old, str(old)):
            with pytest.raises(ParameterError, match="this invitation has expired"):
                asyncio.run(join(invitation, Identity.new()))


def test_the_authority_is_the_one_that_the_invitation_names(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    async def chain(url: str) -> list[str]:
        return shown

    monkeypatch.setattr(invitations, "shown_chain", chain)
    one, two = AUTHORITY.certificate.decode(), OTHER.certificate.decode()
    fingerprint = certificates.fingerprint(AUTHORITY.certificate)
    for answer in ([], [two]):
        shown[:] = answer
        with pytest.raises(HubNotTrusted, match="is not the hub of the invitation"):
            asyncio.run(pinned_authority(GOOD.url, fingerprint))
    shown[:] = [two, one]
    assert asyncio.run(pinned_authority(GOOD.url, fingerprint)) == one


# ---- certificates ----


def extension(certificate: x509.Certificate, kind: type) -> tuple[bool, object]:
    found = certificate.extensions.get_extension_for_class(kind)
    return found.critical, found.value


def test_an_authority_signs_for_one_server_and_no_authority() -> None:
    one = x509.load_pem_x509_certificate(AUTHORITY.certificate)
    assert extension(one, x509.BasicConstraints) == (True, x509.BasicConstraints(ca=True, path_length=0))
    critical, usage = extension(one, x509.KeyUsage)
    assert critical
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)  # type: ignore[attr-defined]
    assert (one.not_valid_after_utc - one.not_valid_before_utc).days == 7300


def test_a_servers_certificate_is_for_a_server_and_a_year() -> None:
    pair = certificates.new_server(AUTHORITY, ["hub.example.org", "127.0.0.1"])
    leaf, authority = x509.load_pem_x509_certificates(pair.certificate)
    assert authority == x509.load_pem_x509_certificate(AUTHORITY.certificate)
    leaf.verify_directly_issued_by(authority)
    assert extension(leaf, x509.BasicConstraints) == (True, x509.BasicConstraints(ca=False, path_length=None))
    assert list(extension(leaf, x509.ExtendedKeyUsage)[1]) == [ExtendedKeyUsageOID.SERVER_AUTH]  # type: ignore[call-overload]
    critical, usage = extension(leaf, x509.KeyUsage)
    assert critical
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (False, False, True)  # type: ignore[attr-defined]
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hub.example.org"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days == 365
    assert certificates.RENEW_DAYS == 60
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)


def test_a_certificate_goes_with_its_own_key(tmp_path: Path) -> None:
    certificate, key = tmp_path / "hub.pem", tmp_path / "hub.key"
    certificates.write_pair(AUTHORITY, certificate, key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert certificates.read_pair(certificate, key) == AUTHORITY
    key.write_bytes(OTHER.key)
    with pytest.raises(ParameterError, match="is not the key of"):
        certificates.read_pair(certificate, key)
    key.write_bytes(b"no key")
    with pytest.raises(ParameterError, match="must be PEM files"):
        certificates.read_pair(certificate, key)
